// Requests to the explorer on this machine: one at a time, and while a slider moves only the latest of each kind.

export class Refused extends Error {}

async function answerOf(response) {
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.error);
  return answer;
}

function sent(path, options) {
  return fetch(path, { method: "POST", cache: "no-store", ...options }).then(answerOf, () => {
    throw new Refused("the explorer does not answer: is the command still running?");
  });
}

export function ask(path, fields) {
  return sent(path, { headers: { "Content-Type": "application/json" }, body: JSON.stringify(fields) });
}

// The body is sent unchanged, never as a form, so that no server writes it to a file.
export function load(content, fields) {
  return sent(`scores?${new URLSearchParams(fields)}`, { headers: { "Content-Type": "text/csv" }, body: content });
}

// A queue of tasks by kind, in the order of importance. A new task replaces one of its kind that has not started.
export class Line {
  #kinds;
  #waiting = new Map();
  #busy = false;

  constructor(...kinds) {
    this.#kinds = kinds;
  }

  put(kind, task) {
    this.#waiting.set(kind, task);
    if (!this.#busy) this.#work();
  }

  async #work() {
    this.#busy = true;
    for (let kind; (kind = this.#kinds.find((one) => this.#waiting.has(one))); ) {
      const task = this.#waiting.get(kind);
      this.#waiting.delete(kind);
      await task().catch(console.error); // a task that fails must not stop the queue
    }
    this.#busy = false;
  }
}
