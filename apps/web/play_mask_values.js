// A mask that leaks, and the number that stands for “masked”.

import { figure, h, replace, slider } from "./dom.js";
import { attention, bf16, plainSoftmax, randomOf } from "./math.js";
import { matrix } from "./matrix.js";

const WORDS = ["the", "cat", "sat", "down"];
const WIDTH = 4;

/** @param {HTMLElement} root */
export function leakPlay(root) {
  const here = { causal: true, change: 2 };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "A mask that leaks"),
    h("p", {}, "In training, all tokens of a text are predicted at once: the row of “sat” must predict “down”. If it sees “down”, it copies the answer, the loss falls to nothing, and when the model generates, where there is no next token to see, it has learned nothing. Change the last word: no earlier row may change."),
    h("div", { class: "row" }, h("label", {}, h("input", { type: "checkbox", checked: true, onchange: (/** @type {Event} */ event) => { here.causal = /** @type {HTMLInputElement} */ (event.target).checked; draw(); } }), "causal mask")),
    h("div", { class: "controls", style: { "max-width": "34rem", margin: ".8rem 0" } }, slider("Change of the last word", { least: 0, most: 4, step: 0.1, value: 2, word: (x) => x.toFixed(1) }, (x) => { here.change = x; draw(); }).row), out));
  const draw = () => {
    const before = WORDS.map((word) => randomOf(`leak ${word}`, WIDTH));
    const after = before.map((row, t) => (t === WORDS.length - 1 ? row.map((x) => x + here.change) : row));
    const sees = (/** @type {number} */ i, /** @type {number} */ j) => !here.causal || j <= i;
    const [a, b] = [before, after].map((x) => attention(x, x, x, Math.sqrt(WIDTH), sees));
    const moved = a.output.map((row, t) => Math.max(...row.map((x, i) => Math.abs(x - b.output[t][i]))));
    const leaking = moved.slice(0, -1).filter((x) => x > 0).length;
    replace(out, h("div", { class: "matrices" }, matrix("weights", b.weights, { rows: WORDS, columns: WORDS, weights: true, digits: 2, blank: (i, j) => !sees(i, j) }),
      h("table", { style: { width: "auto" } }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "row"), h("th", { scope: "col", class: "number" }, "changes by"), h("td", {}))),
        h("tbody", {}, WORDS.map((word, t) => h("tr", {}, h("th", { scope: "row" }, word), h("td", { class: "number", "data-moved": t, title: String(moved[t]) }, figure(moved[t])), h("td", {}, t < WORDS.length - 1 && moved[t] > 0 ? "leaks: it saw the answer" : "")))))),
    h("p", { id: "leaks" }, leaking ? `${leaking} rows see a later word.` : "No row sees a later word."));
  };
  draw();
}

/** @type {[string, number, (x: number) => number][]} name, value that is added to the score of a masked key, rounding */
const WAYS = [["−1e9, fp32", -1e9, Math.fround], ["−1e9, bf16", -1e9, bf16], ["−∞, fp32", -Infinity, Math.fround], ["−∞, bf16", -Infinity, bf16]];

/** @param {HTMLElement} root */
export function maskValuePlay(root) {
  const here = { scores: [2, 1, 0.5, -1], masked: [false, false, true, true] };
  const out = h("div");
  const row = h("div", { class: "row" });
  root.append(h("section", { class: "panel" }, h("h2", {}, "−1e9 or −∞"),
    h("p", {}, "Many programs add −1,000,000,000 to the scores of masked keys. It works as long as a row has a visible key. Mask all four: a sum with −1e9 loses the scores in rounding, so that all keys get the same weight, as if nothing were masked; −∞ minus −∞ is not a number, which spreads through the whole model. fovea computes visible keys only, and a row without any gives zeros."),
    row, out));
  const edit = () => replace(row, here.scores.map((score, i) => h("span", { class: "row", style: { gap: ".4rem" } },
    h("input", { type: "number", step: "any", value: score, "aria-label": `Score of key ${i}`, style: { width: "5.5rem" }, oninput: (/** @type {Event} */ event) => {
      const typed = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
      if (Number.isFinite(typed)) here.scores[i] = typed;
      draw();
    } }),
    h("label", {}, h("input", { type: "checkbox", checked: here.masked[i], "aria-label": `Mask key ${i}`, onchange: (/** @type {Event} */ event) => { here.masked[i] = /** @type {HTMLInputElement} */ (event.target).checked; draw(); } }), "masked"))),
  h("button", { onclick: () => { here.masked = [true, true, true, true]; edit(); draw(); } }, "Mask all"), h("button", { onclick: () => { here.scores = [2, 1, 0.5, -1]; here.masked = [false, false, true, true]; edit(); draw(); } }, "Reset"));
  const draw = () => {
    const visible = here.scores.map((score, i) => (here.masked[i] ? -Infinity : score));
    const none = here.masked.every(Boolean);
    const own = none ? here.scores.map(() => 0) : plainSoftmax(visible, (x) => x);
    const line = (/** @type {string} */ name, /** @type {number[]} */ weights, /** @type {string} */ note) => h("tr", { "data-way": name }, h("th", { scope: "row" }, name), weights.map((x) => h("td", { class: "number", title: String(x) }, figure(x))), h("td", { class: "quiet small" }, note));
    replace(out, h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Weights by kind of mask" }, h("table", { style: { "max-width": "50rem", "margin-top": "1rem" } }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "masked by"), here.scores.map((_, i) => h("th", { scope: "col", class: "number" }, `key ${i}`)), h("td", {}))),
      h("tbody", {}, WAYS.map(([name, value, round]) => {
        const weights = plainSoftmax(here.scores.map((score, i) => round(round(score) + (here.masked[i] ? value : 0))), round);
        return line(name, weights, weights.some(Number.isNaN) ? "not a number" : none ? "masked keys get all of the weight" : "");
      }), line("fovea: visible keys only", own, none ? "a row without keys is zero" : "")))));
  };
  edit();
  draw();
}
