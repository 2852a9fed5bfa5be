// What the page shows: the scores, the settings, and the latest results.

import { byId } from "./draw.js";

export const state = {
  id: "", name: "", shape: "", count: "30", labels: [], scores: [], losses: [], order: [], csv: "",
  look: null, curve: null, curveKey: "", drawn: null, mechanism: "", epsilon: "0.2", unit: "people", shownCount: 10,
};

export function setScores({ id, name, unit, shape, monotonic, labels, scores, losses, csv }) {
  const order = losses.map((_, index) => index).sort((a, b) => losses[a] - losses[b] || a - b);
  if (shape && shape !== state.shape) { // a file states neither, and the reader's own input stays
    byId("unit").value = unit;
    byId("monotonic").checked = monotonic;
  }
  Object.assign(state, { id, name, shape, labels, scores, losses, order, csv, look: null, curve: null, drawn: null });
}

// The settings in the fields.
export function settings() {
  state.mechanism = document.querySelector("input[name=mechanism]:checked")?.value ?? "";
  state.unit = byId("unit").value.trim() || "points";
  const shown = byId("shown").value;
  state.shownCount = shown === "all" ? state.labels.length : Number(shown);
  return {
    id: state.id, epsilon: byId("epsilon").value.trim(), sensitivity: byId("sensitivity").value.trim(),
    monotonic: byId("monotonic").checked, mechanism: state.mechanism, unit: state.unit,
  };
}
