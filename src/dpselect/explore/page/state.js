// What the page shows: the settings, and the latest results.

import { byId, quotient } from "./draw.js";

export const state = {
  id: "", name: "", shape: "", count: "30", look: null, curve: null, shownCurveKey: "", curveKey: "", drawn: null, target: 0,
  low: -4, high: 0, amount: "", currencies: {}, forms: {}, written: {},
};

const checked = (name) => document.querySelector(`input[name=${name}]:checked`)?.value ?? "";

// The settings in the fields, as the explorer takes them: texts, and a boolean for each box.
export function settings() {
  const boxes = Object.fromEntries([...document.querySelectorAll("#settings [type=checkbox]")].map(({ id, checked }) => [id, checked]));
  return {
    ...Object.fromEntries(new FormData(byId("settings"))), ...boxes,
    question: checked("question"), id: state.id, amount: byId("amount").value.trim(), low: state.low, high: state.high,
  };
}

// The curve depends on everything but the amount.
export const curveKey = () => JSON.stringify({ ...settings(), amount: "", unit: "" });

export const symbol = () => state.currencies[byId("currency").value]?.symbol ?? "ε";

// The slider around an amount. An amount beyond its ends makes it longer, to whole decades.
export function moveSlider() {
  const amount = quotient(byId("amount").value), slider = byId("slider"), power = Math.log10(amount);
  if (amount > 0 && Number.isFinite(power) && power >= -12 && power <= 2) {
    if (power < state.low) state.low = Math.floor(power);
    if (power > state.high) state.high = Math.ceil(power);
  }
  [slider.min, slider.max] = [Math.round(100 * state.low), Math.round(100 * state.high)];
  if (amount > 0) slider.value = Math.round(100 * power);
  slider.setAttribute("aria-valuetext", `${symbol()} = ${byId("amount").value}`);
}
