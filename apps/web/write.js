// Continues the text: a click on a token appends it, and tokens are sampled with the probabilities that the page shows.

import { ask, askBytes, post, startRun } from "./api.js";
import { announce, figure, h, percent, replace, shown } from "./dom.js";
import { filtered } from "./sampling.js";
import { change, current, mutedOf, wantedRun } from "./state.js";

/** @typedef {import("./api.js").Token} Token */
/** @typedef {import("./main.js").Session} Session */
/** @typedef {{ids: string, tids: string, text: string, target: string}} Continued */
/** @typedef {{chosen: Token, probability: number, others: [string, number][]}} Choice */
/** @typedef {{ids: Token[], log: number, chosen: Token | null, parent: Beam | null, dropped: number}} Beam `dropped`: the step at which it was left out, or 0 */

const LISTED = 4; // of the tokens that could have been chosen
const [WIDTH, DEPTH] = [3, 6]; // of the tree of beams

/** The choices so far, by the ids of the text that they led to. @type {{ids: string, choices: Choice[]}} */
let written = { ids: "", choices: [] };

/** The text with one more token, by ids: a text of the same letters could have other tokens. @param {Session} session @param {Token} token @returns {Continued} */
function continued({ shape, run }, token) {
  const state = current();
  const letters = /^<[0-9A-F]{2}( [0-9A-F]{2})*>$/.test(token.text) ? "\uFFFD" : token.text;
  if (!shape.both) return { ids: [...run.tokens.map(({ id }) => id), token.id].join(","), tids: "", text: state.text + letters, target: "" };
  const said = run.tokens.slice(1);
  return { ids: state.ids, tids: [...said.map(({ id }) => id), token.id].join(","), text: state.text, target: said.map((each) => each.text).join("") + letters };
}

/** @param {Session} session @param {Token} token @param {number} probability @param {[string, number][]} others */
export function append(session, token, probability, others) {
  const before = (session.shape.both ? current().tids : current().ids) || "";
  const next = continued(session, token);
  if (written.ids !== before) written = { ids: before, choices: [] };
  written = { ids: session.shape.both ? next.tids : next.ids, choices: [...written.choices, { chosen: token, probability, others }] };
  announce(`${token.text} appended`);
  change({ ...next, position: "", token: "", second: "" }, { replace: true });
}

/** @param {Session} session */
async function likely({ run, model }, count = LISTED) {
  const state = current();
  const logits = new Float32Array(await askBytes("api/logits", { run: run.run, position: run.tokens.length - 1 }));
  const found = filtered(logits, Number(state.temperature), Number(state.k), Number(state.p), logits.length);
  /** @type {Token[]} */
  const texts = await ask("api/texts", { model, ids: [...found.order.subarray(0, count)].join(",") });
  return { ...found, texts };
}

/** Samples one token with the probabilities of the sliders. @param {Session} session */
async function sampled(session) {
  const { order, probabilities, kept, texts } = await likely(session);
  let left = Math.random();
  let at = 0;
  while (at < kept - 1 && (left -= probabilities[at]) > 0) ++at;
  const [token] = at < texts.length ? [texts[at]] : await ask("api/texts", { model: session.model, ids: order[at] });
  return { token, probability: probabilities[at], others: texts.map((each, i) => /** @type {[string, number]} */ ([each.text, probabilities[i]])).filter(([text]) => text !== token.text).slice(0, LISTED - 1) };
}

/** @param {Session} session @param {string} model */
async function again(session, model) {
  return { ...session, run: await startRun(wantedRun({ ...current(), model })) };
}

/** @param {HTMLElement} root @param {Session} session */
export function drawWriting(root, session) {
  const { shape } = session;
  root.hidden = !shape.spec.decoder || !shape.languageModel;
  if (root.hidden) return;
  const note = h("p", { class: "small quiet", role: "status" });
  const tree = h("div", {});
  /** @param {() => Promise<void>} act */
  const busy = (act) => async () => {
    note.textContent = "Writing …";
    await act().then(() => { note.textContent = ""; }, (error) => { note.textContent = error.message; });
  };
  const write = (/** @type {number} */ count) => busy(async () => {
    let here = session;
    for (let i = 0; i < count; ++i) {
      const { token, probability, others } = await sampled(here);
      append(here, token, probability, others);
      if (token.special) break;
      if (i + 1 < count) here = await again(session, session.model);
    }
  });
  const asked = current();
  const mine = written.ids !== "" && written.ids === (shape.both ? asked.tids : asked.ids) ? written.choices : [];
  replace(root, h("h2", {}, "Write on"),
    h("p", { class: "quiet small" }, "Click a token in the list to append it, or sample with the temperature, top k and top p beside it."),
    h("div", { class: "row" },
      h("button", { "data-write": 1, onclick: write(1) }, "Write 1 token"), h("button", { "data-write": 10, onclick: write(10) }, "Write 10 tokens"),
      h("button", { "data-beams": true, onclick: busy(() => drawTree(tree, session)) }, `Search with ${WIDTH} beams`),
      shape.chat && h("button", { "data-chat": true, title: "Puts the text into the chat format of this model, as a user's message", onclick: busy(async () => {
        const { ids, text } = await post("api/prompt", { model: session.model, prompt: asked.text });
        change({ ids: ids.join(","), text, position: "", token: "" }, { replace: true });
      }) }, "As a chat message"),
      (asked.ids || asked.tids) && h("button", { "data-fresh": true, onclick: () => change({ ids: "", tids: "", ...(shape.both ? { target: "" } : {}), text: mine.length && !shape.both ? asked.text.slice(0, asked.text.length - mine.map(({ chosen }) => chosen.text).join("").length) : asked.text, position: "" }, { replace: true }) }, shape.both ? "Remove what was written" : mine.length ? "Remove what was written" : "Read as plain text")),
    note, mine.length > 0 && choices(mine), tree);
}

/** @param {Choice[]} all */
function choices(all) {
  return h("details", { open: all.length < 4 }, h("summary", {}, `${all.length} ${all.length === 1 ? "choice" : "choices"}, and what else each could have been`),
    h("ol", { class: "small choices" }, all.map(({ chosen, probability, others }) => h("li", {}, h("b", { dir: "auto" }, shown(chosen.text)), h("span", { class: "mono", title: String(probability) }, ` ${figure(probability)}`),
      h("span", { class: "quiet" }, ` · ${others.map(([text, p]) => `${shown(text)} ${percent(p)}`).join(", ")}`)))));
}

/** Beam search, step by step: which beams were kept, and at which step the others were dropped. @param {HTMLElement} root @param {Session} session */
async function drawTree(root, session) {
  /** @type {Beam} */
  const start = { ids: [], log: 0, chosen: null, parent: null, dropped: 0 };
  /** @type {Beam[]} */
  const all = [];
  let live = [start];
  for (let step = 1; step <= DEPTH; ++step) {
    /** @type {Beam[]} */
    const found = [];
    for (const beam of live) {
      const run = await startRun(requestOf(session, beam.ids));
      const logits = new Float32Array(await askBytes("api/logits", { run: run.run, position: run.tokens.length - 1 }));
      const { order, probabilities } = filtered(logits, 1, 0, 1, WIDTH);
      /** @type {Token[]} */
      const texts = await ask("api/texts", { model: session.model, ids: [...order].join(",") });
      texts.forEach((token, i) => found.push({ ids: [...beam.ids, token], log: beam.log + Math.log(probabilities[i]), chosen: token, parent: beam, dropped: 0 }));
    }
    found.sort((a, b) => b.log - a.log);
    found.forEach((beam, i) => { if (i >= WIDTH) beam.dropped = step; });
    all.push(...found);
    live = found.slice(0, WIDTH).filter((beam) => !beam.chosen?.special);
    if (live.length === 0) break;
  }
  const [best] = all.filter((beam) => beam.dropped === 0 && !all.some((each) => each.parent === beam)).sort((a, b) => b.log - a.log);
  const onBest = (/** @type {Beam} */ beam) => best && best.ids.slice(0, beam.ids.length).every((token, i) => token === beam.ids[i]);
  /** @param {Beam} of @returns {HTMLElement | null} */
  const branch = (of) => {
    const next = all.filter((beam) => beam.parent === of);
    return next.length ? h("ul", {}, next.map((beam) => h("li", { class: beam.dropped ? "dropped" : onBest(beam) ? "best" : undefined },
      h("span", { dir: "auto" }, shown(beam.chosen?.text ?? "")), h("span", { class: "mono small quiet", title: String(beam.log) }, ` ${figure(beam.log, 2)}${beam.dropped ? ` dropped at step ${beam.dropped}` : ""}`), branch(beam)))) : null;
  };
  replace(root, h("h3", {}, `The tree of ${WIDTH} beams`), h("p", { class: "quiet small" }, "The numbers are sums of log-probabilities. At each step the three best beams are kept; the best one of all is bold."),
    h("div", { class: "beams", tabindex: "0", role: "region", "aria-label": "Tree of beams" }, branch(start)));
}

/** @param {Session} session @param {Token[]} more */
function requestOf({ shape, run, model }, more) {
  const ids = [...run.tokens.slice(shape.both ? 1 : 0), ...more].map(({ id }) => id);
  if (!shape.both) return { model, text: "", target: "", ids, muted: mutedOf(current()) };
  return { model, text: "", target: "", ids: run.source.map(({ id }) => id), target_ids: ids, muted: mutedOf(current()) };
}
