// The three charts, each with its files and with a table for readers who cannot see it.

import { drawCurve } from "./chart_curve.js";
import { drawProbabilities } from "./chart_probabilities.js";
import { drawTail } from "./chart_tail.js";
import { byId, element, TITLES, short, table } from "./draw.js";
import { saveCsv, savePng, saveSvg } from "./export.js";
import { state } from "./state.js";

const CHARTS = {
  probabilities: {
    ready: () => state.look,
    draw: drawProbabilities,
    heads: () => ["candidate", "score", ...names(), ...(state.drawn ? [`drawn of ${state.drawn.total}`] : [])],
    rows: () => state.order.map((index) => [
      state.labels[index], state.scores[index],
      ...names().map((name) => state.look.mechanisms[name].probabilities[index]), ...(state.drawn ? [state.drawn.counts[index]] : []),
    ]),
  },
  curve: {
    ready: () => state.look && state.curve,
    draw: drawCurve,
    heads: () => ["epsilon", ...names()],
    rows: () => state.curve.epsilons.map((epsilon, index) => [epsilon, ...names().map((name) => state.curve.errors[name][index])]),
  },
  tail: {
    ready: () => state.look,
    draw: drawTail,
    heads: () => ["error", ...names()],
    rows: () => state.look.thresholds.map((t, index) => [t, ...names().map((name) => state.look.mechanisms[name].tail[index])]),
  },
};

const names = () => Object.keys(TITLES);

export function addTools(chooseEpsilon) {
  for (const [id, chart] of Object.entries(CHARTS)) {
    const part = byId(id);
    chart.choose = chooseEpsilon;
    const files = {
      PNG: () => savePng(`${id}.png`, part.querySelector("svg")),
      SVG: () => saveSvg(`${id}.svg`, part.querySelector("svg")),
      CSV: () => saveCsv(`${id}.csv`, [chart.heads(), ...chart.rows()]),
    };
    const buttons = Object.entries(files).map(([kind, write]) => {
      const button = element("button", { type: "button", "aria-label": `Save ${part.querySelector("h2").textContent} as ${kind}` }, `Save ${kind}`);
      button.addEventListener("click", () => chart.ready() && write());
      return button;
    });
    const title = part.querySelector("h2").textContent;
    const holder = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Table: ${title}` });
    chart.table = element("details", {}, element("summary", {}, "Show as a table"), holder);
    chart.table.addEventListener("toggle", () => fill(chart));
    part.querySelector(".tools").append(...buttons, chart.table);
    new ResizeObserver(() => drawOne(id)).observe(part.querySelector(".plot"));
  }
}

function fill(chart) {
  const holder = chart.table.querySelector(".scroll");
  if (!chart.table.open || !chart.ready()) return holder.replaceChildren();
  const cells = chart.rows().map((row) => row.map((cell) => (typeof cell === "number" || cell === null ? short(cell) : cell)));
  holder.replaceChildren(table(chart.heads().map((head) => TITLES[head] ?? head), cells));
}

export function drawOne(id) {
  const chart = CHARTS[id], part = byId(id);
  if (!chart.ready()) return;
  const focused = part.contains(document.activeElement) && document.activeElement.tagName === "svg";
  part.querySelector(".readout").textContent = "";
  chart.draw(part.querySelector(".plot"), part.querySelector(".readout"), state, chart.choose);
  if (focused) part.querySelector("svg").focus({ preventScroll: true });
  fill(chart);
}

export const drawAll = () => Object.keys(CHARTS).forEach(drawOne);
