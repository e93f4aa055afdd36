// What an answer rests on: contributions of tokens to labels, entities, answers, masked words or the next token, with a deletion test.

import { post } from "./api.js";
import { signed } from "./colors.js";
import { figure, h, replace, shown, track } from "./dom.js";
import { change, numbers } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./api.js").Token} Token */
/** @typedef {{removed: number[], change: number, random_change: number, random_deviation: number}} Deletion */
/** @typedef {{method: string, scores: number[], baseline?: string, baseline_value?: number, completeness_error?: number, integration_steps?: number, converged?: boolean, deletion: Deletion | null}} Attribution */
/** @typedef {{target: string, value_name: string, value: number, outputs: {name: string, score: number, id?: number}[], cut: number, tokens: Token[], positions: number[], attributions: Attribution[], results: {target: string, text: string}[]}} Explanation */

/** @type {[string, string, string][]} name in requests, title, meaning */
const METHODS = [
  ["integrated_gradients", "Integrated gradients", "The mean of the gradients on the way from a baseline to the text, times the difference of the embeddings. The contributions add up to the difference of the values (Sundararajan et al. 2017)."],
  ["gradient_input", "Gradient × input", "The gradient at the embedding of each token, times the embedding (Shrikumar et al. 2017)."],
  ["rollout", "Attention rollout", "The attention weights multiplied over the layers, half of each being the residual connection (Abnar and Zuidema 2020). They do not depend on the answer."],
];

/** What a model finds in a text, and the possible answers for it, by the kind of its head. @type {Record<string, {answers: string, results: string, none?: string}>} */
const KINDS = {
  sequence: { answers: "Labels", results: "" },
  next: { answers: "Next token", results: "" },
  token: { answers: "Labels", results: "Entities", none: "The model finds no entities in this text." },
  span: { answers: "", results: "Answers" },
  mask: { answers: "Words", results: "Masks" },
};

/** @param {import("./model.js").ModelShape} shape */
function kindOf(shape) {
  return shape.languageModel ? (shape.spec.encoder ? "mask" : "next") : shape.spec.head.kind;
}

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function explainView(root) {
  const context = h("section", { class: "panel", "aria-label": "Context", hidden: true });
  const results = h("section", { class: "panel", "aria-label": "Results", hidden: true });
  const answers = h("section", { class: "panel", "aria-label": "Answers" });
  const tokens = h("section", { class: "panel", "aria-label": "Contributions" });
  const test = h("section", { class: "panel", "aria-label": "Deletion test" });
  root.append(h("div", { class: "columns" }, h("div", {}, context, results, tokens, test), answers));
  let turn = 0;
  return {
    update(session, state, before) {
      if (!session) return;
      const mine = ++turn;
      const kind = kindOf(session.shape);
      context.hidden = kind !== "span";
      if (kind === "span" && (!before || context.childElementCount === 0)) drawContext(context, state);
      if (!before || before.text !== state.text || before.ids !== state.ids || before.model !== state.model || before.context !== state.context) replace(tokens, h("p", { class: "quiet" }, "Computing …"));
      const only = (/** @type {any[]} */ ...shownInstead) => {
        replace(tokens, ...shownInstead);
        results.hidden = test.hidden = answers.hidden = true;
      };
      if (kind === "span" && state.context === "") {
        only(h("p", { class: "quiet" }, "The text above is the question. Write the text that has the answer."));
        return;
      }
      if ((kind === "mask" && session.shape.both) || kind === "pooled") {
        only(h("p", { class: "quiet" }, "This view explains a label, an entity, an answer, a masked word or the next token. This model computes something else."));
        return;
      }
      post("api/explain", wanted(state, kind)).then((/** @type {Explanation} */ found) => {
        if (mine !== turn) return;
        if (found.results.length === 0) {
          only(h("p", { class: "quiet" }, KINDS[kind]?.none ?? ""));
          return;
        }
        drawResults(results, found, state, KINDS[kind].results);
        drawAnswers(answers, found, KINDS[kind].answers);
        drawTokens(tokens, found, state);
        drawTest(test, found);
        test.hidden = false;
      }, (error) => {
        if (mine !== turn) return;
        const hint = error.message.includes("no mask token"); // of a text that the reader has yet to write
        only(methodButtons(state.method), h("p", { class: hint ? "quiet" : "error", role: hint ? "status" : "alert" }, error.message),
          (state.answer !== "" || state.result !== "0") && h("button", { onclick: () => change({ answer: "", result: "0" }, { replace: true }) }, "Explain the most probable answer"));
      });
    },
  };
}

/** The request for an explanation. @param {State} state @param {string} kind */
function wanted(state, kind) {
  return {
    model: state.model, text: state.ids === "" ? state.text : "", ...(state.ids === "" ? {} : { ids: numbers(state.ids) }),
    target: state.answer, method: state.method, ...(kind === "span" ? { context: state.context } : {}), ...(state.result === "0" ? {} : { result: Number(state.result) }),
  };
}

/** The text that has the answer to a question. @param {HTMLElement} root @param {State} state */
function drawContext(root, state) {
  const box = h("textarea", { id: "context", rows: "4", dir: "auto", spellcheck: "false", "aria-label": "Text that has the answer", placeholder: "Text that has the answer" });
  /** @type {HTMLTextAreaElement} */ (box).value = state.context;
  replace(root, h("h2", {}, "Text that has the answer"), box,
    h("button", { class: "primary", onclick: () => change({ context: /** @type {HTMLTextAreaElement} */ (box).value, result: "0" }, { replace: true }) }, "Answer"));
}

/** @param {HTMLElement} root @param {Explanation} found @param {State} state @param {string} title */
function drawResults(root, found, state, title) {
  root.hidden = title === "";
  const name = (/** @type {{target: string, text: string}} */ { target, text }, /** @type {number} */ i) =>
    title === "Entities" ? `${target}: ${shown(text.trim())}` : title === "Masks" ? `${i + 1}: ${shown(target)}` : shown(target);
  replace(root, h("h2", {}, title), h("div", { class: "segments", role: "group", "aria-label": title }, found.results.map((each, i) =>
    h("button", { "aria-pressed": String(String(i) === state.result), "data-result": i, dir: "auto", onclick: () => change({ result: String(i), answer: "" }, { replace: true }) }, name(each, i)))));
}

/** @param {HTMLElement} root @param {Explanation} found @param {string} title */
function drawAnswers(root, found, title) {
  root.hidden = title === "";
  const most = Math.max(...found.outputs.map(({ score }) => Math.abs(score)), 1e-9);
  replace(root, h("h2", {}, title),
    h("p", { class: "quiet small" }, "Click one to see what it rests on."),
    h("div", { class: "bars", role: "list", "aria-label": "Scores" }, found.outputs.map(({ name, score, id }) => h("div", { class: "bar-row", role: "listitem" },
      h("span", { class: "name", dir: "auto" }, h("button", { class: "small", "aria-pressed": String(name === found.target), "data-answer": name, title: name,
        onclick: () => change({ answer: id === undefined ? name : `#${id}` }, { replace: true }) }, shown(name))),
      track(score, Math.max(most, 1), found.outputs.some((each) => each.score < 0)),
      h("span", { class: "number", title: String(score) }, figure(score))))));
}

/** @param {string} chosen */
function methodButtons(chosen) {
  return h("div", { class: "segments", role: "group", "aria-label": "Method" }, METHODS.map(([name, title]) =>
    h("button", { "aria-pressed": String(name === chosen), "data-method": name, onclick: () => change({ method: name }, { replace: true }) }, title)));
}

/** @param {HTMLElement} root @param {Explanation} found @param {State} state */
function drawTokens(root, found, state) {
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.method;
  const { scores, ...about } = found.attributions[0];
  const most = Math.max(...scores.map(Math.abs));
  const order = [...scores.keys()].sort((a, b) => Math.abs(scores[b]) - Math.abs(scores[a]) || a - b);
  replace(root, h("h2", {}, "What the answer rests on"), methodButtons(state.method),
    h("p", { class: "quiet small", style: { "margin-top": ".6rem" } }, METHODS.find(([name]) => name === state.method)?.[2]),
    h("p", {}, `The ${found.value_name} of `, h("b", {}, shown(found.target)), ` is ${figure(found.value)}.`, found.cut > 0 && ` ${found.cut} tokens were truncated.`),
    h("div", { class: "sentence contributions" }, found.tokens.map((token, t) =>
      h("span", { class: found.positions.includes(t) ? "position" : token.special ? "special" : undefined, title: `${shown(token.text)}: ${figure(scores[t])}`, style: { background: signed(scores[t], most) } }, shown(token.text)))),
    h("p", { class: "quiet small" }, state.method === "rollout" ? "Darker tokens have larger shares." : "Orange supports the answer, blue opposes it.", " Small tokens were added to the text.", found.positions.length > 0 && " The answer is about the framed tokens."),
    about.completeness_error !== undefined && h("p", { class: "small" }, `The contributions add up to ${figure(scores.reduce((a, b) => a + b, 0))}. From the baseline (${about.baseline}) with ${figure(about.baseline_value ?? 0)}, the difference is ${figure(found.value - (about.baseline_value ?? 0))}: the completeness error is `, h("span", { class: "mono", "data-completeness": "", title: String(about.completeness_error) }, figure(about.completeness_error)), ` with ${about.integration_steps} steps.`, about.converged === false && h("b", {}, " The integral did not converge.")),
    h("div", { class: "bars", role: "list", "aria-label": "Contributions by size" }, order.map((t) => h("div", { class: "bar-row", role: "listitem" },
      h("span", { class: "name", dir: "auto" }, shown(found.tokens[t].text)),
      track(scores[t], most, scores.some((x) => x < 0)),
      h("span", { class: "number", "data-score": t, title: String(scores[t]) }, figure(scores[t]))))));
  if (focus) /** @type {HTMLElement | null} */ (root.querySelector(`[data-method="${focus}"]`))?.focus();
}

/** @param {HTMLElement} root @param {Explanation} found */
function drawTest(root, found) {
  const { deletion } = found.attributions[0];
  if (!deletion) {
    replace(root, h("h2", {}, "Deletion test"), h("p", { class: "quiet" }, "The text has fewer than two tokens that can be removed."));
    return;
  }
  const count = deletion.removed.length === 1 ? "1 token" : `${deletion.removed.length} tokens`;
  const line = (/** @type {string} */ name, /** @type {number} */ value, /** @type {string} */ key) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number", [`data-${key}`]: "", title: String(value) }, figure(value)));
  replace(root, h("h2", {}, "Deletion test"),
    h("p", { class: "quiet small" }, `The change of the ${found.value_name} if ${count} are removed from the text. If the contributions are right, the tokens with the largest ones change it more than random tokens do.`),
    h("table", {}, h("tbody", {},
      line(`without ${deletion.removed.map((t) => `“${shown(found.tokens[t].text)}”`).join(", ")}`, deletion.change, "change"),
      line("without as many random tokens, mean", deletion.random_change, "random"),
      line("standard deviation of the random choices", deletion.random_deviation, "deviation"))));
}
