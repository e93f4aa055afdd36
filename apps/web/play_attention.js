// Scaled dot-product attention for a short sentence: the purpose of the divisor.

import { figure, h, replace, slider } from "./dom.js";
import { attention, entropy, gradientThrough, randomOf, wave } from "./math.js";
import { matrix } from "./matrix.js";

/** @type {Record<string, string>} */
const HEADS = {
  random: "untrained: queries and keys are random numbers of variance 1",
  neighbour: "attends to the previous word: queries match the sinusoids of the previous position",
  same: "attends to words with the same first letter",
};

/** @param {HTMLElement} root */
export function attentionPlay(root) {
  const here = { words: "the cat sat on the mat".split(" "), width: 64, divisor: 8, head: "random", row: 1 };
  const out = h("div");
  const divisor = slider("Divisor", { least: 0.1, most: 32, step: 0.1, value: 8, word: (x) => x.toFixed(1) }, (x) => { here.divisor = x; draw(); });
  const width = slider("Width of a head, d", { least: 2, most: 9, step: 1, value: 6, word: (x) => String(2 ** x) }, (x) => { here.width = 2 ** x; draw(); });
  const right = h("button", { onclick: () => { here.divisor = Math.sqrt(here.width); divisor.set(here.divisor); draw(); } }, "Divide by √d");
  const none = h("button", { onclick: () => { here.divisor = 1; divisor.set(1); draw(); } }, "Do not divide");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Why scores are divided by √d"),
    h("p", {}, "The dot product of two vectors of d random numbers of variance 1 has variance d. Without the divisor, wider heads give most of the weight to few words, and less of the gradient passes. Move the divisor to see the effect."),
    h("div", { class: "row" }, h("label", {}, "Sentence", h("input", { type: "text", value: here.words.join(" "), maxlength: "60", oninput: (/** @type {Event} */ event) => {
      const words = /** @type {HTMLInputElement} */ (event.target).value.trim().split(/\s+/).filter(Boolean).slice(0, 8);
      if (words.length > 0) here.words = words;
      draw();
    } })), h("label", {}, "Head", h("select", { onchange: (/** @type {Event} */ event) => { here.head = /** @type {HTMLSelectElement} */ (event.target).value; draw(); } },
      Object.keys(HEADS).map((name) => h("option", { value: name }, name)))), right, none),
    h("div", { class: "controls", style: { "max-width": "34rem", margin: "1rem 0" } }, divisor.row, width.row), out));

  function draw() {
    const n = here.words.length;
    here.row = Math.min(here.row, n - 1);
    const { q, k } = vectors(here.words, here.width, here.head);
    const { scores, weights } = attention(q, k, q, here.divisor);
    const row = weights[here.row];
    const share = entropy(row) / Math.log(Math.max(n, 2));
    const through = weights.reduce((sum, each) => sum + gradientThrough(each), 0) / n;
    const spread = Math.sqrt(scores.flat().reduce((sum, x) => sum + x * x, 0) / (n * n));
    replace(out, h("p", { class: "quiet small" }, HEADS[here.head], "."),
      h("div", { class: "matrices" },
        matrix("weights: each row adds up to 1", weights, { rows: here.words, columns: here.words, weights: true, onRow: (i) => { here.row = i; draw(); }, chosen: here.row }),
        h("div", { style: { flex: "1", "min-width": "16rem" } }, h("h3", {}, `“${here.words[here.row]}” attends to`),
          h("div", { class: "bars" }, row.map((weight, j) => h("div", { class: "bar-row" }, h("span", { class: "name" }, here.words[j]), h("span", { class: "track", "aria-hidden": "true" }, h("span", { class: "fill", style: { width: `${100 * weight}%` } })), h("span", { class: "number" }, figure(weight))))),
          h("table", { style: { "margin-top": "1rem" } }, h("tbody", {},
            line("size of the scores (root mean square)", figure(spread, 2), `√d = ${figure(Math.sqrt(here.width), 2)}`),
            line("largest weight of this row", figure(Math.max(...row)), Math.max(...row) > 0.95 ? "saturated" : ""),
            line("entropy, relative to the maximum", figure(share), share < 0.1 ? "attends to one word only" : ""),
            line("gradient that passes (mean of the upper bounds)", figure(through), through < 0.05 ? "training stalls" : ""))))));
  }
  draw();
}

/** @param {string} name @param {string} value @param {string} note */
function line(name, value, note) {
  return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, value), h("td", { class: "quiet small" }, note));
}

/** @param {string[]} words @param {number} width @param {string} head */
function vectors(words, width, head) {
  const at = (/** @type {number} */ position) => Array.from({ length: width }, (_, i) => 1.4 * wave(position, i, width));
  if (head === "neighbour") return { q: words.map((_, i) => at(i - 1)), k: words.map((_, i) => at(i)) };
  if (head === "same") {
    const letter = words.map((word) => randomOf(`letter ${word[0]?.toLowerCase()}`, width));
    return { q: letter, k: letter };
  }
  return { q: words.map((word) => randomOf(`query ${word}`, width)), k: words.map((word, i) => randomOf(`key ${word} ${i}`, width)) };
}
