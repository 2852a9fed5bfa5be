// The tail of the error: how often the error is at least t.

import { decades, Frame, linear, logarithmic, marginFor, roundTicks } from "./axes.js";
import { CLASSES, TITLES, short } from "./draw.js";

const RAREST = 1e-3;

export function drawTail(place, readout, state) {
  const { look } = state, { thresholds, tails, taken, unit } = look;
  const far = thresholds.at(-1) || 1, ticks = decades(RAREST, 1);
  const frame = new Frame(place, {
    height: 300, left: marginFor(ticks.map((tick) => short(tick))), title: "How often the error is at least t",
    description: `${look.sentence} Arrow keys read the tail.`,
  });
  const x = linear(0, far, frame.left, frame.end), y = logarithmic(RAREST, 1, frame.floor, frame.top);
  frame.horizontalTicks(roundTicks(far, frame.width > 380 ? 5 : 3), x, (tick) => short(tick));
  frame.verticalTicks(ticks, y, (tick) => short(tick));
  frame.add("line", { class: "now", x1: frame.left, x2: frame.end, y1: y(0.05), y2: y(0.05) });
  frame.text(frame.end, y(0.05) - 5, "5 in 100", { "text-anchor": "end" });
  for (const [name, tail] of Object.entries(tails))
    frame.add("path", { class: `curve ${CLASSES[name]}${name === taken ? " chosen" : ""}`, d: stepped(thresholds, tail, x, y) });
  if (thresholds.length < 2) frame.text((frame.left + frame.end) / 2, y(0.3), "Hardly ever any error.", { "text-anchor": "middle" });
  frame.captions(`error t (${unit})`, "probability");
  frame.readable(thresholds.map(x), (index) => told(index, look), readout);
}

// Between two errors that occur the probability is constant, up to and including the larger one.
function stepped(thresholds, tail, x, y) {
  let path = `M${x(0).toFixed(1)} ${y(1).toFixed(1)}`;
  thresholds.forEach((t, index) => {
    if (tail[index] >= RAREST) path += `V${y(tail[index]).toFixed(1)}H${x(t).toFixed(1)}`;
  });
  return path;
}

function told(index, { thresholds, tails, unit }) {
  const parts = Object.entries(tails).map(([name, tail]) => `${TITLES[name]} ${short(tail[index], 3)}`);
  return `At least ${short(thresholds[index])} ${unit}: ${parts.join(", ")}`;
}
