// The page: reads the fields, asks the explorer on this machine, and shows what it answers.

import { ask, Line, load } from "./api.js";
import { addQuestions } from "./backwards.js";
import { addTools, drawAll, drawOne, offerFiles } from "./charts.js";
import { byId, CLASSES, element, quotient, setChoices, short, table, TITLES } from "./draw.js";
import { curveKey, moveSlider, settings, state, symbol } from "./state.js";

const line = new Line("begin", "look", "details", "curve");
const INVITATION = "simulated answers, and see where they land.";
let lastChange = 0, speaking = 0, resting = [];

function changed() {
  lastChange = performance.now();
  showDrawn(null, INVITATION);
  offerFiles();
  line.put("look", look);
  // Updates that need not follow a moving slider wait until it rests, the slow ones longer.
  resting.forEach(clearTimeout);
  resting = [
    setTimeout(() => curveKey() !== state.curveKey && line.put("curve", curve), 200),
    setTimeout(() => line.put("details", details), 500),
  ];
}

// Another question, other data or another currency: the slider starts where there is something to see.
function restart() {
  Object.assign(state, { curve: null, shownCurveKey: "", curveKey: "" });
  drawOne("curve"); // the old one would stand beside the new results until the new one comes
  line.put("begin", async () => {
    try {
      const { amount, low, high, target } = await ask("begin", { ...settings(), amount: "1" });
      Object.assign(state, { low, high, target, isMoved: false });
      byId("amount").value = amount;
      showScale();
    } catch (error) {
      return refuse(error.message);
    }
  });
  changed();
}

async function look() {
  const since = lastChange, asked = settings();
  try {
    const answer = await ask("look", asked);
    if (asked.id !== state.id || asked.question !== settings().question) return;
    Object.assign(state, { look: answer, amount: asked.amount });
    refuse("");
  } catch (error) {
    return refuse(error.message);
  }
  showAnswer();
  drawAll();
  if (performance.getEntriesByName("answer").length > 500) performance.clearMeasures("answer");
  performance.measure("answer", { start: since, end: performance.now() });
}

async function curve() {
  const key = curveKey();
  try {
    const answer = await ask("curve", settings());
    if (key !== curveKey()) return;
    // Without the key of an earlier curve, which this one replaces: it is asked for again with its settings.
    Object.assign(state, { curve: answer, shownCurveKey: key, curveKey: answer.complete ? key : "" });
    if (!answer.complete) line.put("curve", curve);
  } catch {
    return; // the settings are refused, and the request for the results reports it
  }
  drawOne("curve");
}

async function details() {
  let answer = { compared: "", python: "", command: "" };
  try {
    answer = await ask("details", settings());
  } catch {
    // as above
  }
  for (const [id, text] of Object.entries(answer)) byId(id).textContent = text;
}

function showAnswer() {
  const { look: { sentence, heads, rows, taken, choices, chart, runs, draws, beliefs, words } } = state;
  setChoices(choices);
  showChoices(heads[0]);
  byId("sentence").textContent = sentence;
  byId("figures").tHead.replaceChildren(element("tr", {}, ...heads.map((head, index) => element("th", { scope: "col", "data-name": ["choice", ...rows[taken].map(({ name }) => name)][index] }, head))));
  byId("figures").tBodies[0].replaceChildren(...Object.entries(rows).map(([name, cells]) => element("tr", name === taken ? { class: "chosen" } : {},
    element("th", { scope: "row" }, swatch(name), TITLES[name]),
    ...cells.map((cell) => element("td", { "data-name": cell.name, "data-value": cell.value }, cell.text)))));
  byId("probabilities-title").textContent = chart.title;
  byId("simulated").textContent = runs ? `By ${runs.toLocaleString("en")} simulated answers.` : "";
  byId("shown").parentElement.hidden = !chart.ranked;
  document.querySelectorAll("[data-draws]").forEach((button) => (button.hidden = !draws.includes(Number(button.dataset.draws))));
  byId("person-title").textContent = beliefs.title;
  byId("beliefs").replaceChildren(table(["If somebody believed that a person is in the data with", "afterwards at most"], beliefs.rows));
  byId("beliefs-about").textContent = beliefs.about;
  byId("tail").hidden = !state.look.thresholds.length;
  byId("words").replaceChildren(...words.map((text) => element("p", {}, text)));
  // A screen reader hears the sentence when the slider rests, not at every step.
  clearTimeout(speaking);
  speaking = setTimeout(() => (byId("spoken").textContent = sentence), 600);
}

const swatch = (name) => element("i", { class: `swatch ${CLASSES[name]}`, "aria-hidden": "true" });

// The mechanisms or methods are a choice, and a legend of the colours. They change with the question.
function showChoices(title) {
  const field = byId("choice"), shown = JSON.stringify([title, TITLES]);
  if (field.dataset.shown === shown) return;
  const chosen = field.querySelector(":checked")?.value ?? "auto", focused = field.contains(document.activeElement);
  const radio = (name) => element("input", { type: "radio", name: "choice", value: name, ...(name === chosen ? { checked: "" } : {}) });
  field.dataset.shown = shown;
  field.replaceChildren(element("legend", {}, title),
    element("label", { class: "choice" }, radio("auto"), "Automatic, as a table chooses it"),
    ...Object.entries(TITLES).map(([name, text]) => element("label", { class: "choice" }, radio(name), swatch(name), text)));
  if (focused) field.querySelector(":checked")?.focus();
  byId("drawn-legend").parentElement.replaceChildren(...Object.entries(TITLES).map(([name, text]) => element("span", {}, swatch(name), text)), byId("drawn-legend"));
}

// Refused settings: the message is shown next to its field, and the outdated results are greyed out.
function refuse(message) {
  const field = /^(epsilon|rho) /.test(message) ? "amount" : message.match(/^\w+/)?.[0] ?? "";
  byId("amount-error").textContent = field === "amount" ? message : "";
  byId("settings-error").textContent = field === "amount" ? "" : message;
  for (const one of document.querySelectorAll("#settings input, #amount")) one.toggleAttribute("aria-invalid", false);
  if (message) byId(field)?.setAttribute("aria-invalid", "true");
  document.querySelectorAll(".follows").forEach((part) => part.setAttribute("aria-busy", message !== ""));
}

function showScores(answer) {
  const { id, name, unit, shape, monotonic, candidates } = answer;
  if (shape && shape !== state.shape) { // a file states neither, and the reader's own input stays
    byId("unit").value = unit;
    state.written.monotonic = monotonic;
    if (byId("monotonic")) byId("monotonic").checked = monotonic;
  }
  Object.assign(state, { id, name, shape });
  byId("shape").value = shape;
  showCount(answer);
  byId("scores-error").textContent = "";
  byId("scores-summary").textContent = `${name}: ${candidates.toLocaleString("en")} candidates`;
  restart();
}

// The number of candidates can be chosen only for a shape; a file has its own.
function showCount({ shape, candidates }) {
  const count = byId("count");
  if (!count.disabled) state.count = count.value;
  count.disabled = !shape;
  count.value = candidates;
}

// The file input shows a file name only while the scores of that file are shown.
async function loading(request, file = null) {
  try {
    showScores(await request());
    if (!file) byId("file").value = "";
  } catch (error) {
    byId("scores-error").textContent = file ? `${file.name}: ${error.message} (still shown: ${state.name})` : error.message;
    if (file) byId("file").value = "";
  }
}

// Each question has its fields, and keeps what is written in a field that the one before has, too.
function showQuestion() {
  const form = state.forms[settings().question];
  for (const one of document.querySelectorAll(".fields [name]")) state.written[one.name] = one.type === "checkbox" ? one.checked : one.value;
  for (const id of ["fields", "shared"]) byId(id).replaceChildren(...form.fields.filter(({ shared }) => shared === (id === "shared")).flatMap(fieldOf));
  document.querySelectorAll("[data-of]").forEach((part) => (part.hidden = part.dataset.of !== form.data));
  byId("unit-field").hidden = form.counts;
  const automatic = document.querySelector("input[name=choice][value=auto]");
  if (automatic) automatic.checked = true;
  byId("needed-outcome").replaceChildren();
  restart();
}

// A field of a question, and its hint.
function fieldOf({ name, label, hint, value, empty, box, choices }) {
  const known = state.written[name] ?? (box ? value !== "" : value), about = hint ? { "aria-describedby": `${name}-hint` } : {};
  const offered = Object.entries(choices).map(([one, words]) => element("option", { value: one, ...(one === known ? { selected: "" } : {}) }, words));
  const input = offered.length ? element("select", { id: name, name, ...about }, ...offered)
    : element("input", { id: name, name, autocomplete: "off", ...about, ...(box ? { type: "checkbox", ...(known ? { checked: "" } : {}) } : { value: known, placeholder: empty }) });
  const part = box ? element("label", { class: "choice" }, input, ` ${label}`)
    : element("div", { class: `field${offered.length ? " wide" : ""}` }, element("label", { for: name }, label), input);
  return hint ? [part, element("p", { class: "hint", id: `${name}-hint` }, hint)] : [part];
}

function showCurrency() {
  const { symbol: sign, has_delta: hasDelta } = state.currencies[byId("currency").value];
  byId("symbol").textContent = sign;
  byId("delta-field").hidden = !hasDelta;
  byId("needed-outcome").replaceChildren();
}

function showScale() {
  moveSlider();
  const ends = [0, 1, 2, 3, 4].map((part) => 10 ** (state.low + (part / 4) * (state.high - state.low)));
  byId("scale").replaceChildren(...ends.map((end) => element("span", {}, short(end, 2))));
}

function chooseAmount(amount, choice = null) {
  byId("amount").value = amount;
  if (choice) document.querySelector(`input[name=choice][value=${choice}]`).checked = true;
  state.isMoved = true;
  showScale();
  changed();
}

function showDrawn(drawn, text) {
  state.drawn = drawn;
  byId("drawn").textContent = text;
  byId("drawn-legend").hidden = !drawn;
}

async function draw(event) {
  try {
    const asked = settings(), { counts, total, told } = await ask("draw", { ...asked, draws: event.target.dataset.draws });
    if (asked.id !== state.id || asked.question !== settings().question) return;
    showDrawn({ counts, total, fresh: true }, told);
    drawOne("probabilities");
    state.drawn.fresh = false;
  } catch (error) {
    byId("drawn").textContent = error.message;
  }
}

async function copy(event) {
  const from = byId(event.target.closest("button").dataset.copy);
  try {
    await navigator.clipboard.writeText(from.textContent);
    byId("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(from);
    byId("copied").textContent = "Selected: press Ctrl-C, or Command-C, to copy.";
  }
}

function listen() {
  byId("slider").addEventListener("input", ({ target }) => {
    byId("amount").value = Number((10 ** (target.value / 100)).toPrecision(3));
    target.setAttribute("aria-valuetext", `${symbol()} = ${byId("amount").value}`);
    state.isMoved = true;
    changed();
  });
  byId("amount").addEventListener("input", () => {
    state.isMoved = true;
    if (quotient(byId("amount").value) > 0) showScale();
    changed();
  });
  byId("settings").addEventListener("submit", (event) => event.preventDefault());
  byId("settings").addEventListener("input", ({ target }) => target.matches("input[name], .fields [name]") && (target.closest("[data-begins]") && !state.isMoved ? restart : changed)());
  byId("currency").addEventListener("change", () => { showCurrency(); restart(); });
  byId("question").addEventListener("change", showQuestion);
  byId("shown").addEventListener("change", () => drawOne("probabilities"));
  const shape = () => byId("shape").value && loading(() => ask("shape", { shape: byId("shape").value, candidates: byId("count").disabled ? state.count : byId("count").value }));
  byId("shape").addEventListener("change", shape);
  byId("count").addEventListener("change", shape);
  const names = () => ({ column: byId("column").value, label: byId("label").value });
  byId("file").addEventListener("change", ({ target }) => {
    const [file] = target.files;
    if (file) loading(() => load(file, { name: file.name, ...names() }), file);
  });
  byId("paste-load").addEventListener("click", () => loading(() => load(byId("paste").value, { name: "Pasted scores", ...names() })));
  document.querySelectorAll("[data-draws]").forEach((button) => button.addEventListener("click", draw));
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", copy));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
}

async function start() {
  listen();
  addTools(chooseAmount);
  addQuestions(chooseAmount);
  try {
    const { version, questions, question, currencies, shapes, scores } = await ask("start", {});
    byId("question").append(...questions.map(({ name, title }) =>
      element("label", {}, element("input", { type: "radio", name: "question", value: name, ...(name === question ? { checked: "" } : {}) }), title)));
    state.forms = Object.fromEntries(questions.map((one) => [one.name, one]));
    state.currencies = Object.fromEntries(currencies.map((one) => [one.name, one]));
    byId("currency").append(...currencies.map(({ name, title }) => element("option", { value: name }, title)));
    byId("shape").append(...shapes.map(({ name, title }) => element("option", { value: name }, title)));
    byId("version").textContent = version;
    state.id = scores.id;
    showCurrency();
    showQuestion();
    showScores(scores);
  } catch (error) {
    byId("scores-error").textContent = error.message;
  }
}

start();
