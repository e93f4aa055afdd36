// Scores of each head on this text, and the effect of switching heads off.

import { ask, askBytes, captured, startRun } from "./api.js";
import { color, ink } from "./colors.js";
import { announce, figure, h, replace, shown } from "./dom.js";
import { drawCards } from "./head_cards.js";
import { drawHeadBar } from "./headbar.js";
import { change, hashOf, wantedRun } from "./state.js";
import { filtered } from "./sampling.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./state.js").State} State */
/** @typedef {Record<string, number>} Scores */

/** @type {[string, string, string][]} key, name, meaning */
const COLUMNS = [
  ["previous", "previous", "attention to the previous token"], ["next", "next", "attention to the next token"], ["itself", "itself", "attention to the token itself"],
  ["first", "first", "attention to the first token of the text, which often serves as a default target"],
  ["same", "same", "attention to other tokens with the same id"],
  ["induction", "induction", "on a repeated sequence of random tokens: attention to the token after the first occurrence of the query's token"],
  ["punctuation", "punctuation", "attention to tokens that consist of ASCII punctuation"], ["diffuse", "diffuse", "entropy relative to its maximum: 1 means uniform attention"],
  ["distance", "distance", "average distance between query and key, in tokens"],
];

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function headsView(root) {
  const bar = h("div", { class: "row panel" });
  const off = h("section", { class: "panel", "aria-label": "Switch heads off" });
  const table = h("section", { class: "panel", "aria-label": "Scores" });
  const cards = h("section", { class: "panel", "aria-label": "Heads with a role" });
  root.append(bar, cards, h("div", { class: "columns" }, table, off));
  let turn = 0;
  /** @type {{name: string, rows: {layer: number, head: number, scores: Scores}[]}} */
  let known = { name: "", rows: [] };
  return {
    update(session, state) {
      if (!session) return;
      const mine = ++turn;
      drawHeadBar(bar, session, state, { several: false });
      void drawOff(off, session, state, () => mine === turn);
      const name = `${session.run.run}/${state.look}`;
      if (!captured) void drawCards(cards, session, state);
      if (known.name === name) {
        drawTable(table, state, known.rows);
        return;
      }
      known = { name, rows: [] };
      replace(table, h("h2", {}, "Head scores"), h("p", { class: "quiet" }, "Measuring …"));
      void measure(session, state, known.rows, () => {
        if (known.name === name) drawTable(table, state, known.rows);
      });
    },
  };
}

/**
 * @param {Session} session @param {State} state
 * @param {{layer: number, head: number, scores: Scores}[]} rows @param {() => void} done
 */
async function measure(session, state, rows, done) {
  const stack = session.shape.stack(state.look);
  /** @type {number[][] | null} */
  const induction = state.look === "self" ? await ask("api/induction", { model: session.model }) : null;
  for (let layer = 0; layer < stack.layers; ++layer) {
    if (!session.shape.attends(state.look, layer)) continue;
    /** @type {Scores[]} */
    const heads = await ask("api/scores", { run: session.run.run, look: state.look, layer });
    heads.forEach((scores, head) => rows.push({ layer, head, scores: induction ? { ...scores, induction: induction[layer][head] } : scores }));
  }
  done();
}

/**
 * @param {HTMLElement} root @param {State} state
 * @param {{layer: number, head: number, scores: Scores}[]} rows
 */
function drawTable(root, state, rows) {
  const columns = COLUMNS.filter(([key]) => rows[0] && key in rows[0].scores);
  const sort = columns.some(([key]) => key === state.sort) ? state.sort : state.sort === "layer" ? "layer" : "previous";
  const sorted = [...rows].sort((a, b) => (sort === "layer" ? 0 : b.scores[sort] - a.scores[sort]) || a.layer - b.layer || a.head - b.head);
  const muted = new Set(state.muted.split(",").filter(Boolean));
  const by = (/** @type {string} */ key, /** @type {string} */ name, /** @type {string} */ help) => h("th", { scope: "col", "aria-sort": key === sort ? (key === "layer" ? "ascending" : "descending") : undefined, title: help },
    h("button", { onclick: () => change({ sort: key }, { replace: true }), "data-sort": key }, name));
  const most = Math.max(...rows.map((row) => row.scores.distance), 1);
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset;
  replace(root, h("h2", {}, "Head scores"),
    h("p", { class: "quiet small" }, "Most scores are fractions of the head's attention, averaged over this text; 2.5 is head 5 of layer 2. Click the name of a column to sort, or a head to see its map. ", h("a", { href: hashOf({ ...state, view: "learn" }).replace("#", "#/") }, "Layer by layer"), ": the sizes of the stream and the entropies of all heads."),
    clearest(rows, columns),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Scores of the heads", style: { "max-height": "40rem", overflow: "auto" } }, h("table", { class: "scores" },
      h("thead", {}, h("tr", {}, by("layer", "head", "head"), columns.map(([key, name, help]) => by(key, name, help)), h("th", { scope: "col" }, "off"))),
      h("tbody", {}, sorted.slice(0, 400).map(({ layer, head, scores }) => {
        const name = `${state.look}.${layer}.${head}`;
        return h("tr", {}, h("th", { scope: "row" }, h("button", { title: "show its map", onclick: () => change({ view: "sentence", layer: String(layer), heads: String(head) }) }, `${layer}.${head}`)),
          columns.map(([key]) => {
            const share = key === "distance" ? scores[key] / most : scores[key];
            return h("td", { "data-score": `${layer}.${head}.${key}`, style: { background: color(share), color: ink(share) }, title: String(scores[key]) }, figure(scores[key], key === "distance" ? 1 : 3));
          }),
          h("td", {}, h("input", { type: "checkbox", "aria-label": `Switch head ${layer}.${head} off`, checked: muted.has(name), "data-mute": name, onchange: () => toggle(state, name) })));
      })))));
  if (focus?.mute) /** @type {HTMLElement | null} */ (root.querySelector(`[data-mute="${focus.mute}"]`))?.focus();
  if (focus?.sort) /** @type {HTMLElement | null} */ (root.querySelector(`[data-sort="${focus.sort}"]`))?.focus();
}

/** The head with the highest score for each pattern. @param {{layer: number, head: number, scores: Scores}[]} rows @param {[string, string, string][]} columns */
function clearest(rows, columns) {
  const patterns = columns.filter(([key]) => key !== "diffuse" && key !== "distance");
  return h("p", { class: "row small", style: { gap: ".3rem .9rem", "max-width": "none" } }, h("b", {}, "Highest:"), patterns.map(([key, name, help]) => {
    const best = rows.reduce((a, b) => (b.scores[key] > a.scores[key] ? b : a));
    if (best.scores[key] < 0.05) return null;
    return h("span", { title: help }, `${name} `, h("button", { class: "plain", "data-clearest": key, onclick: () => change({ view: "sentence", layer: String(best.layer), heads: String(best.head) }) }, `${best.layer}.${best.head}`), h("span", { class: "mono" }, ` ${figure(best.scores[key], 2)}`));
  }));
}

/** @param {State} state @param {string} name */
function toggle(state, name) {
  const muted = state.muted.split(",").filter(Boolean);
  change({ muted: (muted.includes(name) ? muted.filter((each) => each !== name) : [...muted, name]).join(",") }, { replace: true });
}

/** @param {string} run @param {string} model @param {Session} session */
async function answerOf(run, model, session) {
  const surprise = await ask("api/surprise", { run });
  const loss = surprise.reduce((/** @type {number} */ sum, /** @type {{probability: number}} */ each) => sum - Math.log(each.probability), 0) / Math.max(surprise.length, 1);
  const position = session.run.tokens.length - 1;
  const logits = new Float32Array(await askBytes("api/logits", { run, position }));
  const { order, probabilities } = filtered(logits, 1, 0, 1, 5);
  const texts = await ask("api/texts", { model, ids: [...order].join(",") });
  return { loss, top: texts.map((/** @type {{text: string}} */ each, /** @type {number} */ i) => [shown(each.text), probabilities[i]]) };
}

/** The change of the head's output, for models without a loss. @param {string} whole @param {Session} session */
async function movement(whole, session) {
  const position = session.shape.spec.decoder ? session.run.tokens.length - 1 : 0;
  const [a, b] = (await Promise.all([whole, session.run.run].map((run) => askBytes("api/logits", { run, position })))).map((bytes) => new Float32Array(bytes));
  const product = (/** @type {Float32Array} */ x, /** @type {Float32Array} */ y) => x.reduce((sum, each, i) => sum + each * y[i], 0);
  const cosine = product(a, b) / Math.sqrt(product(a, a) * product(b, b));
  const most = a.reduce((found, each, i) => Math.max(found, Math.abs(each - b[i])), 0);
  announce(`Cosine ${figure(cosine)}`);
  return h("p", {}, "The output is a vector. Its cosine similarity with the output of the complete model is ", h("b", { class: "mono", id: "cosine", title: String(cosine) }, figure(cosine)), `; its elements change by at most ${figure(most)}.`);
}

/** @param {HTMLElement} root @param {Session} session @param {State} state @param {() => boolean} still */
async function drawOff(root, session, state, still) {
  const muted = state.muted.split(",").filter(Boolean);
  const stack = session.shape.stack(state.look);
  const head = state.heads.split(",")[0];
  const name = `${state.look}.${state.layer}.${head}`;
  const layerHeads = Array.from({ length: stack.attention.heads }, (_, i) => `${state.look}.${state.layer}.${i}`);
  const allOff = layerHeads.every((each) => muted.includes(each));
  const result = h("div", { "aria-live": "polite", style: { "margin-top": ".8rem" } });
  replace(root, h("h2", {}, "Switch heads off"),
    h("p", { class: "quiet small" }, "The output of a head that is off is zero, and all later results are computed again. All views show the model without it until it is switched on."),
    h("div", { class: "row" },
      h("button", { "aria-pressed": String(muted.includes(name)), onclick: () => toggle(state, name) }, `Switch head ${head} of layer ${state.layer} ${muted.includes(name) ? "on" : "off"}`),
      h("button", { onclick: () => change({ muted: [...muted.filter((each) => !layerHeads.includes(each)), ...(allOff ? [] : layerHeads)].join(",") }, { replace: true }) }, allOff ? "Switch the layer on" : "Switch the layer off"),
      muted.length > 0 && h("button", { onclick: () => change({ muted: "" }, { replace: true }) }, "Switch all on")),
    muted.length > 0 && h("p", { class: "small" }, `Off: ${muted.map((each) => each.replace(/^self\./, "")).join(", ")}.`), result);
  const whole = await startRun(wantedRun({ ...state, muted: "" }));
  if (!session.shape.languageModel) {
    const moved = muted.length > 0 ? await movement(whole.run, session) : null;
    if (still()) replace(result, moved ?? h("p", { class: "quiet" }, "This model predicts no tokens, so there is no loss; the change of its output shows the effect of a head. Switch one off."));
    return;
  }
  const [before, after] = await Promise.all([answerOf(whole.run, session.model, session), answerOf(session.run.run, session.model, session)]);
  if (!still()) return;
  const change_ = after.loss - before.loss;
  replace(result, h("table", {},
    h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col" }, "all heads"), muted.length ? h("th", { scope: "col" }, "heads off") : h("td", {}))),
    h("tbody", {},
      h("tr", {}, h("th", { scope: "row" }, "loss"), h("td", { class: "number", id: "loss-before", title: String(before.loss) }, figure(before.loss)), h("td", { class: "number", id: "loss-after", title: muted.length ? String(after.loss) : undefined }, muted.length ? figure(after.loss) : "")),
      before.top.map((/** @type {[string, number]} */ [text, probability], /** @type {number} */ i) => h("tr", {}, i === 0 ? h("th", { scope: "row" }, "next") : h("td", {}),
        h("td", {}, `${text} ${figure(probability, 3)}`), h("td", {}, muted.length ? `${after.top[i][0]} ${figure(after.top[i][1], 3)}` : ""))))),
    muted.length > 0 && h("p", { style: { "margin-top": ".7rem" } }, change_ >= 0 ? `The loss increases by ${figure(change_)} without ${muted.length > 1 ? "these heads" : "this head"}.` : `The loss decreases by ${figure(-change_)} without ${muted.length > 1 ? "these heads" : "this head"}.`));
  if (muted.length) announce(`Loss ${figure(after.loss)} instead of ${figure(before.loss)}`);
}
