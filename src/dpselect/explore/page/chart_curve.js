// Average error against the budget on logarithmic axes, with the current point.

import { decades, Frame, logarithmic, marginFor } from "./axes.js";
import { CLASSES, TITLES, quotient, short } from "./draw.js";

const DEEPEST = 1e-4; // relative to the largest error: smaller errors do not matter, and would flatten the rest

export function drawCurve(place, readout, state, choose) {
  const { curve, look, amount } = state, { taken, unit, symbol } = look;
  const known = Object.values(curve.errors).flat().filter((error) => error > 0);
  const high = Math.max(...known) * 1.6, low = Math.max(Math.min(...known), Math.min(high * DEEPEST, state.target / 5 || Infinity));
  const ticks = known.length ? decades(low, high) : [];
  const frame = new Frame(place, {
    height: 300, left: marginFor(ticks.map((tick) => short(tick))), title: "Average error against the budget",
    description: `${TITLES[taken]} loses ${short(look.means[taken])} ${unit} on average at ${symbol} = ${amount}. Arrow keys read the points of the curve, Enter takes the budget.`,
  });
  if (!known.length) return void frame.text(frame.width / 2, 140, "No error.", { "text-anchor": "middle" });
  const from = curve.amounts[0], to = curve.amounts.at(-1);
  const x = logarithmic(from, to, frame.left, frame.end), y = logarithmic(low, high, frame.floor, frame.top);
  const powers = decades(from, to);
  frame.horizontalTicks(powers.filter((_, index) => frame.width > 380 || index % 2 === 0), x, (tick) => short(tick));
  frame.verticalTicks(ticks, y, (tick) => short(tick));
  for (const [name, errors] of Object.entries(curve.errors)) {
    const points = curve.amounts.map((one, index) => [one, errors[index]]).filter(([, error]) => error !== null);
    const path = above(points, low).map(([one, error], index) => `${index ? "L" : "M"}${x(one).toFixed(1)} ${y(error).toFixed(1)}`).join("");
    frame.add("path", { class: `curve ${CLASSES[name]}${name === taken ? " chosen" : ""}`, d: path });
  }
  const now = x(Math.min(to, quotient(amount)));
  frame.add("line", { class: "now", x1: now, x2: now, y1: frame.top, y2: frame.floor });
  for (const [name, error] of Object.entries(look.means))
    if (error >= low) frame.add("circle", { class: `dot ${CLASSES[name]}`, cx: now, cy: y(error), r: name === taken ? 6.5 : 4.5 });
  frame.captions(symbol, `average error (${unit})`);
  frame.readable(curve.amounts.map(x), (index) => told(index, curve, symbol), readout);
  const take = () => choose(String(Number(curve.amounts[frame.index].toPrecision(3))));
  frame.svg.addEventListener("click", () => frame.index !== undefined && take());
  frame.svg.addEventListener("keydown", (event) => event.key === "Enter" && frame.index !== undefined && take());
}

// The falling curve, up to where it leaves the chart.
function above(points, low) {
  const end = points.findIndex(([, error]) => error < low);
  if (end < 1) return end ? points : [];
  const [[e, a], [f, b]] = [points[end - 1], points[end]].map((point) => point.map((one) => Math.log(Math.max(one, 1e-300))));
  return [...points.slice(0, end), [Math.exp(e + ((a - Math.log(low)) / (a - b)) * (f - e)), low]];
}

function told(index, { amounts, errors }, symbol) {
  const parts = Object.keys(errors).map((name) => `${TITLES[name]} ${short(errors[name][index])}`);
  return `${symbol} = ${short(amounts[index], 3)}: ${parts.join(", ")}`;
}
