// The inverse questions: the epsilon for an error, and the epsilon of each of many selections.

import { ask } from "./api.js";
import { byId, element, TITLES, short, table } from "./draw.js";
import { settings, state } from "./state.js";

export function addQuestions(chooseEpsilon) {
  answering("needed", () => ({ error: byId("error").value, times: counted() === "times" ? byId("times").value : "" }), needed);
  answering("shares", () => ({ budget: byId("budget").value, selections: byId("selections").value, delta: byId("delta").value }), shared);

  function answering(id, fields, shown) {
    byId(id).addEventListener("submit", async (event) => {
      event.preventDefault();
      const outcome = byId(`${id}-outcome`);
      outcome.setAttribute("aria-busy", "true");
      outcome.replaceChildren(element("p", { class: "hint" }, "Computing …"));
      try {
        outcome.replaceChildren(...shown(await ask(id, { ...settings(), ...fields() })));
      } catch (error) {
        outcome.replaceChildren(element("p", { class: "error" }, error.message));
      }
      outcome.removeAttribute("aria-busy");
    });
  }

  function use(name, { epsilon, usable }) {
    if (!usable) return "–";
    const button = element("button", { type: "button", "aria-label": `Use epsilon ${epsilon} with ${TITLES[name]}` }, "Use");
    button.addEventListener("click", () => chooseEpsilon(epsilon, name));
    return button;
  }

  function needed({ mechanisms }) {
    const { epsilon } = mechanisms[state.mechanism];
    const text = epsilon === null ? `Every ε is accurate enough for ${TITLES[state.mechanism]}.` : `Ask for ε = ${epsilon} with ${TITLES[state.mechanism]}.`;
    const rows = Object.entries(mechanisms).map(([name, row]) => [TITLES[name], row.epsilon ?? "any", use(name, row)]);
    return [element("p", {}, element("strong", {}, text)), table(["Mechanism", "ε needed", "Use it"], rows)];
  }

  function shared({ mechanisms, better, accounting }) {
    const { epsilon, expected_error: error } = mechanisms[better];
    const kind = accounting === "pure" ? "pure ε" : "(ε, δ)";
    const text = `Take ε = ${epsilon} for each selection, with ${TITLES[better]}.`;
    const why = ` With a ledger of ${kind} it loses least on these scores: ${short(error)} ${state.unit} on average.`;
    const rows = Object.entries(mechanisms).map(([name, row]) => [TITLES[name], row.epsilon, short(row.expected_error), use(name, row)]);
    return [element("p", {}, element("strong", {}, text), why), table(["Mechanism", "ε each", "Average error", "Use it"], rows)];
  }
}

const counted = () => document.querySelector("input[name=counted]:checked").value;
