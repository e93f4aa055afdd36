// Two models side by side: their answers to a prompt, and how much their predictions differ after each token.

import { ask, askAnew, askBytes, captured, startRun } from "./api.js";
import { color, ink } from "./colors.js";
import { figure, h, oneStop, percent, replace, shown } from "./dom.js";
import { chosenPair } from "./learn.js";
import { change, current } from "./state.js";
import { filtered } from "./sampling.js";

/** @typedef {import("./main.js").Known} Known */
/** @typedef {{text: string, ids: number[], begin: number, chat: boolean, source?: number[]}} Generated */
/** @typedef {{tokens: import("./api.js").Token[], begin: number, runs: string[], kl: {kl: number, reverse: number}[]}} Compared */
const BEST = 8; // likely tokens in a list

/** @param {object} wanted @returns {Promise<Generated>} */
async function written(wanted) {
  const response = await fetch("api/generation", { method: "POST", body: JSON.stringify(wanted), headers: { "content-type": "application/json" } });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function compareView(root) {
  const form = h("section", { class: "panel", "aria-label": "Prompt" });
  const answers = h("section", { class: "panel", "aria-label": "Answers", hidden: true });
  const tokens = h("section", { class: "panel", "aria-label": "Divergence", hidden: true });
  root.append(form, answers, tokens);
  /** @type {Known[]} */
  let pair = [];
  /** @type {Generated[]} */
  let both = [];
  let whose = 1;
  let asked = 0;
  const settings = { tokens: 64, chat: true };

  const wrong = (/** @type {any} */ error) => {
    tokens.hidden = false;
    replace(tokens, h("p", { class: "error", role: "alert" }, String(error.message ?? error)));
  };
  const compare = async () => {
    const mine = ++asked;
    replace(tokens, h("p", { class: "quiet" }, "Comparing …"));
    tokens.hidden = false;
    const found = await compared(pair, both[whose]);
    if (mine === asked) drawTokens(tokens, pair, whose, found, (next) => { whose = next; compare().catch(wrong); });
  };
  const answer = async () => {
    const mine = ++asked;
    answers.hidden = false;
    replace(answers, h("p", { class: "quiet" }, "Writing …"));
    tokens.hidden = true;
    const { text } = current();
    const found = await Promise.all(pair.map((each) => written({ model: each.model, prompt: text, ...settings })));
    if (mine !== asked) return;
    both = found;
    replace(answers, h("div", { class: "pair" }, both.map((each, i) => h("div", { "data-answer": i }, h("h3", {}, pair[i].name),
      h("p", { class: "formula sample", tabindex: "0", role: "region", "aria-label": `Answer of ${pair[i].name}` }, each.text || "(an empty answer)")))),
    h("p", { class: "quiet small" }, `Greedy answers of at most ${settings.tokens} tokens${both.some((each) => each.chat) ? "; the prompt is a user's message in the chat template" : ""}.`));
    await compare();
  };
  const start = async () => {
    if (captured) return replace(form, h("p", {}, "This is a saved view: it contains only the data that it showed."));
    const models = await askAnew("api/models", {});
    pair = chosenPair(models, current());
    if (pair.length < 2) {
      return replace(form, h("h2", {}, "Two models side by side"), h("p", {}, "There is only one model. Use ", h("code", {}, "fovea inspect BASE --with ALIGNED"), ", ", h("code", {}, "fovea inspect BASE --adapter ADAPTER"), ", or the directory of a training run with snapshots."));
    }
    drawForm(form, models, pair, settings, () => answer().catch(wrong));
    await answer();
  };
  start().catch(wrong);
  return {
    update(_, state, before) {
      if (before !== null && (before.model !== state.model || before.other !== state.other)) start().catch(wrong);
    },
  };
}

/** @param {HTMLElement} root @param {Known[]} models @param {Known[]} pair @param {{tokens: number, chat: boolean}} settings @param {() => void} act */
function drawForm(root, models, pair, settings, act) {
  const pick = (/** @type {string} */ name, /** @type {number} */ nth) => h("label", {}, name, h("select", { "data-field": nth ? "other" : "model", onchange: (/** @type {Event} */ event) => {
    const now = pair.map((each) => each.model);
    now[nth] = /** @type {HTMLSelectElement} */ (event.target).value;
    change({ model: now[0], other: now[1] }, { replace: true });
  } }, models.filter((each) => each.ready !== false).map((each) => h("option", { value: each.model, selected: each === pair[nth] }, each.name))));
  const prompt = h("textarea", { rows: "2", "aria-label": "Prompt", dir: "auto", style: { width: "100%" } });
  prompt.value = current().text;
  const count = h("input", { type: "number", min: "1", max: "256", value: settings.tokens, style: { width: "5rem" } });
  const chat = h("input", { type: "checkbox", checked: settings.chat });
  const go = () => {
    settings.tokens = Math.min(Math.max(Math.trunc(count.valueAsNumber || 64), 1), 256);
    settings.chat = chat.checked;
    change({ text: prompt.value }, { replace: true });
    act();
  };
  replace(root, h("h2", {}, "Two models side by side"),
    h("div", { class: "row" }, pick("Left", 0), pick("Right", 1)),
    h("div", { style: { margin: ".7rem 0" } }, prompt),
    h("div", { class: "row" }, h("label", {}, "Tokens", count), h("label", {}, chat, "as a message of a chat"), h("button", { "data-action": "answer", onclick: go }, "Answer")));
}

/** Runs both models over the text of one answer. @param {Known[]} pair @param {Generated} of @returns {Promise<Compared>} */
async function compared(pair, of) {
  const input = of.source ? { ids: of.source, target_ids: of.ids } : { ids: of.ids };
  const runs = await Promise.all(pair.map((each) => startRun({ model: each.model, ...input, muted: [] })));
  const kl = await ask("api/divergence", { run: runs[0].run, other: runs[1].run });
  return { tokens: runs[0].tokens, begin: runs[0].tokens.length - of.ids.length + of.begin, runs: runs.map((each) => each.run), kl };
}

/** @param {HTMLElement} root @param {Known[]} pair @param {number} whose @param {Compared} found @param {(whose: number) => void} choose */
function drawTokens(root, pair, whose, found, choose) {
  // The token at t is predicted after the one at t - 1.
  const parts = found.tokens.map((_, t) => (t === 0 ? 0 : found.kl[t - 1].kl));
  const answer = parts.slice(Math.max(found.begin, 1));
  const most = Math.max(...parts, 1e-9);
  const mean = answer.reduce((sum, each) => sum + each, 0) / Math.max(answer.length, 1);
  const details = h("div", { "aria-live": "polite" });
  let chosen = parts.indexOf(Math.max(...parts));
  const buttons = found.tokens.map((token, t) => h("button", { "data-token": t, "aria-pressed": String(t === chosen), title: `KL ${figure(parts[t], 4)}`,
    "aria-label": `${shown(token.text)}: ${figure(parts[t], 3)}`, style: { background: color(Math.sqrt(parts[t] / most)), color: ink(Math.sqrt(parts[t] / most)), opacity: t < found.begin ? ".75" : "1" },
    onclick: () => { chosen = t; for (const [i, each] of buttons.entries()) each.setAttribute("aria-pressed", String(i === t)); show(); } }, shown(token.text)));
  const show = () => { drawDetails(details, pair, found, chosen, parts[chosen]).catch((error) => replace(details, h("p", { class: "error", role: "alert" }, error.message))); };
  replace(root, h("h2", {}, "Divergence per token"),
    h("div", { class: "row" }, h("label", {}, "Text of the answer of", h("select", { "data-field": "whose", onchange: (/** @type {Event} */ event) => choose(Number(/** @type {HTMLSelectElement} */ (event.target).value)) },
      pair.map((each, i) => h("option", { value: i, selected: i === whose }, each.name))))),
    h("p", {}, "KL(left || right) of the next-token distributions: mean over the answer ", h("b", { class: "mono", "data-mean": "" }, figure(mean, 4)), ", greatest ", h("b", { class: "mono" }, figure(most, 4)), " nats."),
    oneStop(h("div", { class: "tokens-kl" }, buttons), 1, chosen), details);
  show();
}

/** @param {HTMLElement} root @param {Known[]} pair @param {Compared} found @param {number} t @param {number} kl */
async function drawDetails(root, pair, found, t, kl) {
  if (t === 0) return replace(root, h("p", { class: "quiet" }, "Nothing is predicted before the first token."));
  const lists = await Promise.all(found.runs.map(async (run) => filtered(new Float32Array(await askBytes("api/logits", { run, position: t - 1 })), 1, 0, 1, BEST)));
  const ids = [...new Set(lists.flatMap((list) => [...list.order]))];
  /** @type {import("./api.js").Token[]} */
  const texts = await ask("api/texts", { model: pair[0].model, ids: ids.join() });
  const text = new Map(ids.map((id, i) => [id, texts[i].text]));
  const side = (/** @type {number} */ i) => h("div", { "data-side": i }, h("h3", {}, pair[i].name), h("div", { class: "bars" }, [...lists[i].order].map((id, n) => {
    const p = lists[i].probabilities[n];
    return h("div", { class: "bar-row" }, h("span", { class: "name" }, shown(text.get(id) ?? "")), h("span", { class: "track" }, h("span", { class: "fill", style: { width: `${100 * p}%` } })), h("span", { class: "mono small" }, percent(p)));
  })));
  return replace(root, h("p", { style: { "margin-top": "1rem" } }, "Predictions of “", h("b", {}, shown(found.tokens[t].text)), "” (token ", t, "): KL ", h("b", { class: "mono" }, figure(kl, 4)), `, in the other direction ${figure(found.kl[t - 1].reverse, 4)}.`), h("div", { class: "pair" }, side(0), side(1)));
}
