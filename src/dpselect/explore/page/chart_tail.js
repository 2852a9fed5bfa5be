// The tail of the error: how often the error is at least t.

import { decades, Frame, linear, logarithmic, roundTicks } from "./axes.js";
import { CLASSES, TITLES, short } from "./draw.js";

const RAREST = 1e-3;

export function drawTail(place, readout, state) {
  const { look, mechanism, unit } = state;
  const { thresholds } = look;
  const far = thresholds.at(-1) || 1;
  const frame = new Frame(place, {
    height: 300, title: "How often the error is at least t",
    description: `95 times in 100 ${TITLES[mechanism]} loses at most ${short(look.mechanisms[mechanism].error_95)} ${unit}. Arrow keys read the tail.`,
  });
  const x = linear(0, far, frame.left, frame.end), y = logarithmic(RAREST, 1, frame.floor, frame.top);
  frame.horizontalTicks(roundTicks(far, frame.width > 380 ? 5 : 3), x, (tick) => short(tick));
  frame.verticalTicks(decades(RAREST, 1), y, (tick) => short(tick));
  frame.add("line", { class: "now", x1: frame.left, x2: frame.end, y1: y(0.05), y2: y(0.05) });
  frame.text(frame.end, y(0.05) - 5, "5 in 100", { "text-anchor": "end" });
  for (const [name, { tail }] of Object.entries(look.mechanisms)) {
    frame.add("path", { class: `curve ${CLASSES[name]}${name === mechanism ? " chosen" : ""}`, d: stepped(thresholds, tail, x, y) });
  }
  frame.captions(`error t (${unit})`, "probability");
  frame.readable(thresholds.map(x), (index) => told(index, look, unit), readout);
}

// Between two errors that occur the probability is constant, up to and including the larger one.
function stepped(thresholds, tail, x, y) {
  let path = `M${x(0).toFixed(1)} ${y(1).toFixed(1)}`;
  thresholds.forEach((t, index) => {
    if (tail[index] >= RAREST) path += `V${y(tail[index]).toFixed(1)}H${x(t).toFixed(1)}`;
  });
  return path;
}

function told(index, { thresholds, mechanisms }, unit) {
  const parts = Object.entries(mechanisms).map(([name, { tail }]) => `${TITLES[name]} ${short(tail[index], 3)}`);
  return `At least ${short(thresholds[index])} ${unit}: ${parts.join(", ")}`;
}
