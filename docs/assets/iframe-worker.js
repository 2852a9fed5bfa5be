// The search runs in a worker, and a browser starts no worker for a page that was opened as a file. So a hidden frame runs
// the worker's script instead, with what the script expects of a worker: postMessage to the page, and message events from it.
"use strict";

class FrameWorker extends EventTarget {
  constructor(address) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    document.body.append(this.frame);
    this.inside = this.frame.contentWindow;
    this.inside.document.open();
    this.inside.document.write("<!doctype html><title>Search</title><body></body>");
    this.inside.document.close();
    this.inside.postMessage = (data) => this.tell(new MessageEvent("message", { data: structuredClone(data) }));
    const script = this.inside.document.createElement("script");
    script.src = new URL(address, document.baseURI).href;
    this.loaded = new Promise((resolve) => script.addEventListener("load", resolve));
    script.addEventListener("error", () => this.tell(new Event("error")));
    this.inside.document.body.append(script);
  }

  tell(event) {
    this.dispatchEvent(event);
    this[`on${event.type}`]?.(event);
  }

  async postMessage(data) {
    const copy = structuredClone(data);
    await this.loaded;
    this.inside.dispatchEvent(new MessageEvent("message", { data: copy }));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
