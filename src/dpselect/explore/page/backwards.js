// The inverse question: the budget for an error.

import { ask } from "./api.js";
import { byId, element, table, TITLES } from "./draw.js";
import { settings, state, symbol } from "./state.js";

const counted = () => document.querySelector("input[name=counted]:checked").value;

export function addQuestions(chooseAmount) {
  byId("needed").addEventListener("submit", async (event) => {
    event.preventDefault();
    const outcome = byId("needed-outcome");
    outcome.setAttribute("aria-busy", "true");
    outcome.replaceChildren(element("p", { class: "hint" }, "Computing …"));
    try {
      const target = { error: byId("error").value, times: counted() === "times" ? byId("times").value : "" };
      outcome.replaceChildren(...shown(await ask("needed", { ...settings(), ...target })));
    } catch (error) {
      outcome.replaceChildren(element("p", { class: "error" }, error.message));
    }
    outcome.removeAttribute("aria-busy");
  });

  function use(name, { amount, usable }) {
    if (!usable) return "–";
    const button = element("button", { type: "button", "aria-label": `Use ${symbol()} = ${amount} with ${TITLES[name]}` }, "Use");
    button.addEventListener("click", () => chooseAmount(amount, name));
    return button;
  }

  function shown({ choices }) {
    const { taken } = state.look, { amount, usable } = choices[taken];
    const text = amount === null ? `Every budget is enough for ${TITLES[taken]}.`
      : usable ? `Ask for ${symbol()} = ${amount} with ${TITLES[taken]}.` : `${TITLES[taken]} needs ${amount}.`;
    const rows = Object.entries(choices).map(([name, row]) => [TITLES[name], row.amount ?? "any", use(name, row)]);
    return [element("p", {}, element("strong", {}, text)), table([state.look.heads[0], `${symbol()} needed`, "Use it"], rows)];
  }
}
