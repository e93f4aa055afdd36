// One token's way through the model, step by step, with the numbers of this model.

import { ask } from "./api.js";
import { color, ink, signed } from "./colors.js";
import { announce, figure, h, replace, shown } from "./dom.js";
import { drawHeadBar } from "./headbar.js";
import { change, current } from "./state.js";
import { sides } from "./sentence.js";
import { worked } from "./worked.js";

/** @typedef {{name: string, shape: number[], values: number[], size: number, rms: number, ids: number[]}} Step */

const VALUES = 128; // of each vector: a whole head, so that its products can be checked
const SHOWN = 32; // of them until more are asked for

/**
 * What each step means: [section, title, formula, words].
 * @type {Record<string, [string, string, string, string]>}
 */
const MEANING = {
  embedding: ["Into the model", "Embedding", "x = E[id]", "The token's id picks one row of the embedding matrix: the vector that this model learned for it. Nothing else of the token enters the model."],
  type: ["Into the model", "Sentence type", "x = x + S[0]", "Which of two sentences the token is in, as a learned vector that is added."],
  position: ["Into the model", "Position", "x = x + P[t]", "Attention by itself does not know order. This vector says where the token stands; it is added, not appended."],
  embedding_norm: ["Into the model", "Norm of the embedding", "x = norm(x)", "This model normalises the sum before the first layer."],
  stream: ["Attention", "Residual stream", "x", "What all earlier layers have written so far. The layer reads it, and adds to it."],
  attention_norm: ["Attention", "Norm", "y = norm(x)", "Brings the vector to a common size, so that attention compares directions rather than lengths."],
  query: ["Attention", "Query of this head", "q = W_Q y", "What this token asks for. Where positions are rotary, the vector is turned by an angle that grows with its place."],
  key: ["Attention", "Key of this head", "k = W_K y", "What this token offers to those that look for something. Others compare their query with it."],
  value: ["Attention", "Value of this head", "v = W_V y", "What this token hands over to those that look at it."],
  scores: ["Attention", "Scores", "s = q · k / √d", "The query against the key of every token that the mask lets it see. Large means: this is what I ask for."],
  weights: ["Attention", "Weights", "a = softmax(s)", "The scores become shares that add up to 1. These are the numbers of the map."],
  sum: ["Attention", "Weighted sum", "z = Σ a v", "The values of the tokens looked at, mixed by the weights: what this head brings home."],
  attention_output: ["Attention", "All heads together", "o = W_O [z₀; z₁; …]", "The results of all heads side by side, through one more matrix back to the width of the model."],
  attention_output_norm: ["Attention", "Norm of the result", "o = norm(o)", "This model normalises what attention adds."],
  attention_stream: ["Attention", "Back onto the stream", "x = x + o", "The result is added: nothing that was there is lost. (Where the norm stands behind, the sum is normalised here.)"],
  cross_norm: ["Looking at the source", "Norm", "y = norm(x)", "As before attention."],
  cross_query: ["Looking at the source", "Query of this head", "q = W_Q y", "What the decoder's token asks of the source."],
  cross_scores: ["Looking at the source", "Scores", "s = q · k / √d", "The query against the keys that come from the encoder's output."],
  cross_weights: ["Looking at the source", "Weights", "a = softmax(s)", "Where in the source this token looks."],
  cross_sum: ["Looking at the source", "Weighted sum", "z = Σ a v", "What it brings home from there."],
  cross_output: ["Looking at the source", "All heads together", "o = W_O [z₀; z₁; …]", "Back to the width of the model."],
  cross_output_norm: ["Looking at the source", "Norm of the result", "o = norm(o)", "This model normalises what is added."],
  cross_stream: ["Looking at the source", "Back onto the stream", "x = x + o", "Added to what was there."],
  ffn_norm: ["Feed-forward", "Norm", "y = norm(x)", "Once more to a common size."],
  router: ["Feed-forward", "Router", "p = softmax(W_R y)", "How much the router would send this token to each expert."],
  experts: ["Feed-forward", "Chosen experts", "top k of p", "The experts that this token goes through, and the weight of each."],
  ffn_gate: ["Feed-forward", "Gate", "g = f(W_G y)", "Each of these opens or closes one inner number."],
  ffn_up: ["Feed-forward", "Up", "u = W_U y", "Into a wider space, each number a small detector."],
  ffn_activation: ["Feed-forward", "Activation", "h = f(u)", "What is below zero is (nearly) silenced: the only place where the layer is not a plain sum."],
  ffn_product: ["Feed-forward", "Gate times up", "h = g · u", "Element by element."],
  ffn_output: ["Feed-forward", "Down", "o = W_D h", "Back to the width of the model: what the detectors that fired have to say."],
  ffn_output_norm: ["Feed-forward", "Norm of the result", "o = norm(o)", "This model normalises what is added."],
  ffn_stream: ["Feed-forward", "Back onto the stream", "x = x + o", "This is what the next layer reads."],
  final_stream: ["Out of the model", "Behind the last layer", "x", "The stream when all layers have written to it."],
  final_norm: ["Out of the model", "Final norm", "y = norm(x)", "The last one, before the head reads it."],
  logits: ["Out of the model", "Logits", "z = W y", "One number for each token of the vocabulary: the ten largest."],
  probabilities: ["Out of the model", "Probabilities", "p = softmax(z)", "The same as shares: what the model would say next."],
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
let wide = false; // all numbers that are here are shown

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
    h("div", { class: "row" }, h("span", { class: "quiet small" }, `${section}${["Attention", "Feed-forward", "Looking at the source"].includes(section) ? `, layer ${state.layer}` : ""} · step ${at + 1} of ${steps.length}`),
      h("div", { class: "grow" }), button("← back", -1), button("next →", 1)),
    h("h2", { style: { "margin-top": ".6rem" } }, title),
    h("p", {}, words),
    h("div", { class: "formula", tabindex: "0", role: "math", "aria-label": formula }, formula),
    h("p", { class: "quiet small" }, `Of token ${token} “${shown(rows[token].text)}”, as part of a whole of shape `, h("code", {}, `[${step.shape.join(", ")}]`),
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
  replace(pipeline, h("h2", {}, "The way"), h("ol", { class: "pipeline" }, list));
}

/** The names beside the numbers, where the numbers are about tokens. @param {import("./main.js").Session} session @param {import("./state.js").State} state @param {Step} step */
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
  const most = share ? 1 : Math.max(...step.values.map(Math.abs), 1e-9);
  return h("div", { class: "bars", role: "list" }, names.map((name, i) => h("div", { class: "bar-row", role: "listitem" },
    h("span", { class: "name", dir: "auto" }, name),
    h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "fill", style: { width: `${100 * Math.abs(step.values[i]) / most}%`, background: step.values[i] < 0 ? "var(--negative)" : "var(--accent)" } })),
    h("span", { class: "number", "data-value": i }, figure(step.values[i], 6)))));
}

/** @param {Step} step */
function cells(step) {
  const most = Math.max(...step.values.map(Math.abs), 1e-9);
  const share = step.name === "router";
  const told = wide ? step.values : step.values.slice(0, SHOWN);
  return h("div", {},
    h("div", { class: "cells" }, told.map((value, i) => h("span", { "data-value": i, title: String(value),
      style: share ? { background: color(value), color: ink(value) } : { background: signed(value, most) } }, figure(value)))),
    h("div", { class: "row", style: { "margin-top": ".6rem" } },
      h("span", { class: "quiet small" }, `${step.size > told.length ? `The first ${told.length} of ${step.size} numbers` : `All ${step.size} numbers`}. Orange is above zero, blue below.`),
      step.values.length > SHOWN && h("button", { class: "small", onclick: (/** @type {Event} */ event) => {
        wide = !wide;
        /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (event.target).closest(".row")?.parentElement).replaceWith(cells(step));
      } }, wide ? "fewer" : `${step.values.length} of them`)));
}
