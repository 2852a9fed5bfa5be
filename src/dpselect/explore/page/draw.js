// Small helpers to build elements. Texts are always set as text, never as markup.

// The mechanisms in the order in which they are shown: their titles, and their style classes.
export const TITLES = {};
export const CLASSES = {};
const STYLES = 4; // as many as style.css has; then they repeat

export function setMechanisms(mechanisms) {
  mechanisms.forEach(({ name, title }, index) => {
    TITLES[name] = title[0].toUpperCase() + title.slice(1);
    CLASSES[name] = `style-${index % STYLES}`;
  });
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

// A number for a reader: four digits, and no exponent where it can be avoided.
export function short(number, digits = 4) {
  if (number === null || !Number.isFinite(number)) return "–";
  if (number === 0) return "0";
  const size = Math.abs(number);
  if (size < 1e-4 || size >= 1e9) return number.toExponential(Math.min(2, digits - 1)).replace("e", " e");
  return Number(number.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 8 });
}

export function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)));
  const body = rows.map(([first, ...others]) =>
    element("tr", {}, element("th", { scope: "row" }, first), ...others.map((text) => element("td", {}, text))),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}
