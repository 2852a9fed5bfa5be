// The page: reads the fields, asks the explorer on this machine, and shows what it answers.

import { ask, Line, load } from "./api.js";
import { addQuestions } from "./backwards.js";
import { addTools, drawAll, drawOne } from "./charts.js";
import { byId, CLASSES, element, quotient, setMechanisms, short, TITLES } from "./draw.js";
import { setScores, settings, state } from "./state.js";

const line = new Line("look", "code", "curve");
let lastChange = 0, speaking = 0, resting = 0;

function changed() {
  lastChange = performance.now();
  showDrawn(null, "simulated selections, and see where they land.");
  line.put("look", look);
  // Updates that need not follow a moving slider wait until it rests.
  clearTimeout(resting);
  resting = setTimeout(() => {
    line.put("code", code);
    if (curveKey() !== state.curveKey) line.put("curve", curve);
  }, 200);
}

async function look() {
  const since = lastChange, asked = settings();
  try {
    const answer = await ask("look", asked);
    if (asked.id !== state.id) return;
    Object.assign(state, { look: answer, epsilon: asked.epsilon });
    refuse("");
  } catch (error) {
    return refuse(error.message);
  }
  showAnswer();
  drawAll();
  if (performance.getEntriesByName("answer").length > 500) performance.clearMeasures("answer");
  performance.measure("answer", { start: since, end: performance.now() });
}

// The curve depends on the scores, the sensitivity and the direction, not on epsilon.
const curveKey = () => JSON.stringify([settings().id, settings().sensitivity, settings().monotonic]);

async function curve() {
  const key = curveKey();
  try {
    const answer = await ask("curve", settings());
    if (key !== curveKey()) return;
    state.curve = answer;
    if (answer.complete) state.curveKey = key;
    else line.put("curve", curve);
  } catch {
    return; // the settings are refused, and the request for the results reports it
  }
  drawOne("curve");
}

async function code() {
  try {
    const { python, command } = await ask("code", settings());
    byId("python").textContent = python;
    byId("command").textContent = command;
  } catch {
    byId("python").textContent = byId("command").textContent = "";
  }
}

function showAnswer() {
  const { look: figures, mechanism } = state;
  byId("sentence").textContent = figures.sentence;
  byId("factor").textContent = figures.factor_sentence;
  byId("guarantee").textContent = figures.guarantee;
  const rows = Object.entries(figures.mechanisms).map(([name, row]) => element("tr", name === mechanism ? { class: "chosen" } : {},
    element("th", { scope: "row" }, element("i", { class: `swatch ${CLASSES[name]}`, "aria-hidden": "true" }), TITLES[name]),
    ...[row.best, row.expected_error, row.error_95].map((number) => element("td", { "data-value": number }, short(number)))));
  byId("figures").tBodies[0].replaceChildren(...rows);
  // A screen reader hears the sentence when the slider rests, not at every step.
  clearTimeout(speaking);
  speaking = setTimeout(() => (byId("spoken").textContent = `${figures.sentence} ${figures.factor_sentence}`), 600);
}

// Refused settings: the message is shown next to its field, and the outdated results are greyed out.
function refuse(message) {
  const ofEpsilon = message.startsWith("epsilon");
  byId("epsilon-error").textContent = ofEpsilon ? message : "";
  byId("settings-error").textContent = ofEpsilon ? "" : message;
  for (const field of ["epsilon", "sensitivity"]) byId(field).setAttribute("aria-invalid", message.startsWith(field));
  document.querySelectorAll(".follows").forEach((part) => part.setAttribute("aria-busy", message !== ""));
}

function showScores(answer) {
  setScores(answer);
  byId("shape").value = answer.shape;
  showCount(answer);
  byId("scores-error").textContent = "";
  byId("scores-summary").textContent = `${state.name}: ${state.labels.length.toLocaleString("en")} candidates`;
  changed();
}

// The number of candidates can be chosen only for a shape; a file has its own.
function showCount({ shape, labels }) {
  const count = byId("count");
  if (!count.disabled) state.count = count.value;
  count.disabled = !shape;
  count.value = labels.length;
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

function chooseEpsilon(epsilon, mechanism = state.mechanism) {
  byId("epsilon").value = epsilon;
  document.querySelector(`input[name=mechanism][value=${mechanism}]`).checked = true;
  moveSlider();
  changed();
}

function moveSlider() {
  const epsilon = quotient(byId("epsilon").value), slider = byId("epsilon-slider");
  if (epsilon > 0) slider.value = Math.round(100 * Math.log10(epsilon));
  slider.setAttribute("aria-valuetext", `epsilon ${byId("epsilon").value}`);
}

function showDrawn(drawn, text) {
  state.drawn = drawn;
  byId("drawn").textContent = text;
  byId("drawn-legend").hidden = !drawn;
}

async function draw(event) {
  const total = Number(event.target.dataset.draws);
  try {
    const asked = settings();
    const { counts } = await ask("draw", { ...asked, draws: String(total) });
    if (asked.id !== state.id) return;
    const most = counts.indexOf(Math.max(...counts));
    const text = total === 1 ? `landed on ${state.labels[most]}.` : `landed ${counts[state.order[0]].toLocaleString("en")} of ${total.toLocaleString("en")} times on ${state.labels[state.order[0]]}, which is the best.`;
    showDrawn({ counts, total, fresh: true }, text);
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
  byId("epsilon-slider").addEventListener("input", (event) => {
    byId("epsilon").value = Number((10 ** (event.target.value / 100)).toPrecision(3));
    event.target.setAttribute("aria-valuetext", `epsilon ${byId("epsilon").value}`);
    changed();
  });
  byId("epsilon").addEventListener("input", () => { moveSlider(); changed(); });
  for (const id of ["sensitivity", "unit", "monotonic", "mechanism"]) byId(id).addEventListener("input", changed);
  byId("shown").addEventListener("change", () => { settings(); drawOne("probabilities"); });
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

// What the page begins with: the mechanisms are a choice, and a legend of the colours.
function showMechanisms(mechanisms) {
  setMechanisms(mechanisms);
  const swatch = (name) => element("i", { class: `swatch ${CLASSES[name]}`, "aria-hidden": "true" });
  byId("mechanism").append(...Object.entries(TITLES).map(([name, title], index) =>
    element("label", { class: "choice" }, element("input", { type: "radio", name: "mechanism", value: name, ...(index ? {} : { checked: "" }) }), swatch(name), title)));
  byId("drawn-legend").before(...Object.entries(TITLES).map(([name, title]) => element("span", {}, swatch(name), title)));
  state.mechanism = settings().mechanism;
}

async function start() {
  listen();
  addTools(chooseEpsilon);
  addQuestions(chooseEpsilon);
  try {
    const { version, mechanisms, shapes, scores } = await ask("start", {});
    showMechanisms(mechanisms);
    byId("version").textContent = version;
    byId("shape").append(...shapes.map(({ name, title }) => element("option", { value: name }, title)));
    moveSlider();
    showScores(scores);
  } catch (error) {
    byId("scores-error").textContent = error.message;
  }
}

start();
