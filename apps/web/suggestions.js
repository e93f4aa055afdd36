// Places where something is to be seen: sentences to try, and the head that links a word to another one most strongly.

import { askMap, captured } from "./api.js";
import { h, replace } from "./dom.js";
import { change } from "./state.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./api.js").Token} Token */
/** @typedef {{layer: number, head: number, there: number, back: number}} Link weights from the first word to the second, and back */

const PRONOUNS = new Set("it he she they him her them its his their who which that this er sie es ihn il elle".split(" "));
const SMALL = new Set("the a an of to in on at and or but not did didn was were is are be been too so because when for with by as if then there than had has have do does would could we i you don t s".split(" "));

const ARTICLES = new Set("the a an my your his her our their".split(" "));

/** @param {Token} token */
export const wordOf = (token) => token.text.trim().toLowerCase();
/** Whether a token carries meaning of its own. @param {Token} token */
const telling = (token) => !token.special && /\p{L}{3,}/u.test(token.text) && !SMALL.has(wordOf(token)) && !PRONOUNS.has(wordOf(token));

/**
 * The weights between two tokens in every head, strongest first. @param {Session} session @param {string} look
 * @param {number} from @param {number} to
 * @returns {Promise<Link[]>}
 */
export async function linksBetween(session, look, from, to) {
  const maps = await rowsOf(session, look, [from, to]);
  return maps.flatMap(({ layer, rows: [there, back] }) => there.map((weights, head) =>
    ({ layer, head, there: weights[to], back: look === "cross" ? NaN : back[head][from] }))).sort((a, b) => Math.max(b.there, b.back || 0) - Math.max(a.there, a.back || 0));
}

/** The rows of some queries in every head: [layer][query][head]. @param {Session} session @param {string} look @param {number[]} queries */
async function rowsOf(session, look, queries) {
  const stack = session.shape.stack(look);
  const heads = Array.from({ length: stack.attention.heads }, (_, i) => i).join(",");
  const { tokens, source, run } = session.run;
  const cells = (look === "encoder" ? source : tokens).length * (look === "self" ? tokens : source).length * stack.attention.heads;
  const found = [];
  for (let layer = 0; layer < stack.layers; ++layer) {
    if (!session.shape.attends(look, layer)) continue;
    // One request after the other: those of the reader's clicks come in between.
    const rows = [];
    for (const query of queries) {
      const map = await askMap({ run, look, layer, heads, q: `${query}-${query + 1}` }, cells);
      rows.push(Array.from({ length: map.heads }, (_, head) => map.weights.subarray(head * map.keys, (head + 1) * map.keys)));
    }
    found.push({ layer, rows });
  }
  return found;
}

/**
 * The head, word and key with which to begin: the strongest link from a pronoun, or else from the last word, to an earlier word with a meaning.
 * @param {Session} session @param {string} look
 * @returns {Promise<{layer: string, heads: string, token: string, second: string} | null>}
 */
export async function openingPlace(session, look) {
  if (captured || look !== "self") return null;
  const { tokens } = session.run;
  if (tokens.length > 512) return null; // a long text has no sentence to begin with
  const pronoun = tokens.findLastIndex((token) => PRONOUNS.has(wordOf(token)) && !token.special);
  const from = pronoun > 0 ? pronoun : tokens.findLastIndex(telling);
  const all = [...tokens.keys()].filter((i) => i > 0 && (session.shape.causal(look) ? i < from : i !== from) && telling(tokens[i]) && wordOf(tokens[i]) !== wordOf(tokens[from]));
  if (from < 0) return null;
  // Nouns are preferred: words after an article, and names.
  const nouns = all.filter((i) => ARTICLES.has(wordOf(tokens[i - 1])) || /^\s*\p{Lu}/u.test(tokens[i].text));
  const keys = nouns.length ? nouns : all;
  if (keys.length === 0) return null;
  let best = { layer: 0, head: 0, key: keys[0], weight: -1 };
  for (const { layer, rows: [heads] } of await rowsOf(session, look, [from]))
    heads.forEach((weights, head) => keys.forEach((key) => { if (weights[key] > best.weight) best = { layer, head, key, weight: weights[key] }; }));
  return best.weight < 0 ? null : { layer: String(best.layer), heads: String(best.head), token: String(from), second: String(best.key) };
}

const LARGE = 3e7; // parameters: the rows of all heads of a larger model take longer than a reader waits for the first map

/** Whether the strongest link is looked for before the first map, not after it. @param {Session} session */
export const opensAtLink = (session) => session.shape.parameters <= LARGE;

/** For a large model: offers the strongest link when it is found. @param {HTMLElement} root @param {Session} session @param {import("./state.js").State} state */
async function offerLink(root, session, state) {
  if (opensAtLink(session) || state.view !== "sentence") return;
  const found = await openingPlace(session, state.look);
  if (!found || !root.isConnected) return;
  const { tokens } = session.run;
  root.append(h("button", { "data-try": "link", onclick: () => change({ ...found, direction: "to", mean: "" }, { replace: true }) },
    `head ${found.layer}.${found.heads} links “${wordOf(tokens[Number(found.token)])}” to “${wordOf(tokens[Number(found.second)])}”`));
}

/** @type {string[][]} name, help, text, the two words to look at */
const TRIES = [
  ["a pronoun", "the links of “it” to its noun", "The animal didn't cross the street because it was too tired.", "it", "animal"],
  ["a repetition", "an induction head: from a repeated word to what followed", "red cat green dog tall horse red cat green dog tall", "green:2", "dog"],
  ["the previous word", "the head that attends to the word before", "When Mary and John went to the store, John gave a book to Mary.", "gave", "John:2"],
  ["a rare word", "what a word rests on that the model hardly knows", "The farmer near the zyzzyva sees a small coin.", "sees", "farmer"],
];

/** The first things that a reader looks for, and their views. @type {[string, string, string][]} */
const ENTRIES = [
  ["compare two words", "how strongly each head links them, in both directions", "sentence"],
  ["write more", "what comes next; the model continues the text", "say"],
  ["leave a part out", "switch heads off, and see what changes", "heads"],
  ["look inside", "neurons, votes of heads, patching, steering", "circuits"],
];

/** @param {HTMLElement} root @param {Session} session @param {import("./state.js").State} state */
export async function suggestions(root, session, state) {
  root.hidden = captured !== null || !session.shape.tokenizer;
  if (root.hidden) return;
  const writes = session.shape.languageModel && Boolean(session.shape.spec.decoder);
  const attends = session.shape.looks().some((look) => session.shape.firstAttention(look) >= 0);
  replace(root, h("b", {}, "Try this:"), attends && TRIES.map(([name, help, text, token, second]) => h("button", { title: help, "data-try": name, onclick: () => {
    change({ view: "sentence", text, target: "", ids: "", tids: "", muted: "", look: session.shape.both ? "encoder" : "self", direction: "to", layer: "0", heads: "0", mean: "", token, second });
  } }, name)), state.view === "home" && ENTRIES.filter(([, , view]) => (view === "say" ? writes : view === "circuits" || attends)).map(([name, help, view]) => h("button", { title: help, "data-try": name,
    // Two words are compared from the first moment.
    onclick: async () => change({ view, ...(view === "sentence" && await openingPlace(session, session.shape.both ? "encoder" : "self").catch(() => null)) }) }, name)));
  await offerLink(root, session, state).catch(() => {}); // a later request reports the error
}
