// The probability of each candidate, best first, and where simulated selections landed.

import { chartWidth, Frame, linear, roundTicks } from "./axes.js";
import { CLASSES, TITLES, short } from "./draw.js";
import { cut, textWidth } from "./texts.js";

const FEW = 20; // bars and labels up to this number, lines above
const SIDES = { left: 56, right: 12 };
const SLANTED = 92; // the length of a slanted label, for which there are 86 pixels below the chart

export function drawProbabilities(place, readout, state) {
  const { look, drawn } = state;
  const order = state.order.slice(0, state.shownCount);
  const top = Math.max(...Object.values(look.mechanisms).map(({ probabilities }) => highest(order, probabilities)), frequency(drawn, order), 1e-9);
  const few = order.length <= FEW;
  const room = (chartWidth(place) - SIDES.left - SIDES.right) / order.length - 8;
  const flat = few && (room >= SLANTED || order.every((index) => textWidth(state.labels[index]) <= room));
  const frame = new Frame(place, {
    ...SIDES, height: few && !flat ? 320 : 290, bottom: few && !flat ? 86 : 44, title: "Probability of each candidate",
    description: `${TITLES[state.mechanism]} chooses ${state.labels[order[0]]} with probability ${short(look.mechanisms[state.mechanism].probabilities[order[0]])}. Arrow keys read one candidate after another.`,
  });
  const y = linear(0, top * 1.05, frame.floor, frame.top);
  const x = linear(0, order.length, frame.left, frame.end);
  frame.verticalTicks(roundTicks(top * 1.05), y, (tick) => short(tick, 3));
  (few ? bars : lines)(frame, order, x, y, state);
  if (few) names(frame, order, x, state.labels, flat ? room : null);
  frame.captions(few ? "" : "rank of the candidate, best score first", "probability");
  frame.svg.classList.toggle("drawn", Boolean(drawn));
  if (drawn) balls(frame, order, x, y, drawn, few ? barOf(state.mechanism) : [0.08, 0.92]);
  frame.readable(order.map((_, rank) => x(rank + 0.5)), (rank) => told(order[rank], state), readout);
}

const highest = (order, probabilities) => order.reduce((most, index) => Math.max(most, probabilities[index]), 0);
const frequency = (drawn, order) => (drawn ? highest(order, drawn.counts) / drawn.total : 0);

// The start and end of the bar of a mechanism, as fractions of the width of a candidate.
function barOf(mechanism) {
  const names = Object.keys(TITLES), wide = 0.8 / names.length, start = 0.1 + wide * names.indexOf(mechanism);
  return [start, start + wide];
}

function bars(frame, order, x, y, { look, mechanism }) {
  Object.entries(look.mechanisms).forEach(([name, { probabilities }]) => {
    const [start, end] = barOf(name);
    order.forEach((index, rank) => {
      const tall = frame.floor - y(probabilities[index]), left = x(rank + start);
      frame.add("rect", { class: `bar ${CLASSES[name]}${name === mechanism ? " chosen" : ""}`, x: left, width: Math.max(0.5, x(rank + end) - left - 1), y: frame.floor - tall, height: tall, rx: Math.min(2, tall / 2) });
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

function lines(frame, order, x, y, { look, mechanism }) {
  const steps = (probabilities) => order.map((index, rank) => `${rank ? "L" : "M"}${x(rank).toFixed(1)} ${y(probabilities[index]).toFixed(2)}H${x(rank + 1).toFixed(1)}`).join("");
  const chosen = steps(look.mechanisms[mechanism].probabilities);
  frame.add("path", { class: `area ${CLASSES[mechanism]}`, d: `${chosen}V${frame.floor}H${frame.left}Z` });
  for (const [name, { probabilities }] of Object.entries(look.mechanisms))
    frame.add("path", { class: `curve ${CLASSES[name]}${name === mechanism ? " chosen" : ""}`, d: steps(probabilities) });
  frame.horizontalTicks(roundTicks(order.length, 6).filter((tick) => tick >= 1), (rank) => x(rank - 0.5), String);
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

function told(index, { labels, scores, look, drawn }) {
  const parts = Object.entries(look.mechanisms).map(([name, { probabilities }]) => `${TITLES[name]} ${short(probabilities[index])}`);
  const often = drawn ? `; drawn ${drawn.counts[index].toLocaleString("en")} of ${drawn.total.toLocaleString("en")}` : "";
  return `${labels[index]}, score ${scores[index]}: ${parts.join(", ")}${often}`;
}
