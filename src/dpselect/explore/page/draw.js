// Small helpers to build elements and to write numbers. Texts are always set as text, never as markup.

// The mechanisms or methods in the order in which they are shown: their titles, and their style classes.
export let TITLES = {};
export let CLASSES = {};
const STYLES = 5; // as many as style.css has; then they repeat

export const begun = (title) => title[0].toUpperCase() + title.slice(1);

export function setChoices(choices) {
  TITLES = Object.fromEntries(choices.map(({ name, title }) => [name, begun(title)]));
  CLASSES = Object.fromEntries(choices.map(({ name }, index) => [name, `style-${index % STYLES}`]));
}

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.map(textOrNode));
  return made;
}

const textOrNode = (child) => (child instanceof Node ? child : String(child));

// The number of a text such as 0.5 or 1/3.
export function quotient(text) {
  const [top, bottom = 1] = text.split("/").map(Number);
  return top / bottom;
}

// A number for a reader: four digits, and a power of ten only for very small and very large ones.
export function short(number, digits = 4) {
  if (number === null || !Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size >= 1e-4 && size < 1e9) return Number(number.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
  const [digitsOf, power] = number.toExponential(Math.min(2, digits - 1)).split("e");
  const factor = Number(digitsOf) === 1 ? "" : `${Number(digitsOf)} × `;
  return `${factor}10${[...String(Number(power))].map((sign) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign] ?? "⁻").join("")}`;
}

// A probability, rounded down: one that is nearly one is not shown as one.
export function chance(probability) {
  if (probability > 0.9999) return "above 0.9999";
  if (!(probability > 0)) return short(probability);
  const unit = 10 ** (Math.floor(Math.log10(probability)) - 3);
  return short(Math.floor(probability / unit + 1e-9) * unit);
}

export function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...others]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...others.map((text) => element("td", {}, text))),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
