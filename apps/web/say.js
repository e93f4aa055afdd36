// The prediction of the next token, its development over the layers, and the surprise of each token.

import { ask, askBytes } from "./api.js";
import { color, ink, signed, tint } from "./colors.js";
import { figure, h, onceAFrame, oneStop, percent, replace, shown } from "./dom.js";
import { change, current } from "./state.js";
import { filtered } from "./sampling.js";
import { append, drawWriting } from "./write.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./api.js").Token} Token */
const BARS = 15;
const COLUMNS = 24; // positions that the lens shows at once
/** @type {Record<string, string>} descriptions of heads that do not predict tokens */
const HEAD_WORDS = {
  pooled: "one vector for the entire text; similar texts have similar vectors", sequence: "one for each label of the text",
  token: "one for each label of this token", span: "scores of the start and the end of the answer at this token",
};
const LAYERS = 40; // rows of the lens; deeper models show a selection of layers

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function sayView(root) {
  const next = h("section", { class: "panel", "aria-label": "The next token" });
  const sliders = h("section", { class: "panel", "aria-label": "Sampling" });
  const lens = h("section", { class: "panel", "aria-label": "Logit lens" });
  const surprise = h("section", { class: "panel", "aria-label": "Surprise" });
  const writing = h("section", { class: "panel", "aria-label": "Write on" });
  root.append(h("div", { class: "columns" }, h("div", {}, next, writing), sliders), surprise, lens);
  /** @type {Float32Array | null} */
  let logits = null;
  /** @type {Session | null} */
  let here = null;
  const bars = onceAFrame(() => {
    if (here && logits) void drawBars(next, here, current(), logits);
  });
  return {
    update(session, state, before) {
      if (!session) return;
      const fresh = here !== session || !before;
      const position = positionOf(session, state);
      if (!session.shape.languageModel) {
        here = session;
        void drawLabels(next, session, position);
        replace(sliders, h("p", { class: "quiet" }, "The head of this model does not predict tokens, so there is no sampling, no logit lens and no surprise. The view “Heads” shows how its output changes if heads are switched off."));
        replace(lens);
        replace(surprise);
        lens.hidden = surprise.hidden = writing.hidden = true;
        return;
      }
      if (fresh) {
        lens.hidden = surprise.hidden = false;
        here = session;
        drawWriting(writing, session);
        drawSliders(sliders, state, () => bars());
        void drawSurprise(surprise, session);
      }
      if (fresh || before?.position !== state.position) {
        void drawLens(lens, session, position);
        askBytes("api/logits", { run: session.run.run, position }).then((bytes) => {
          logits = new Float32Array(bytes);
          bars();
        }, (error) => replace(next, h("p", { class: "error", role: "alert" }, error.message)));
      } else {
        bars();
      }
    },
  };
}

/** @param {Session} session @param {State} state */
function positionOf(session, state) {
  const last = session.run.tokens.length - 1;
  if (state.position !== "") return Math.min(Number(state.position), last);
  // An encoder predicts masked tokens: its prediction within the text is more informative than that of the last token.
  return session.shape.spec.decoder ? last : Math.min(1, last);
}

/** @param {HTMLElement} root @param {State} state @param {() => void} act */
function drawSliders(root, state, act) {
  const line = (/** @type {"temperature" | "k" | "p"} */ key, /** @type {string} */ name, /** @type {number} */ least, /** @type {number} */ most, /** @type {number} */ step, /** @type {string} */ help, /** @type {(x: string) => string} */ word) => {
    const output = h("output", { class: "mono", for: key }, word(state[key]));
    const input = h("input", { type: "range", id: key, min: least, max: most, step, oninput: () => {
      output.textContent = word(input.value);
      change({ [key]: input.value }, { replace: true });
      act();
    } });
    input.value = state[key];
    return [h("label", { for: key, title: help }, name), input, output];
  };
  replace(root, h("h2", {}, "Sampling"),
    h("div", { class: "controls" },
      line("temperature", "Temperature", 0.05, 3, 0.05, "Divides the logits: low values favour likely tokens, high values give more variety.", (x) => Number(x).toFixed(2)),
      line("k", "Top k", 0, 100, 1, "Keeps only the k most likely tokens.", (x) => (x === "0" ? "all" : x)),
      line("p", "Top p", 0.05, 1, 0.01, "Keeps only the most likely tokens: as few as possible whose probabilities add up to at least this value.", (x) => (Number(x) === 1 ? "all" : Number(x).toFixed(2)))),
    h("p", { class: "quiet small", style: { "margin-top": ".8rem" } }, "Applied in this order: temperature, top k, top p. Excluded tokens are pale; the other probabilities are normalised to 1."),
    h("button", { onclick: () => {
      change({ temperature: "1", k: "0", p: "1" }, { replace: true });
      drawSliders(root, current(), act);
      act();
    } }, "Reset"));
}

/** @param {HTMLElement} root @param {Session} session @param {State} state @param {Float32Array} logits */
async function drawBars(root, session, state, logits) {
  const { order, probabilities, kept } = filtered(logits, Number(state.temperature), Number(state.k), Number(state.p), BARS);
  /** @type {Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: [...order].join(",") });
  const position = positionOf(session, state);
  const decoder = Boolean(session.shape.spec.decoder);
  const last = decoder && position === session.run.tokens.length - 1;
  const others = (/** @type {number} */ chosen) => texts.slice(0, 4).map((token, i) => /** @type {[string, number]} */ ([token.text, probabilities[i]])).filter((_, i) => i !== chosen);
  replace(root, h("h2", {}, decoder ? "Next token" : "Token at this position"),
    h("p", { class: "quiet small" }, decoder ? "After “" : "At “", h("b", {}, shown(session.run.tokens[position].text)), `” (token ${position}). ${kept === logits.length ? `All ${kept.toLocaleString("en")} tokens can be sampled.` : kept === 1 ? "1 token is left." : `${kept} tokens are left.`}`),
    h("div", { class: "bars", role: "list", "aria-label": "Probabilities" }, texts.map((token, i) => h("div", { class: `bar-row${i >= kept ? " cut" : ""}`, role: "listitem" },
      h("span", { class: "name", dir: "auto", title: `id ${token.id}` }, last && i < kept ? h("button", { class: "small", "data-append": token.id, title: "Append this token to the text",
        onclick: () => append(session, token, probabilities[i], others(i)) }, shown(token.text)) : shown(token.text)),
      h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "fill", style: { width: `${100 * probabilities[i]}%` } })),
      h("span", { class: "number", "data-id": token.id, title: i >= kept ? undefined : String(probabilities[i]) }, i >= kept ? "—" : figure(probabilities[i]))))));
}

/** @param {HTMLElement} root @param {Session} session @param {number} position */
async function drawLabels(root, session, position) {
  const outputs = new Float32Array(await askBytes("api/logits", { run: session.run.run, position }));
  const most = outputs.reduce((found, x) => Math.max(found, Math.abs(x)), 1e-9);
  const { kind } = session.shape.spec.head;
  replace(root, h("h2", {}, "Output of the head"),
    h("p", { class: "quiet small" }, `${outputs.length.toLocaleString("en")} numbers${HEAD_WORDS[kind] ? `: ${HEAD_WORDS[kind]}` : ` (${kind})`}.`),
    h("div", { class: "cells" }, [...outputs.slice(0, 64)].map((x) => h("span", { style: { background: signed(x, most) } }, figure(x)))),
    h("p", { class: "quiet small", style: { "margin-top": ".6rem" } }, outputs.length > 64 ? "The first 64. Orange: positive; blue: negative." : "Orange: positive; blue: negative."));
}

/** @param {HTMLElement} root @param {Session} session */
async function drawSurprise(root, session) {
  /** @type {{id: number, probability: number, rank: number, entropy: number, likeliest: number, likeliest_probability: number}[]} */
  const all = await ask("api/surprise", { run: session.run.run });
  const { tokens } = session.run;
  const ahead = tokens.length - all.length;
  const bits = all.map((each) => -Math.log2(each.probability));
  const loss = all.reduce((sum, each) => sum - Math.log(each.probability), 0) / Math.max(all.length, 1);
  const note = h("p", { class: "reading small quiet", "aria-live": "polite" }, "Select a token to see the prediction of the model.");
  const order = [...bits.keys()].sort((a, b) => bits[b] - bits[a]);
  const tell = async (/** @type {number} */ i) => {
    const [likeliest] = await ask("api/texts", { model: session.model, ids: all[i].likeliest });
    note.textContent = `“${shown(tokens[i + ahead].text)}”: probability ${figure(all[i].probability)}, ${figure(bits[i], 2)} bits, rank ${all[i].rank + 1}. Most likely: “${shown(likeliest.text)}” with ${figure(all[i].likeliest_probability, 4)}. Entropy ${figure(all[i].entropy / Math.LN2, 2)} bits.`;
  };
  const word = (/** @type {number} */ i) => h("button", { onclick: () => void tell(i) }, `${shown(tokens[i + ahead].text)} ${figure(bits[i], 1)}`);
  replace(root, h("h2", {}, "Surprise"),
    h("p", { class: "quiet small" }, ahead ? `The colour of a token shows its surprise: −log₂ of its probability given the preceding text. Mean loss ${figure(loss)} nats, perplexity ${figure(Math.exp(loss), 2)}.`
      : `The surprise of each input token, given the entire text. Mean ${figure(loss)} nats.`),
    oneStop(h("div", { class: "surprise", dir: "auto", role: "group", "aria-label": "Tokens by surprise" }, tokens.map((token, i) => {
      const at = i - ahead;
      if (at < 0) return h("span", { class: "quiet" }, token.text);
      const share = bits[at] / 14;
      return h("button", { title: `${figure(bits[at], 2)} bits`, "data-bits": bits[at], style: { background: tint("positive", share) },
        onclick: () => void tell(at) }, token.text === "\n" ? "↵\n" : token.text);
    }))),
    note,
    h("div", { class: "row" },
      h("div", {}, h("h3", {}, "Most surprising"), h("div", { class: "row" }, order.slice(0, 6).map(word))),
      h("div", {}, h("h3", {}, "Most certain"), h("div", { class: "row" }, order.slice(-6).reverse().map(word)))));
}

/** @param {HTMLElement} root @param {Session} session @param {number} position */
async function drawLens(root, session, position) {
  const { tokens } = session.run;
  const first = Math.max(0, Math.min(position - COLUMNS + 5, tokens.length - COLUMNS));
  const end = Math.min(tokens.length, first + COLUMNS);
  /** @type {[number, number][][]} */
  const layers = await ask("api/lens", { run: session.run.run, positions: `${first}-${end}` });
  const ids = [...new Set(layers.flat().map(([id]) => id))];
  /** @type {Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: ids.join(",") });
  const names = new Map(ids.map((id, i) => [id, shown(texts[i].text)]));
  const every = Math.ceil(layers.length / LAYERS);
  const rows = [...layers.keys()].filter((layer) => layer % every === 0 || layer === layers.length - 1).reverse();
  const go = (/** @type {number} */ to) => change({ position: String(Math.min(Math.max(to, 0), tokens.length - 1)) }, { replace: true });
  replace(root, h("h2", {}, "Logit lens"),
    h("p", { class: "quiet small" }, "The prediction of the head from the residual stream before each layer and after the last one (end). Read a column from the bottom to the top. The colour shows the probability. Click the word of a column to see the probabilities at that position."),
    h("div", { class: "lens", tabindex: "0", role: "region", "aria-label": "Logit lens table" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "layer"), tokens.slice(first, end).map((token, i) =>
        h("th", { scope: "col" }, h("button", { class: "small", "aria-pressed": first + i === position ? "true" : "false", "data-position": first + i, style: { border: "0", padding: "0 .2rem" }, onclick: () => go(first + i) }, shown(token.text)))))),
      h("tbody", {}, rows.map((layer) => h("tr", {}, h("th", { scope: "row" }, layer === layers.length - 1 ? "end" : layer),
        layers[layer].map(([id, probability]) => h("td", { title: `${names.get(id)}: ${percent(probability)}`, style: { background: color(probability), color: ink(probability) } }, names.get(id)))))))),
    tokens.length > COLUMNS && h("div", { class: "row", style: { "margin-top": ".6rem" } }, h("button", { onclick: () => go(first - 1) }, "← earlier"),
      h("span", { class: "quiet small" }, `tokens ${first} to ${end - 1} of ${tokens.length}`), h("button", { onclick: () => go(end + COLUMNS - 6) }, "later →")));
}
