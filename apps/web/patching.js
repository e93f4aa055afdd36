// Patching from another text into this one, and steering by the difference of two texts.

import { ask, startRun } from "./api.js";
import { drawAnswers, secondText } from "./answers.js";
import { figure, h, replace, shown } from "./dom.js";
import { matrix } from "./matrix.js";
import { change } from "./state.js";

/** Texts with the same number of tokens in most vocabularies. @type {[string, string, string][]} */
const PAIRS = [
  ["Anna or John: she or he", "Anna went to the store because", "John went to the store because"],
  ["who gives", "When Mary and John went to the store, John gave a drink to", "When Mary and John went to the store, Mary gave a drink to"],
  ["queen or farmer", "The queen went to the market because", "The farmer went to the market because"],
];

/** @param {import("./main.js").Session} session @param {import("./state.js").State} state */
function inputs(session, state) {
  return [h("p", { class: "quiet small" }, "The first text is the one above."), h("div", { class: "row" }, secondText(state)),
    session.shape.tokenizer && h("div", { class: "row chips", style: { margin: ".6rem 0" } }, h("b", {}, "Try this:"), PAIRS.map(([name, text, text2]) =>
      h("button", { "data-pair-of": name, onclick: () => change({ text, text2, ids: "", one: "", two: "", token: "" }, { replace: true }) }, name)))];
}

/** Why a model has no patches or steering; empty if it has. @param {import("./main.js").Session} session @param {boolean} writes */
function refusal(session, writes) {
  if (!session.shape.languageModel) return "This model predicts no tokens.";
  if (session.shape.both) return "For models with an encoder and a decoder, this view has no texts of equal length.";
  return writes && !session.shape.spec.decoder ? "An encoder writes no text." : "";
}

/** @type {import("./circuits.js").Draw} */
export async function drawPatching(root, session, state, still) {
  const heading = [h("h2", {}, "Patching from the second text"), h("p", { class: "quiet small" }, "Where is the fact on which an answer rests? Run the first text, but replace the residual stream before one layer at one token by that of the second text, and see how far the answer moves. The texts need the same number of tokens.")];
  const why = refusal(session, false);
  if (why) return replace(root, h("section", { class: "panel" }, heading, h("p", { class: "quiet" }, why)));
  if (state.text2.trim() === "") return replace(root, h("section", { class: "panel" }, heading, inputs(session, state), h("p", { class: "quiet" }, "Type a second text, or choose a pair.")));
  const other = await startRun({ model: state.model, text: state.text2, target: "", muted: [] });
  if (other.tokens.length !== session.run.tokens.length) {
    if (!still()) return undefined;
    return replace(root, h("section", { class: "panel" }, heading, inputs(session, state), h("p", { class: "error", role: "alert" }, `The first text has ${session.run.tokens.length} tokens, the second ${other.tokens.length}; expected equal numbers.`)));
  }
  const choice = h("div", { class: "row", style: { margin: ".6rem 0" } });
  const { one, two, names } = await drawAnswers(choice, session, state, session.run.tokens.length - 1, other);
  /** @type {{into: number, from: number, patched: number[][]}} */
  const found = await ask("api/patched", { run: session.run.run, other: other.run, one, two });
  if (!still()) return undefined;
  const { tokens } = session.run;
  const columns = tokens.map((token, i) => (token.id === other.tokens[i].id ? shown(token.text) : `${shown(token.text)} ← ${shown(other.tokens[i].text)}`));
  const moved = found.patched.map((row) => row.map((value) => value - found.into));
  const [best] = moved.flatMap((row, layer) => row.map((value, token) => ({ layer, token, value }))).filter(({ token }) => token < tokens.length - 1).sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
  return replace(root, h("section", { class: "panel" }, heading, inputs(session, state), choice,
    h("p", {}, `Logit of “${names[0]}” minus that of “${names[1]}”: `, h("b", { class: "mono", "data-into": "", title: String(found.into) }, figure(found.into)), " after the first text, ", h("b", { class: "mono", "data-from": "", title: String(found.from) }, figure(found.from)), " after the second. The map shows by how much each patch changes the first number; the whole way is ", h("b", { class: "mono" }, figure(found.from - found.into)), "."),
    best && h("p", {}, `Before the last token, the greatest change is at “${columns[best.token]}” before layer ${best.layer}: ${figure(best.value)}.`)),
  h("section", { class: "panel" }, h("h2", {}, "Change by layer and token"), matrix("change of the difference", [...moved].reverse(), { rows: moved.map((_, i) => `before layer ${i}`).reverse(), columns, most: Math.max(...moved.flat().map(Math.abs), Math.abs(found.from - found.into), 1e-9) })));
}

/** @type {import("./circuits.js").Draw} */
export async function drawSteering(root, session, state, still) {
  const heading = [h("h2", {}, "Steering towards the second text"), h("p", { class: "quiet small" }, "The mean of the residual stream of the second text minus that of the first is a direction. Add it, times a factor, before one layer at every token, and let the model continue the first text.")];
  const why = refusal(session, true);
  if (why) return replace(root, h("section", { class: "panel" }, heading, h("p", { class: "quiet" }, why)));
  if (state.text2.trim() === "") return replace(root, h("section", { class: "panel" }, heading, inputs(session, state), h("p", { class: "quiet" }, "Type a second text, or choose a pair.")));
  const last = session.shape.stack("self").layers - 1;
  const layer = state.depth !== "" && Number(state.depth) <= last ? Number(state.depth) : Math.ceil(last / 2);
  const strength = Number.isFinite(Number(state.strength)) ? Number(state.strength) : 1;
  const other = await startRun({ model: state.model, text: state.text2, target: "", muted: [] });
  const written = async (/** @type {number} */ by) => {
    /** @type {number[]} */
    const ids = await ask("api/steered", { run: session.run.run, other: other.run, layer, strength: by });
    /** @type {import("./api.js").Token[]} */
    const texts = ids.length ? await ask("api/texts", { model: session.model, ids: ids.join(",") }) : [];
    return texts.map(({ text }) => text);
  };
  const [before, after] = [await written(0), await written(strength)];
  if (!still()) return undefined;
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.field;
  const slider = (/** @type {"depth" | "strength"} */ key, /** @type {string} */ label, /** @type {number} */ value, /** @type {Record<string, number>} */ range) => {
    const output = h("output", { class: "mono" }, value);
    const input = h("input", { type: "range", ...range, "data-field": key, oninput: () => { output.textContent = input.value; }, onchange: () => change({ [key]: input.value }, { replace: true }) });
    input.value = String(value);
    return h("label", {}, label, input, output);
  };
  const text = (/** @type {string} */ title, /** @type {string[]} */ tokens, /** @type {string} */ name) => h("div", {}, h("h3", {}, title), h("p", { class: "sample", dir: "auto", "data-written": name, tabindex: "0", role: "region", "aria-label": title }, h("span", { class: "quiet" }, session.run.tokens.filter((token) => !token.special).map((token) => token.text).join("")),
    tokens.map((each, i) => (name === "after" && each !== before[i] ? h("b", {}, each) : each))));
  replace(root, h("section", { class: "panel" }, heading, inputs(session, state),
    h("div", { class: "row" }, slider("depth", "Before layer", layer, { min: 0, max: last, step: 1 }), slider("strength", "Factor", strength, { min: -8, max: 8, step: 0.5 }))),
  h("section", { class: "panel" }, h("div", { class: "pair" }, text("Without steering", before, "before"), text(`With ${strength} times the direction`, after, "after")), h("p", { class: "quiet small" }, "The most probable token each time; bold tokens differ.")));
  if (focus) /** @type {HTMLElement | null} */ (root.querySelector(`[data-field="${focus}"]`))?.focus();
  return undefined;
}
