// The computation of one token, step by step, with the numbers of this model.

import { ask } from "./api.js";
import { color, ink, signed } from "./colors.js";
import { announce, figure, h, replace, shown } from "./dom.js";
import { drawHeadBar } from "./headbar.js";
import { change, current } from "./state.js";
import { sides } from "./sentence.js";
import { worked } from "./worked.js";

/** @typedef {{name: string, shape: number[], values: number[], size: number, rms: number, ids: number[]}} Step */

const VALUES = 128; // requested of each vector: entire heads of up to this width, so that their products can be verified
const SHOWN = 32; // shown of them, until the reader requests more

/**
 * What each step means: [section, title, formula, description].
 * @type {Record<string, [string, string, string, string]>}
 */
const MEANING = {
  embedding: ["Input", "Embedding", "x = E[id]", "The token's id selects one row of the embedding matrix: the vector that the model has learned for it. Nothing else about the token enters the model."],
  type: ["Input", "Sentence type", "x = x + S[0]", "Adds a learned vector that depends on the sentence, the first or the second, to which the token belongs."],
  position: ["Input", "Position", "x = x + P[t]", "Attention itself does not depend on order. This vector encodes the position of the token; it is added, not appended."],
  embedding_norm: ["Input", "Norm of the embedding", "x = norm(x)", "This model normalises the sum before the first layer."],
  projection: ["Input", "Projection of the embedding", "x = W x + b", "The embeddings of this model have another width than its layers; a matrix maps them."],
  stream: ["Attention", "Residual stream", "x", "The sum of the embedding and the outputs of all earlier layers. The layer reads it and adds to it."],
  attention_norm: ["Attention", "Norm", "y = norm(x)", "Scales the vector to a common size, so that attention compares directions rather than lengths."],
  latent: ["Attention", "Latent", "c = norm(W_C y)", "One short vector from which the keys and values of all heads are computed. The cache stores it instead of them."],
  query: ["Attention", "Query of this head", "q = W_Q y", "What this token looks for. With rotary positions, the vector is rotated by an angle that grows with its position."],
  key: ["Attention", "Key of this head", "k = W_K y", "What this token offers: queries are compared with it."],
  value: ["Attention", "Value of this head", "v = W_V y", "What this token passes on to the tokens that attend to it."],
  scores: ["Attention", "Scores", "s = q · k / √d", "The dot product of the query with the key of every visible token. A high score is a good match."],
  weights: ["Attention", "Weights", "a = softmax(s)", "The softmax turns the scores into weights that add up to 1. The attention map shows these numbers."],
  sum: ["Attention", "Weighted sum", "z = Σ a v", "The average of the values, weighted by attention: the result of this head."],
  attention_output: ["Attention", "All heads together", "o = W_O [z₀; z₁; …]", "The concatenated results of all heads, multiplied by one more matrix to give the width of the model."],
  attention_output_norm: ["Attention", "Norm of the result", "o = norm(o)", "This model normalises the output of attention."],
  attention_stream: ["Attention", "Add to the stream", "x = x + o", "The result is added to the residual stream, which keeps its earlier contents. (In a post-norm model, the sum is normalised here.)"],
  recurrence_norm: ["Recurrence", "Norm", "y = norm(x)", "Scales the vector to a common size."],
  gates_input: ["Recurrence", "Gates: input part", "W_I y + b", "The contribution of this token to each gate."],
  gates_recurrent: ["Recurrence", "Gates: recurrent part", "W_H h + b", "The contribution of the state after the previous token. The sum of both parts determines what the state keeps and what is added to it."],
  state: ["Recurrence", "State", "h", "The state after this token: the only memory of earlier tokens. A recurrent layer has no attention weights."],
  recurrence_output: ["Recurrence", "Output", "o = W_O h", "The state, projected to the width of the model if the widths differ."],
  recurrence_output_norm: ["Recurrence", "Norm of the result", "o = norm(o)", "This model normalises the output of the recurrence."],
  recurrence_stream: ["Recurrence", "Add to the stream", "x = x + o", "The result is added to the residual stream, or replaces it in a model without residuals."],
  cross_norm: ["Cross-attention", "Norm", "y = norm(x)", "Scales the vector to a common size, as before self-attention."],
  cross_query: ["Cross-attention", "Query of this head", "q = W_Q y", "What the decoder's token looks for in the source."],
  cross_scores: ["Cross-attention", "Scores", "s = q · k / √d", "The dot products of the query with the keys of the encoder's output."],
  cross_weights: ["Cross-attention", "Weights", "a = softmax(s)", "The source tokens that this token attends to."],
  cross_sum: ["Cross-attention", "Weighted sum", "z = Σ a v", "The average of the values of the source tokens, weighted by attention."],
  cross_output: ["Cross-attention", "All heads together", "o = W_O [z₀; z₁; …]", "The concatenated results, projected to the width of the model."],
  cross_output_norm: ["Cross-attention", "Norm of the result", "o = norm(o)", "This model normalises the output before it is added."],
  cross_stream: ["Cross-attention", "Add to the stream", "x = x + o", "The result is added to the residual stream."],
  ffn_norm: ["Feed-forward", "Norm", "y = norm(x)", "Scales the vector to a common size again."],
  router: ["Feed-forward", "Router", "p = softmax(W_R y)", "The router's score of each expert for this token. (Some models use a sigmoid instead of the softmax.)"],
  experts: ["Feed-forward", "Chosen experts", "top k of p", "The experts that process this token, and the weight of each."],
  shared_experts: ["Feed-forward", "Shared experts", "s = FFN_S(y)", "The result of the experts that process every token. It is added to the weighted sum of the chosen ones."],
  ffn_gate: ["Feed-forward", "Gate", "g = f(W_G y)", "Each element scales one element of the hidden layer."],
  ffn_up: ["Feed-forward", "Up", "u = W_U y", "Projects into a wider space, in which each element detects a pattern."],
  ffn_activation: ["Feed-forward", "Activation", "h = f(u)", "Negative numbers become (nearly) zero: the only nonlinear step of the feed-forward network."],
  ffn_product: ["Feed-forward", "Gate times up", "h = g · u", "The product, element by element."],
  ffn_output: ["Feed-forward", "Down", "o = W_D h", "Projects back to the width of the model: the contributions of the active elements."],
  ffn_output_norm: ["Feed-forward", "Norm of the result", "o = norm(o)", "This model normalises the output before it is added."],
  ffn_stream: ["Feed-forward", "Add to the stream", "x = x + o", "The next layer reads this vector."],
  final_stream: ["Output", "After the last layer", "x", "The residual stream after all layers."],
  final_norm: ["Output", "Final norm", "y = norm(x)", "The last normalisation, before the head."],
  logits: ["Output", "Logits", "z = W y", "One number for each token of the vocabulary; the ten largest are shown."],
  probabilities: ["Output", "Probabilities", "p = softmax(z)", "The softmax of the logits: the prediction of the next token."],
};

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function followView(root) {
  const bar = h("div", { class: "row panel" });
  const pipeline = h("nav", { class: "panel", "aria-label": "Steps" });
  const stage = h("section", { class: "panel", "aria-label": "The step" });
  root.append(bar, h("div", { class: "columns" }, stage, pipeline));
  let turn = 0;
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const { target } = event;
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return;
    if (event.key === "ArrowRight") move(1);
    else if (event.key === "ArrowLeft") move(-1);
  };
  document.addEventListener("keydown", keys);
  return {
    close: () => document.removeEventListener("keydown", keys),
    update(session, state) {
      if (!session) return;
      const mine = ++turn;
      const look = state.look === "cross" ? "self" : state.look;
      const { rows } = sides(session, look);
      const token = state.token === "" ? rows.length - 1 : Number(state.token);
      drawBar(bar, session, { ...state, look }, rows, token);
      ask("api/walk", { run: session.run.run, look, token, layer: state.layer, head: state.heads.split(",")[0], values: VALUES })
        .then((steps) => {
          if (mine !== turn) return undefined;
          length = steps.length;
          return draw(stage, pipeline, session, state, steps, token);
        }, (error) => replace(stage, h("p", { class: "error", role: "alert" }, error.message)));
    },
  };
}

let length = 1;
let wide = false; // all available numbers are shown

/** @param {number} by */
function move(by) {
  const to = Math.min(Math.max(Number(current().step) + by, 0), length - 1);
  change({ step: String(to) }, { replace: true });
}

/**
 * @param {HTMLElement} root @param {import("./main.js").Session} session @param {import("./state.js").State} state
 * @param {import("./api.js").Token[]} rows @param {number} token
 */
function drawBar(root, session, state, rows, token) {
  const shared = h("div", { class: "row" });
  drawHeadBar(shared, session, state, { looks: false, several: false });
  replace(root, h("label", {}, "Token", h("select", { onchange: (/** @type {Event} */ event) =>
    change({ token: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
    rows.map((each, i) => h("option", { value: i, selected: i === token }, `${i}: ${shown(each.text)}`)))), shared);
}

/**
 * @param {HTMLElement} stage @param {HTMLElement} pipeline @param {import("./main.js").Session} session
 * @param {import("./state.js").State} state @param {Step[]} steps @param {number} token
 */
async function draw(stage, pipeline, session, state, steps, token) {
  const at = Math.min(Number(state.step), steps.length - 1);
  const step = steps[at];
  const [section, title, formula, words] = MEANING[step.name] ?? ["", step.name, "", ""];
  const names = await namesOf(session, state, step);
  const look = state.look === "cross" ? "self" : state.look;
  const { rows } = sides(session, look);
  const button = (/** @type {string} */ text, /** @type {number} */ by) => h("button", { disabled: at + by < 0 || at + by >= steps.length, "data-by": by,
    onclick: () => move(by) }, text);
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.by;
  replace(stage,
    h("div", { class: "row" }, h("span", { class: "quiet small" }, `${section}${["Attention", "Feed-forward", "Cross-attention"].includes(section) ? `, layer ${state.layer}` : ""} · step ${at + 1} of ${steps.length}`),
      h("div", { class: "grow" }), button("← back", -1), button("next →", 1)),
    h("h2", { style: { "margin-top": ".6rem" } }, title),
    h("p", {}, words),
    h("div", { class: "formula", tabindex: "0", role: "math", "aria-label": formula }, formula),
    h("p", { class: "quiet small" }, `Token ${token} “${shown(rows[token].text)}”, part of a tensor of shape `, h("code", {}, `[${step.shape.join(", ")}]`),
      `. Root mean square ${figure(step.rms)}.`),
    worked(step, steps, (key) => shown(sides(session, step.name.startsWith("cross_") ? "cross" : look).keys[key].text), token),
    names ? table(step, names) : cells(step));
  if (focus !== undefined) /** @type {HTMLElement | null} */ (stage.querySelector(`[data-by="${focus}"]`))?.focus();
  announce(`${title}, step ${at + 1}`);
  let last = "";
  const list = [];
  for (const [i, each] of steps.entries()) {
    const [part, name] = MEANING[each.name] ?? ["", each.name];
    if (part !== last) list.push(h("li", { class: "section" }, part));
    last = part;
    list.push(h("li", {}, h("button", { "aria-current": i === at ? "step" : undefined, onclick: () => change({ step: String(i) }, { replace: true }) },
      name, h("span", { class: "grow" }), h("span", { class: "mono quiet" }, each.shape.length ? `[${each.shape.join(", ")}]` : ""))));
  }
  replace(pipeline, h("h2", {}, "Steps"), h("ol", { class: "pipeline" }, list));
}

/** The labels of the numbers, if each number belongs to a token. @param {import("./main.js").Session} session @param {import("./state.js").State} state @param {Step} step */
async function namesOf(session, state, step) {
  const look = state.look === "encoder" ? "encoder" : step.name.startsWith("cross_") ? "cross" : "self";
  if (/(scores|weights)$/.test(step.name)) return step.ids.map((key) => `${key}: ${shown(sides(session, look).keys[key].text)}`);
  if (step.name === "experts") return step.ids.map((expert) => `expert ${expert}`);
  if (step.name !== "logits" && step.name !== "probabilities") return null;
  const texts = await ask("api/texts", { model: session.model, ids: step.ids.join(",") });
  return texts.map((/** @type {import("./api.js").Token} */ each) => shown(each.text));
}

/** @param {Step} step @param {string[]} names */
function table(step, names) {
  const share = /(weights|probabilities|experts)$/.test(step.name);
  const most = share ? Math.max(...step.values, 1) : Math.max(...step.values.map(Math.abs), 1e-9); // a router may scale its weights
  return h("div", { class: "bars", role: "list" }, names.map((name, i) => h("div", { class: "bar-row", role: "listitem" },
    h("span", { class: "name", dir: "auto" }, name),
    h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "fill", style: { width: `${100 * Math.abs(step.values[i]) / most}%`, background: step.values[i] < 0 ? "var(--negative)" : "var(--accent)" } })),
    h("span", { class: "number", "data-value": i }, figure(step.values[i], 6)))));
}

/** @param {Step} step */
function cells(step) {
  const most = Math.max(...step.values.map(Math.abs), 1e-9);
  const share = step.name === "router";
  const listed = wide ? step.values : step.values.slice(0, SHOWN);
  return h("div", {},
    h("div", { class: "cells" }, listed.map((value, i) => h("span", { "data-value": i, title: String(value),
      style: share ? { background: color(value), color: ink(value) } : { background: signed(value, most) } }, figure(value)))),
    h("div", { class: "row", style: { "margin-top": ".6rem" } },
      h("span", { class: "quiet small" }, `${step.size > listed.length ? `The first ${listed.length} of ${step.size} numbers` : `All ${step.size} numbers`}. Orange: positive; blue: negative.`),
      step.values.length > SHOWN && h("button", { class: "small", onclick: (/** @type {Event} */ event) => {
        wide = !wide;
        /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (event.target).closest(".row")?.parentElement).replaceWith(cells(step));
      } }, wide ? "fewer" : `${step.values.length} of them`)));
}
