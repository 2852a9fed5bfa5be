// The probability of each candidate, and where simulated answers landed.

import { chartWidth, Frame, linear, marginFor, roundTicks } from "./axes.js";
import { chance, CLASSES, TITLES, short } from "./draw.js";
import { cut, textWidth } from "./texts.js";

const FEW = 20; // bars and labels up to this number, lines above
const RIGHT = 12;
const SLANTED = 92; // the length of a slanted label, for which there are 86 pixels below the chart

export function drawProbabilities(place, readout, state) {
  const { look, drawn } = state, { chances, labels, taken } = look;
  const order = shownOrder(look);
  const top = 1.05 * Math.max(...Object.values(chances).map((one) => highest(order, one)), drawn ? highest(order, drawn.counts) / drawn.total : 0, 1e-9);
  const ticks = roundTicks(top), left = marginFor(ticks.map((tick) => short(tick, 3)));
  const few = order.length <= FEW;
  const room = (chartWidth(place) - left - RIGHT) / order.length - 8;
  const flat = few && (room >= SLANTED || order.every((index) => textWidth(labels[index]) <= room));
  const frame = new Frame(place, {
    left, right: RIGHT, height: few && !flat ? 320 : 290, bottom: few && !flat ? 86 : 44, title: look.chart.title,
    description: `${look.sentence} Arrow keys read one candidate after another.`,
  });
  const y = linear(0, top, frame.floor, frame.top);
  const x = linear(0, order.length, frame.left, frame.end);
  frame.verticalTicks(ticks, y, (tick) => short(tick, 3));
  (few ? bars : lines)(frame, order, x, y, look);
  if (few) names(frame, order, x, labels, flat ? room : null);
  frame.captions(few && !flat ? "" : few && look.chart.ranked ? "" : look.chart.order, "probability");
  frame.svg.classList.toggle("drawn", Boolean(drawn));
  if (drawn) balls(frame, order, x, y, drawn, few ? barOf(chances, taken) : [0.08, 0.92]);
  frame.readable(order.map((_, rank) => x(rank + 0.5)), (rank) => told(order[rank], state), readout);
}

// The candidates that are shown: the best ones, or all values that matter.
export function shownOrder({ order, chart }) {
  const shown = document.getElementById("shown").value;
  return chart.ranked && shown !== "all" ? order.slice(0, Number(shown)) : order;
}

const highest = (order, numbers) => order.reduce((most, index) => Math.max(most, numbers[index]), 0);

// The start and end of the bar of a choice, as fractions of the width of a candidate.
function barOf(chances, choice) {
  const names = Object.keys(chances), wide = 0.8 / names.length, start = 0.1 + wide * names.indexOf(choice);
  return [start, start + wide];
}

function bars(frame, order, x, y, { chances, taken }) {
  Object.entries(chances).forEach(([name, probabilities]) => {
    const [start, end] = barOf(chances, name);
    order.forEach((index, rank) => {
      const tall = frame.floor - y(probabilities[index]), left = x(rank + start);
      frame.add("rect", { class: `bar ${CLASSES[name]}${name === taken ? " chosen" : ""}`, x: left, width: Math.max(0.5, x(rank + end) - left - 1), y: frame.floor - tall, height: tall, rx: Math.min(2, tall / 2) });
    });
  });
}

// The labels below the bars, cut to the available space: horizontal, or slanted if that is too narrow.
function names(frame, order, x, labels, room) {
  order.forEach((index, rank) => {
    const middle = x(rank + 0.5);
    if (room !== null) frame.text(middle, frame.floor + 17, cut(labels[index], room), { class: "name", "text-anchor": "middle" });
    else frame.text(0, 0, cut(labels[index], SLANTED), { class: "name", "text-anchor": "end", transform: `translate(${middle + 4} ${frame.floor + 14}) rotate(-42)` });
  });
}

function lines(frame, order, x, y, { chances, taken, chart, labels }) {
  const steps = (probabilities) => order.map((index, rank) => `${rank ? "L" : "M"}${x(rank).toFixed(1)} ${y(probabilities[index]).toFixed(2)}H${x(rank + 1).toFixed(1)}`).join("");
  const chosen = steps(chances[taken]);
  frame.add("path", { class: `area ${CLASSES[taken]}`, d: `${chosen}V${frame.floor}H${frame.left}Z` });
  for (const [name, probabilities] of Object.entries(chances))
    frame.add("path", { class: `curve ${CLASSES[name]}${name === taken ? " chosen" : ""}`, d: steps(probabilities) });
  const ticks = roundTicks(order.length, frame.width > 380 ? 6 : 4).filter((tick) => tick >= 1 && tick <= order.length);
  frame.horizontalTicks(ticks, (rank) => x(rank - 0.5), (rank) => (chart.ranked ? String(rank) : labels[order[rank - 1]]));
}

// On the bar of the mechanism that drew, up to a hundred balls pile up to their frequency; a line marks it.
function balls(frame, order, x, y, { counts, total, fresh }, [start, end]) {
  const wide = x(end) - x(start);
  order.forEach((index, rank) => {
    if (!counts[index]) return;
    const height = y(counts[index] / total);
    if (total > 1) frame.add("path", { class: "landed", d: `M${x(rank + start)} ${height}H${x(rank + end)}` });
    if (total > 100) return;
    for (let ball = 0; ball < counts[index]; ball++) {
      const radius = total === 1 ? Math.min(7, Math.max(4, wide / 3)) : Math.min(4, Math.max(2.5, wide / 6));
      const side = total === 1 ? 0 : ((((ball * 7) % 5) - 2) / 5) * Math.min(wide * 0.7, 40);
      const made = frame.add("circle", { class: fresh ? "ball falling" : "ball", cx: x(rank + (start + end) / 2) + side, cy: y((ball + 0.5) / total) - (total === 1 ? radius : 0), r: radius });
      if (total === 1) made.setAttribute("cy", frame.floor - radius);
      made.style.animationDelay = `${(ball * 37 + rank * 53) % 600}ms`;
    }
  });
}

function told(index, { look, drawn }) {
  const parts = Object.entries(look.chances).map(([name, probabilities]) => `${TITLES[name]} ${chance(probabilities[index])}`);
  const often = drawn ? `; drawn ${drawn.counts[index].toLocaleString("en")} of ${drawn.total.toLocaleString("en")}` : "";
  return `${look.labels[index]}, ${look.chart.note} ${look.notes[index]}: ${parts.join(", ")}${often}`;
}
