// Cards of heads with roles. A head, chosen on one half of the examples, must beat the best fixed offset on the other half.

import { ask, askAnew, askMap, startRun } from "./api.js";
import { figure, h, percent, replace } from "./dom.js";
import { change } from "./state.js";
import { OFFSETS, TAGGED, taggedHead, tokensOf } from "./tagged.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./api.js").Token} Token */
/** @typedef {{role: string, meaning: string, layer: number, head: number, score: number, least: number, unit: string}} Card `least`: what a head without this role reaches */
/** @typedef {import("./tagged.js").Row} Row */
/** @typedef {import("./tagged.js").Example} Example */

const CLEAR = 0.3; // least mean weight of a pattern that is shown

/** @param {Session} session @param {number} from @param {string} look @param {import("./api.js").Run} run @returns {Promise<Row[]>} */
async function rowsAt(session, from, look, run) {
  const stack = session.shape.stack(look);
  const heads = Array.from({ length: stack.attention.heads }, (_, i) => i).join(",");
  const layers = Array.from({ length: stack.layers }, (_, i) => i).filter((layer) => session.shape.attends(look, layer));
  const maps = await Promise.all(layers.map((layer) => askMap({ run: run.run, look, layer, heads, q: `${from}-${from + 1}` })));
  return maps.flatMap((map, i) => Array.from({ length: map.heads }, (_, head) => ({ layer: layers[i], head, row: map.weights.subarray(head * map.keys, (head + 1) * map.keys) })));
}

/** @type {Map<string, Promise<Card[]>>} by model and stack: the tagged sentences do not change */
const known = new Map();

/** @param {Session} session @param {string} look @param {(done: number) => void} progress @returns {Promise<Card[]>} */
function taggedOnce(session, look, progress) {
  const name = `${session.model}/${look}`;
  const found = known.get(name) ?? taggedCards(session, look, progress);
  found.catch(() => known.delete(name));
  known.set(name, found);
  return found;
}

/** @param {Session} session @param {string} look @param {(done: number) => void} progress @returns {Promise<Card[]>} */
async function taggedCards(session, look, progress) {
  const cards = [];
  let done = 0;
  for (const { name, meaning, pairs } of Object.values(TAGGED)) {
    /** @type {Example[]} */
    const examples = [];
    for (const [text, query, target] of pairs) {
      const run = await startRun({ model: session.model, text, target: "", muted: [] });
      const tokens = look === "encoder" ? run.source : run.tokens;
      const from = tokensOf(tokens, query).at(-1);
      const to = new Set(tokensOf(tokens, target));
      if (from !== undefined && to.size > 0) examples.push({ from, to, rows: await rowsAt(session, from, look, run) });
      progress(++done);
      // The server keeps eight runs: using that of the view keeps it among them.
      if (done % 4 === 0) await askAnew("api/strongest", { run: session.run.run, look, layer: Math.max(session.shape.firstAttention(look), 0), heads: "0", count: 1 }).catch(() => {});
    }
    const found = taggedHead(examples);
    if (found && found.score > found.least) cards.push({ role: name, meaning, ...found, unit: "of held-out examples" });
  }
  return cards;
}

/** Patterns of positions on this text: chosen on the first half of its queries, measured on the second. @param {Session} session @param {string} look @returns {Promise<Card[]>} */
async function patternCards(session, look) {
  const tokens = look === "encoder" ? session.run.source : session.run.tokens;
  const T = Math.min(tokens.length, 128);
  const stack = session.shape.stack(look);
  const heads = Array.from({ length: stack.attention.heads }, (_, i) => i).join(",");
  const sees = (/** @type {number} */ t, /** @type {number} */ key) => (t - key >= 0 || !session.shape.causal(look)) && key >= 0 && key < T;
  /** @type {[string, string, (t: number, key: number) => boolean][]} */
  const patterns = [
    ["the previous token", "attends to the token before", (t, key) => key === t - 1], ["the next token", "attends to the token after", (t, key) => key === t + 1],
    ...Array.from({ length: OFFSETS - 1 }, (_, i) => /** @type {[string, string, (t: number, key: number) => boolean]} */ ([`${i + 2} tokens back`, "attends at a fixed distance", (t, key) => key === t - i - 2])),
    ["the same token", "attends to other tokens with the same id", (t, key) => key !== t && tokens[t].id === tokens[key].id],
    ["punctuation", "attends to punctuation", (t, key) => key !== t && key > 0 && /^\s*[^\p{L}\p{N}\s]+\s*$/u.test(tokens[key].text)],
    ["a sink", "rests on the first token", (t, key) => key === 0 && t > 1]];
  const queries = Array.from({ length: T }, (_, t) => t);
  /** @type {Map<string, Card>} */
  const best = new Map();
  for (let layer = 0; layer < stack.layers; ++layer) {
    if (!session.shape.attends(look, layer)) continue;
    const map = await askMap({ run: session.run.run, look, layer, heads, q: `0-${T}`, k: `0-${T}` });
    for (const [role, meaning, belongs] of patterns) {
      const usable = queries.filter((t) => queries.some((key) => sees(t, key) && belongs(t, key)));
      const halves = [usable.filter((_, i) => i % 2 === 0), usable.filter((_, i) => i % 2 === 1)];
      if (halves[1].length < 2) continue;
      for (let head = 0; head < map.heads; ++head) {
        const mean = (/** @type {number[]} */ half) => half.reduce((sum, t) => sum + queries.reduce((inner, key) => inner + (belongs(t, key) ? map.weights[(head * map.rows + t) * map.keys + key] : 0), 0), 0) / half.length;
        const chosen = mean(halves[0]);
        const before = best.get(role);
        if (!before || chosen > before.least) best.set(role, { role, meaning, layer, head, score: mean(halves[1]), least: chosen, unit: "of its attention, on the held-out half of the words" });
      }
    }
  }
  return [...best.values()].filter((card) => card.score >= CLEAR).map((card) => ({ ...card, least: NaN }));
}

/** @param {Session} session @param {string} look @returns {Promise<Card[]>} */
async function inductionCard(session, look) {
  if (look !== "self") return [];
  /** @type {number[][]} */
  const scores = await ask("api/induction", { model: session.model });
  let best = { layer: 0, head: 0, score: -1 };
  scores.forEach((heads, layer) => heads.forEach((score, head) => { if (score > best.score) best = { layer, head, score }; }));
  return best.score >= CLEAR ? [{ role: "induction", meaning: "from a repeated token to the token that followed it the first time", ...best, least: NaN, unit: "of its attention, on random tokens" }] : [];
}

/** @param {HTMLElement} root @param {Session} session @param {import("./state.js").State} state */
export async function drawCards(root, session, state) {
  const { look } = state;
  root.hidden = look === "cross" || !session.shape.tokenizer;
  const name = [state.model, state.text, state.target, state.ids, state.muted, look].join("/");
  if (root.hidden || root.dataset.name === name) return;
  root.dataset.name = name;
  const note = h("p", { class: "quiet small", role: "status" }, "Measuring …");
  const cards = h("div", { class: "cards" });
  replace(root, h("h2", {}, "Heads with a role"),
    h("p", { class: "quiet small" }, "A head is chosen on one half of the examples and measured on the other half. It is shown only if it does better there than always looking a fixed number of tokens away."), cards, note);
  const show = (/** @type {Card[]} */ found) => cards.append(...found.map((card) => h("button", { class: "card", "data-role": card.role, onclick: () => change({ view: "sentence", layer: String(card.layer), heads: String(card.head), mean: "" }) },
    h("b", {}, card.role), h("span", { class: "mono" }, `head ${card.layer}.${card.head}`), h("span", { class: "quiet small" }, card.meaning),
    h("span", { class: "small", title: String(card.score) }, `${percent(card.score)} ${card.unit}${Number.isNaN(card.least) ? "" : `; the best fixed offset ${percent(card.least)}`}`))));
  try {
    show(await patternCards(session, look));
    show(await inductionCard(session, look));
    const all = Object.values(TAGGED).reduce((sum, { pairs }) => sum + pairs.length, 0);
    show(await taggedOnce(session, look, (done) => { note.textContent = `Reading tagged sentences: ${done} of ${all}`; }));
    note.textContent = cards.childElementCount ? `${figure(cards.childElementCount, 0)} roles. The tagged sentences are ours: ${all} of them.` : "No head of this model has one of these roles, as in an untrained model.";
  } catch (error) {
    note.textContent = error instanceof Error ? error.message : String(error);
  }
}
