// The frame of a chart: its size, scales, ticks and the cursor that reads values by pointer or arrow keys.

import { shape } from "./draw.js";
import { textWidth } from "./texts.js";

export const linear = (low, high, from, to) => (value) => from + ((value - low) / (high - low || 1)) * (to - from);

export function logarithmic(low, high, from, to) {
  const straight = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => straight(Math.log10(Math.max(value, low)));
}

export function roundTicks(high, wanted = 5) {
  const rough = high / wanted || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= rough);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, index) => index * step);
}

export function decades(low, high) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => 10 ** (first + index));
}

// The left margin in which these ticks stand beside the caption, not under it.
export const marginFor = (ticks) => Math.max(48, Math.ceil(Math.max(0, ...ticks.map(textWidth))) + 32);

export const chartWidth = (place) => Math.max(260, place.clientWidth);

export class Frame {
  constructor(place, { height = 260, left = 56, right = 12, top = 14, bottom = 44, title, description }) {
    this.width = chartWidth(place);
    Object.assign(this, { place, height, left, top, end: this.width - right, floor: height - bottom });
    this.svg = shape("svg", { viewBox: `0 0 ${this.width} ${height}`, height, role: "img", tabindex: 0, "aria-label": `${title}. ${description}` });
    this.svg.append(shape("title", {}, title));
    place.replaceChildren(this.svg);
  }

  add(name, attributes, ...children) {
    const made = shape(name, attributes, ...children);
    this.svg.append(made);
    return made;
  }

  text(x, y, content, attributes = {}) {
    return this.add("text", { x, y, ...attributes }, content);
  }

  verticalTicks(ticks, scale, shown) {
    for (const tick of ticks) {
      const y = scale(tick);
      this.add("line", { class: "grid", x1: this.left, x2: this.end, y1: y, y2: y });
      this.text(this.left - 7, y + 4, shown(tick), { "text-anchor": "end" });
    }
  }

  horizontalTicks(ticks, scale, shown) {
    for (const tick of ticks) {
      this.add("line", { class: "grid", x1: scale(tick), x2: scale(tick), y1: this.top, y2: this.floor });
      this.text(scale(tick), this.floor + 17, shown(tick), { "text-anchor": "middle" });
    }
  }

  captions(horizontal, vertical) {
    this.add("line", { class: "axis", x1: this.left, x2: this.end, y1: this.floor, y2: this.floor });
    this.text((this.left + this.end) / 2, this.height - 5, horizontal, { "text-anchor": "middle" });
    this.text(0, 0, vertical, { "text-anchor": "middle", transform: `translate(12 ${(this.top + this.floor) / 2}) rotate(-90)` });
  }

  // Reading values with the pointer or the arrow keys: the x of each entry, and the text about it.
  readable(places, tell, readout) {
    const cursor = this.add("line", { class: "cursor", y1: this.top, y2: this.floor, visibility: "hidden" });
    const show = (index) => {
      this.place.dataset.index = index; // kept while the chart is redrawn
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, places[index]);
      cursor.setAttribute("visibility", "visible");
      readout.textContent = tell(index);
    };
    const leave = () => {
      delete this.place.dataset.index;
      cursor.setAttribute("visibility", "hidden");
      readout.textContent = "";
    };
    this.svg.addEventListener("pointermove", (event) => {
      const x = ((event.clientX - this.svg.getBoundingClientRect().left) * this.width) / this.svg.clientWidth;
      show(nearest(places, x));
    });
    this.svg.addEventListener("pointerleave", leave);
    this.svg.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.key === "Escape") leave();
      if (!step || !places.length) return;
      event.preventDefault();
      const now = this.index ?? (step > 0 ? -1 : places.length);
      show(Math.min(places.length - 1, Math.max(0, now + step)));
    });
    if (this.index < places.length) show(this.index);
  }

  // The entry that is being read, if any.
  get index() {
    return this.place.dataset.index === undefined ? undefined : Number(this.place.dataset.index);
  }
}

function nearest(places, x) {
  let best = 0;
  for (let index = 1; index < places.length; index++)
    if (Math.abs(places[index] - x) < Math.abs(places[best] - x)) best = index;
  return best;
}
