// Expected error against epsilon on logarithmic axes, with the current point.

import { decades, Frame, logarithmic } from "./axes.js";
import { CLASSES, TITLES, quotient, short } from "./draw.js";

const DEEPEST = 1e-4; // relative to the largest error: smaller errors do not matter, and would flatten the rest

export function drawCurve(place, readout, state, choose) {
  const { curve, look, mechanism, epsilon } = state;
  const known = Object.values(curve.errors).flat().filter((error) => error > 0);
  const frame = new Frame(place, {
    height: 300, title: "Average error against epsilon",
    description: `${TITLES[mechanism]} loses ${short(look.mechanisms[mechanism].expected_error)} ${state.unit} on average at epsilon ${epsilon}. Arrow keys read the points of the curve, Enter takes the epsilon.`,
  });
  if (!known.length) return void frame.text(frame.width / 2, 140, "No error: all scores are equal.", { "text-anchor": "middle" });
  const high = Math.max(...known) * 1.6, low = Math.max(Math.min(...known), high * DEEPEST);
  const x = logarithmic(1e-4, 1e2, frame.left, frame.end), y = logarithmic(low, high, frame.floor, frame.top);
  const powers = decades(1e-4, 1e2).filter((_, index) => frame.width > 380 || index % 2 === 0);
  frame.horizontalTicks(powers, x, (tick) => short(tick));
  frame.verticalTicks(decades(low, high), y, (tick) => short(tick));
  for (const [name, errors] of Object.entries(curve.errors)) {
    const points = curve.epsilons.map((one, index) => [one, errors[index]]).filter(([, error]) => error !== null);
    const path = above(points, low).map(([one, error], index) => `${index ? "L" : "M"}${x(one).toFixed(1)} ${y(error).toFixed(1)}`).join("");
    frame.add("path", { class: `curve ${CLASSES[name]}${name === mechanism ? " chosen" : ""}`, d: path });
  }
  const now = x(quotient(epsilon));
  frame.add("line", { class: "now", x1: now, x2: now, y1: frame.top, y2: frame.floor });
  for (const [name, { expected_error: error }] of Object.entries(look.mechanisms))
    if (error >= low) frame.add("circle", { class: `dot ${CLASSES[name]}`, cx: now, cy: y(error), r: name === mechanism ? 6.5 : 4.5 });
  frame.captions("ε", `average error (${state.unit})`);
  frame.readable(curve.epsilons.map(x), (index) => told(index, curve), readout);
  const take = () => choose(String(Number(curve.epsilons[frame.index].toPrecision(3))));
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

function told(index, { epsilons, errors }) {
  const parts = Object.keys(errors).map((name) => `${TITLES[name]} ${short(errors[name][index])}`);
  return `ε = ${short(epsilons[index], 3)}: ${parts.join(", ")}`;
}
