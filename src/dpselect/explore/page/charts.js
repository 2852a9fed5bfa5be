// The three charts, each with its files and with a table for readers who cannot see it.

import { drawCurve } from "./chart_curve.js";
import { drawProbabilities } from "./chart_probabilities.js";
import { drawTail } from "./chart_tail.js";
import { byId, chance, element, TITLES, short, table } from "./draw.js";
import { saveCsv, savePng, saveSvg } from "./export.js";
import { curveKey, state } from "./state.js";

const CHARTS = {
  probabilities: {
    ready: () => state.look,
    draw: drawProbabilities,
    written: chance,
    heads: () => ["candidate", state.look.chart.note, ...names("chances"), ...(state.drawn ? [`drawn of ${state.drawn.total}`] : [])],
    rows: () => state.look.order.map((index) => [
      state.look.labels[index], state.look.notes[index],
      ...names("chances").map((name) => state.look.chances[name][index]), ...(state.drawn ? [String(state.drawn.counts[index])] : []),
    ]),
  },
  curve: {
    ready: () => state.look && state.curve,
    isCurrent: () => state.shownCurveKey === curveKey(),
    draw: drawCurve,
    written: short,
    heads: () => ["budget", ...Object.keys(state.curve.errors)],
    rows: () => state.curve.amounts.map((amount, index) => [amount, ...Object.values(state.curve.errors).map((errors) => errors[index])]),
  },
  tail: {
    ready: () => state.look,
    draw: drawTail,
    written: short,
    heads: () => ["error", ...names("tails")],
    rows: () => state.look.thresholds.map((t, index) => [t, ...names("tails").map((name) => state.look.tails[name][index])]),
  },
};

const names = (part) => Object.keys(state.look[part]);

export function addTools(chooseAmount) {
  for (const [id, chart] of Object.entries(CHARTS)) {
    const part = byId(id);
    chart.choose = chooseAmount;
    const files = {
      PNG: () => savePng(`${id}.png`, part.querySelector("svg")),
      SVG: () => saveSvg(`${id}.svg`, part.querySelector("svg")),
      CSV: () => saveCsv(`${id}.csv`, [chart.heads(), ...chart.rows()]),
    };
    chart.buttons = Object.entries(files).map(([kind, write]) => {
      const button = element("button", { type: "button", disabled: "", "aria-label": `Save ${part.querySelector("h2").textContent} as ${kind}` }, `Save ${kind}`);
      button.addEventListener("click", write);
      return button;
    });
    const title = part.querySelector("h2").textContent;
    const holder = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${title}` });
    chart.table = element("details", {}, element("summary", {}, "Show as a table"), holder);
    chart.table.addEventListener("toggle", () => fill(chart));
    part.querySelector(".tools").append(...chart.buttons, chart.table);
    new ResizeObserver(() => drawOne(id)).observe(part.querySelector(".plot"));
  }
}

function fill(chart) {
  const holder = chart.table.querySelector(".scroll");
  if (!chart.table.open || !chart.ready()) return holder.replaceChildren();
  const cells = chart.rows().map(([first, ...others]) => [
    typeof first === "number" ? short(first) : first, ...others.map((cell) => (typeof cell === "string" ? cell : chart.written(cell))),
  ]);
  holder.replaceChildren(table(chart.heads().map((head) => TITLES[head] ?? head), cells));
}

export function drawOne(id) {
  const chart = CHARTS[id], part = byId(id);
  const focused = part.contains(document.activeElement) && document.activeElement.tagName === "svg";
  part.querySelector(".readout").textContent = "";
  if (chart.ready()) chart.draw(part.querySelector(".plot"), part.querySelector(".readout"), state, chart.choose);
  else part.querySelector(".plot").replaceChildren();
  if (focused) part.querySelector("svg")?.focus({ preventScroll: true });
  fill(chart);
  offerFiles();
}

// Files are offered while the chart shows the settings in the fields. A button that has nothing to save is disabled:
// it would ignore the reader silently, or save a curve and points of different settings.
export function offerFiles() {
  for (const { ready, isCurrent, buttons } of Object.values(CHARTS)) {
    const isOffered = ready() && (!isCurrent || isCurrent());
    for (const button of buttons) button.disabled = !isOffered;
  }
}

export const drawAll = () => Object.keys(CHARTS).forEach(drawOne);
