// Direct logit attribution: which heads and feed-forward networks vote for one answer instead of another.

import { ask } from "./api.js";
import { drawAnswers, wordChoice } from "./answers.js";
import { figure, h, replace, track } from "./dom.js";
import { formulaOf } from "./formula.js";
import { matrix } from "./matrix.js";
import { change } from "./state.js";

/** @typedef {{difference: number, embedding: number, biases: number, heads: number[][], recurrence: number[], cross: number[], feed_forward: number[]}} Attribution */
const STRONGEST = 10;

/** All parts by name, with the layer and the head of a head. @param {Attribution} found @returns {{name: string, value: number, layer?: number, head?: number}[]} */
export function partsOfAnswer(found) {
  const layers = found.heads.flatMap((heads, layer) => [
    ...heads.map((value, head) => ({ name: `head ${layer}.${head}`, value, layer, head })),
    ...[["recurrence", found.recurrence], ["cross-attention", found.cross], ["feed-forward", found.feed_forward]].flatMap(([name, values]) => (/** @type {number[]} */ (values)[layer] ? [{ name: `${name} ${layer}`, value: /** @type {number[]} */ (values)[layer] }] : []))]);
  return [{ name: "embedding", value: found.embedding }, ...layers, { name: "biases", value: found.biases }];
}

/** @type {import("./circuits.js").Draw} */
export async function drawAttribution(root, session, state, still) {
  if (!session.shape.languageModel) return replace(root, h("section", { class: "panel" }, h("p", { class: "quiet" }, "This model predicts no tokens, so that there are no answers to compare.")));
  const { tokens, run } = session.run;
  const token = state.position !== "" ? Math.min(Number(state.position), tokens.length - 1) : tokens.length - 1;
  const choice = h("div", { class: "row", style: { margin: ".6rem 0" } });
  const { one, two, names } = await drawAnswers(choice, session, state, token);
  /** @type {Attribution} */
  const found = await ask("api/attribution", { run, token, one, two });
  if (!still()) return;
  const parts = partsOfAnswer(found);
  const strongest = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, STRONGEST);
  const most = Math.max(...parts.map(({ value }) => Math.abs(value)), 1e-9);
  const columns = Array.from({ length: Math.max(...found.heads.map((heads) => heads.length), 0) }, (_, i) => `head ${i}`);
  const bar = (/** @type {{name: string, value: number, layer?: number, head?: number}} */ part) => h("div", { class: "bar-row", role: "listitem" },
    h("span", { class: "name" }, part.head === undefined ? part.name : h("button", { class: "small", title: "show its map", onclick: () => change({ view: "sentence", layer: String(part.layer), heads: String(part.head), mean: "" }) }, part.name)),
    track(part.value, most, true), h("span", { class: "number", title: String(part.value) }, figure(part.value)));
  const words = wordChoice(tokens, token, (i) => change({ position: String(i), one: "", two: "" }, { replace: true }));
  return replace(root, h("section", { class: "panel" }, h("h2", {}, "Votes for an answer"),
    h("p", { class: "quiet small" }, "The residual stream is a sum, so that the difference of two logits is a sum too: one number for each head and feed-forward network. The scale of the final norm is held at its value on this text. Positive (orange) votes for A, negative (blue) for B."),
    words, choice,
    h("p", {}, `After “${tokens[token].text.trim()}”, the logit of “${names[0]}” minus that of “${names[1]}” is `, h("b", { class: "mono", "data-difference": "", title: String(found.difference) }, figure(found.difference)), `, the sum of the ${parts.length} numbers below: `, h("b", { class: "mono", "data-sum-of-parts": "", title: String(parts.reduce((sum, { value }) => sum + value, 0)) }, figure(parts.reduce((sum, { value }) => sum + value, 0))), "."),
    h("div", { class: "formula", tabindex: "0" }, formulaOf("z_A - z_B = (E_A - E_B) · {1}/{σ} (x_0 + Σ_h o_h + Σ_l f_l)")),
    h("div", { class: "pair" }, h("div", {}, h("h3", {}, "Strongest votes"), h("div", { class: "bars", role: "list" }, strongest.map(bar))),
      h("div", {}, h("h3", {}, "By layer"), h("div", { class: "bars", role: "list" }, parts.filter((part) => part.head === undefined).map(bar))))),
  columns.length > 0 && h("section", { class: "panel" }, h("h2", {}, "All heads"), matrix("votes by layer and head", found.heads.map((heads) => columns.map((_, i) => heads[i] ?? 0)), { rows: found.heads.map((_, i) => `layer ${i}`), columns, most })));
}
