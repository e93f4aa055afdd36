// Two texts: the same word in both, layer by layer, and for encoders the cosine of the texts and the tokens that make it.

import { askBytes, startRun } from "./api.js";
import { signed } from "./colors.js";
import { figure, h, replace, shown, track } from "./dom.js";
import { dot } from "./math.js";
import { matrix } from "./matrix.js";
import { change } from "./state.js";
import { wordOf } from "./suggestions.js";

/** @typedef {import("./api.js").Run} Run */
/** @typedef {import("./api.js").Token} Token */
/** @typedef {import("./main.js").Session} Session */
const LISTED = 16; // tokens of a text in the table of pairs
const PAIRS = /** @type {[string, string, string][]} */ ([
  ["bank: river and loan", "The dog sat on the bank of the river.", "The bank gave the man a loan and some money."],
  ["bat: animal and sport", "The bat flew out of the cave at night.", "He hit the ball with a wooden bat."],
  ["spring: season and metal", "In spring the garden is green again.", "The metal spring in the clock is broken."],
]);

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function twiceView(root) {
  const inputs = h("section", { class: "panel", "aria-label": "The second text" });
  const word = h("section", { class: "panel", "aria-label": "The same word" });
  const whole = h("section", { class: "panel", hidden: true, "aria-label": "Cosine of the texts" });
  root.append(inputs, word, whole);
  let turn = 0;
  return {
    update(session, state) {
      if (!session) return;
      const mine = ++turn;
      drawInputs(inputs, session, state);
      if (state.text2.trim() === "") {
        replace(word, h("p", { class: "quiet" }, "Type a second text, or choose a pair above."));
        whole.hidden = true;
        return;
      }
      replace(word, h("p", { class: "quiet" }, "Computing …"));
      startRun({ model: state.model, text: state.text2, target: "", muted: [] }).then(async (other) => {
        const texts = [session.run, other].map((run) => (session.shape.both ? run.source : run.tokens));
        await drawWord(word, session, other, texts, state, () => mine === turn);
        whole.hidden = Boolean(session.shape.spec.decoder) && !session.shape.both;
        if (!whole.hidden) await drawCosine(whole, session, other, texts, () => mine === turn);
      }).catch((error) => { if (mine === turn) replace(word, h("p", { class: "error", role: "alert" }, error.message)); });
    },
  };
}

/** @param {HTMLElement} root @param {Session} session @param {import("./state.js").State} state */
function drawInputs(root, session, state) {
  if (root.contains(document.activeElement) && document.activeElement instanceof HTMLInputElement) return;
  replace(root, h("h2", {}, "Two texts"),
    h("p", { class: "quiet small" }, "The first text is the one above."),
    h("div", { class: "row" }, h("label", { style: { flex: 1 } }, "Second text", h("input", { type: "text", dir: "auto", value: state.text2, "data-field": "text2", style: { flex: 1, "min-width": "12rem" },
      onchange: (/** @type {Event} */ event) => change({ text2: /** @type {HTMLInputElement} */ (event.target).value, word: "" }, { replace: true }) }))),
    session.shape.tokenizer && h("div", { class: "row chips", style: { "margin-top": ".6rem" } }, h("b", {}, "Try this:"), PAIRS.map(([name, text, text2]) =>
      h("button", { "data-pair-of": name, onclick: () => change({ text, text2, ids: "", word: name.split(":")[0] }, { replace: true }) }, name))));
}

/** All vectors of a token: before each layer, after the last, and after the final norm. @param {Session} session @param {Run} run @param {number} token */
async function vectorsOf(session, run, token) {
  const bytes = await askBytes("api/vectors", { run: run.run, look: session.shape.both ? "encoder" : "self", token });
  const [count, width] = new Int32Array(bytes, 0, 2);
  const all = new Float32Array(bytes, 8);
  return Array.from({ length: count }, (_, i) => [...all.subarray(i * width, (i + 1) * width)]);
}

/** @param {number[]} a @param {number[]} b */
export function cosine(a, b) {
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

/** @param {HTMLElement} root @param {Session} session @param {Run} other @param {Token[][]} texts @param {import("./state.js").State} state @param {() => boolean} still */
async function drawWord(root, session, other, texts, state, still) {
  const positions = texts.map((tokens) => new Map(tokens.flatMap((token, i) => (token.special || wordOf(token) === "" ? [] : [[wordOf(token), i]]))));
  const common = [...positions[0].keys()].filter((name) => positions[1].has(name));
  const name = common.includes(state.word) ? state.word : common.reduce((a, b) => (b.length > a.length ? b : a), "");
  if (name === "") {
    if (still()) replace(root, h("h2", {}, "The same word in both texts"), h("p", { class: "quiet" }, "The texts have no token in common."));
    return;
  }
  const [a, b] = await Promise.all([vectorsOf(session, session.run, Number(positions[0].get(name))), vectorsOf(session, other, Number(positions[1].get(name)))]);
  if (!still()) return;
  const values = a.map((vector, i) => cosine(vector, b[i]));
  const last = values.length - 1;
  const lowest = values.indexOf(Math.min(...values));
  const label = (/** @type {number} */ i) => (i === last ? "after the final norm" : i === last - 1 ? "after the last layer" : i === 0 ? "the embedding" : `before layer ${i}`);
  replace(root, h("h2", {}, `“${name}” in both texts, layer by layer`),
    h("p", { class: "quiet small" }, "The cosine of the two vectors of the word: 1 if the layers make no difference between its meanings. With positions that are added, the embeddings may differ already."),
    h("label", {}, "Word", h("select", { "data-field": "word", onchange: (/** @type {Event} */ event) => change({ word: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) }, common.map((each) => h("option", { value: each, selected: each === name }, each)))),
    h("div", { class: "bars", role: "list", style: { "margin-top": ".8rem" } }, values.map((value, i) => h("div", { class: "bar-row", role: "listitem" }, h("span", { class: "name" }, label(i)), track(value, 1, values.some((x) => x < 0)), h("span", { class: "number", "data-cosine": i, title: String(value) }, figure(value))))),
    h("p", { style: { "margin-top": ".8rem" } }, `The two are farthest apart ${lowest === 0 ? "at the embedding" : label(lowest)}: ${figure(values[lowest])}.`));
}

/** The cosine of the mean vectors is a sum over pairs of tokens. @param {HTMLElement} root @param {Session} session @param {Run} other @param {Token[][]} texts @param {() => boolean} still */
async function drawCosine(root, session, other, texts, still) {
  const wanted = texts.map((tokens) => [...tokens.keys()].filter((i) => !tokens[i].special).slice(0, 64));
  const last = async (/** @type {Run} */ run, /** @type {number} */ token) => /** @type {number[]} */ ((await vectorsOf(session, run, token)).at(-1));
  const [x, y] = await Promise.all([Promise.all(wanted[0].map((i) => last(session.run, i))), Promise.all(wanted[1].map((i) => last(other, i)))]);
  if (!still()) return;
  if (x.length === 0 || y.length === 0) {
    replace(root);
    return;
  }
  const mean = (/** @type {number[][]} */ rows) => rows[0].map((_, c) => rows.reduce((sum, row) => sum + row[c], 0) / rows.length);
  const [mx, my] = [mean(x), mean(y)];
  const size = Math.sqrt(dot(mx, mx) * dot(my, my)) * x.length * y.length;
  const pairs = x.map((row) => y.map((column) => dot(row, column) / size));
  const total = cosine(mx, my);
  const line = (/** @type {number} */ nth, /** @type {number[]} */ sums) => {
    const most = Math.max(...sums.map(Math.abs), 1e-9);
    return h("p", { class: "sentence contributions", dir: "auto" }, wanted[nth].map((i, n) => h("span", { title: String(sums[n]), style: { background: signed(sums[n], most) } }, shown(texts[nth][i].text))));
  };
  replace(root, h("h2", {}, "The cosine of the texts, and what makes it"),
    h("p", {}, "Cosine of the mean vectors of the tokens: ", h("b", { class: "mono", id: "text-cosine", title: String(total) }, figure(total)), ". It is the sum of one number for each pair of tokens; a token's colour is the sum of its pairs. Orange: it makes the texts alike; blue: apart."),
    line(0, pairs.map((row) => row.reduce((sum, each) => sum + each, 0))), line(1, y.map((_, j) => pairs.reduce((sum, row) => sum + row[j], 0))),
    matrix(`pairs of tokens${x.length > LISTED || y.length > LISTED ? ` (the first ${LISTED})` : ""}`, pairs.slice(0, LISTED).map((row) => row.slice(0, LISTED)), { rows: wanted[0].slice(0, LISTED).map((i) => shown(texts[0][i].text)), columns: wanted[1].slice(0, LISTED).map((i) => shown(texts[1][i].text)) }));
}
