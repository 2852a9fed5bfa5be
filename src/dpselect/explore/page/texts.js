// The width of a text in a chart, and how much of it fits.

const canvas = document.createElement("canvas").getContext("2d");
canvas.font = '12px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif'; // as style.css has it

export const textWidth = (text) => canvas.measureText(text).width;

// The text, cut to fit with an ellipsis.
export function cut(text, room) {
  if (textWidth(text) <= room) return text;
  const letters = [...text];
  let low = 0, high = letters.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (textWidth(`${letters.slice(0, middle).join("")}…`) <= room) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("").trimEnd()}…`;
}
