// Two answers, that is next tokens, whose logits several views compare.

import { ask, askBytes, startRun } from "./api.js";
import { h, replace, shown } from "./dom.js";
import { filtered } from "./sampling.js";
import { change } from "./state.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {{one: number, two: number, names: [string, string]}} Answers */
const OFFERED = 10; // likely tokens of each text

/** The likely next tokens of a run. @param {import("./api.js").Run} run @param {number} position */
async function likely(run, position) {
  return [...filtered(new Float32Array(await askBytes("api/logits", { run: run.run, position })), 1, 0, 1, OFFERED).order];
}

/**
 * Draws the choice of two answers. Without a choice, they are the most probable token of each text, or the two most probable ones.
 * @param {HTMLElement} root @param {Session} session @param {import("./state.js").State} state @param {number} position @param {import("./api.js").Run | null} other
 * @returns {Promise<Answers>}
 */
export async function drawAnswers(root, session, state, position, other = null) {
  const own = await likely(session.run, position);
  const others = other ? await likely(other, other.tokens.length - 1) : [];
  const one = state.one !== "" ? Number(state.one) : own[0];
  const two = state.two !== "" ? Number(state.two) : [...others, ...own].find((id) => id !== one) ?? one;
  const ids = [...new Set([one, two, ...own, ...others])];
  /** @type {import("./api.js").Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: ids.join(",") });
  const name = new Map(ids.map((id, i) => [id, shown(texts[i].text)]));
  const choice = (/** @type {"one" | "two"} */ key, /** @type {string} */ label, /** @type {number} */ chosen) => h("label", {}, label,
    h("select", { "data-answer": key, onchange: (/** @type {Event} */ event) => change({ one: String(one), two: String(two), [key]: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
      ids.map((id) => h("option", { value: id, selected: id === chosen }, name.get(id) ?? id))));
  const note = h("span", { class: "small quiet", role: "status" });
  const typed = (/** @type {"one" | "two"} */ key) => async (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    if (value === "") return;
    try {
      const run = await startRun({ model: session.model, text: value, target: "", special: false, muted: [] });
      const token = (session.shape.both ? run.source : run.tokens)[0];
      change({ one: String(one), two: String(two), [key]: String(token.id) }, { replace: true });
    } catch (error) {
      note.textContent = error instanceof Error ? error.message : String(error);
    }
  };
  replace(root, choice("one", "Answer A", one), choice("two", "Answer B", two),
    session.shape.tokenizer && h("label", {}, "or type A", h("input", { type: "text", size: 8, "data-type": "one", onchange: typed("one") })),
    session.shape.tokenizer && h("label", {}, "B", h("input", { type: "text", size: 8, "data-type": "two", onchange: typed("two") })), note);
  return { one, two, names: [name.get(one) ?? "", name.get(two) ?? ""] };
}

/** The field of the second text. @param {import("./state.js").State} state */
export function secondText(state) {
  return h("label", { style: { flex: 1 } }, "Second text", h("input", { type: "text", dir: "auto", value: state.text2, "data-field": "text2", style: { flex: 1, "min-width": "12rem" },
    onchange: (/** @type {Event} */ event) => change({ text2: /** @type {HTMLInputElement} */ (event.target).value, one: "", two: "" }, { replace: true }) }));
}

/** The words of a text, one of which is chosen. @param {import("./api.js").Token[]} tokens @param {number} chosen @param {(i: number) => void} [choose] */
export function wordChoice(tokens, chosen, choose = (i) => change({ token: String(i) }, { replace: true })) {
  return h("p", { class: "sentence", dir: "auto", role: "group", "aria-label": "Tokens" }, tokens.map((token, i) => h("button", { "aria-pressed": String(i === chosen), "data-word": i, class: token.special ? "special" : undefined,
    onclick: () => choose(i) }, token.text.trim() === "" ? shown(token.text) : token.text)));
}
