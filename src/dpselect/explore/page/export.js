// Charts as SVG and PNG files, figures as CSV files, all made in the browser.

import { element } from "./draw.js";

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size", "text-anchor"];
const SHARPNESS = 2;

export function save(name, blob) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const saveCsv = (name, rows) => save(name, new Blob([csv(rows)], { type: "text/csv" }));

export const csv = (rows) => rows.map((row) => `${row.map(quoted).join(",")}\n`).join("");

const quoted = (field) => (/[",\n\r]|^\s|\s$/.test(field) ? `"${String(field).replaceAll('"', '""')}"` : String(field ?? ""));

export const saveSvg = (name, svg) => save(name, new Blob([standalone(svg)], { type: "image/svg+xml" }));

export async function savePng(name, svg) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  const canvas = element("canvas");
  [canvas.width, canvas.height] = size(svg).map((side) => side * SHARPNESS);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  save(name, await new Promise((done) => canvas.toBlob(done, "image/png")));
}

const size = (svg) => svg.getAttribute("viewBox").split(" ").slice(2).map(Number);

// The picture with inlined styles, on the colour of its card.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = [...svg.querySelectorAll("*")];
  [...copy.querySelectorAll("*")].forEach((part, index) => {
    const style = getComputedStyle(originals[index]);
    for (const name of STYLES) part.setAttribute(name, style.getPropertyValue(name).replaceAll('"', "'"));
    part.removeAttribute("class");
    part.removeAttribute("style");
  });
  const [width, height] = size(svg);
  for (const name of ["tabindex", "role"]) copy.removeAttribute(name);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", getComputedStyle(svg.closest(".card")).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}
