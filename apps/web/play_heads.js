// How a vector is split among heads, concatenated again and mixed by W_O.

import { headColor } from "./colors.js";
import { figure, h, replace, svg } from "./dom.js";
import { attention, randomOf, times } from "./math.js";
import { matrix } from "./matrix.js";

const [TOKENS, WIDTH] = [3, 8];
const WORDS = ["the", "cat", "sat"];

/** @param {HTMLElement} root */
export function headsPlay(root) {
  const here = { heads: 4, equal: false };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Heads: split, concatenate, mix"),
    h("p", {}, `Three tokens of width ${WIDTH}. Each head gets its own part of the queries, keys and values, attends on its own, and returns its part; the parts are written side by side, and W_O lets them work together.`),
    h("div", { class: "row" }, h("label", {}, "Heads", h("select", { onchange: (/** @type {Event} */ event) => { here.heads = Number(/** @type {HTMLSelectElement} */ (event.target).value); draw(); } }, [1, 2, 4, 8].map((n) => h("option", { value: n, selected: n === here.heads }, n)))),
      h("label", {}, h("input", { type: "checkbox", onchange: (/** @type {Event} */ event) => { here.equal = /** @type {HTMLInputElement} */ (event.target).checked; draw(); } }), "W_O is the identity")), out));
  const draw = () => {
    const D = WIDTH / here.heads;
    const x = WORDS.map((word) => randomOf(`token ${word}`, WIDTH));
    const weights = (/** @type {string} */ name) => Array.from({ length: WIDTH }, (_, i) => randomOf(`${name} ${i}`, WIDTH).map((value) => value / Math.sqrt(WIDTH)));
    const [q, k, v] = ["query", "key", "value"].map((name) => times(x, weights(name)));
    const cut = (/** @type {number[][]} */ of, /** @type {number} */ head) => of.map((row) => row.slice(head * D, (head + 1) * D));
    const parts = Array.from({ length: here.heads }, (_, head) => attention(cut(q, head), cut(k, head), cut(v, head), Math.sqrt(D)));
    const together = WORDS.map((_, t) => parts.flatMap((part) => part.output[t]));
    const mix = here.equal ? Array.from({ length: WIDTH }, (_, i) => Array.from({ length: WIDTH }, (__, j) => (i === j ? 1 : 0))) : weights("output");
    replace(out, picture(here.heads), h("div", { class: "matrices", style: { "margin-top": "1rem" } }, parts.slice(0, 4).map((part, head) => matrix(`weights of head ${head}: [T ${TOKENS}, S ${TOKENS}]`, part.weights, { rows: WORDS, columns: WORDS, weights: true, digits: 2 }))),
      here.heads > 4 && h("p", { class: "quiet small" }, "The first four of eight heads."),
      h("div", { class: "matrices", style: { "margin-top": "1rem" } }, matrix(`side by side: [T ${TOKENS}, C ${WIDTH}]`, together, { rows: WORDS, digits: 2 }), matrix(`times W_O: [T ${TOKENS}, C ${WIDTH}]`, times(together, mix), { rows: WORDS, digits: 2 })),
      h("p", {}, `${here.heads} × ${WIDTH} × ${D} = ${here.heads * WIDTH * D} numbers in each of W_Q, W_K and W_V, for any number of heads: the width is divided, not multiplied. The score of a head is divided by √${D} = ${figure(Math.sqrt(D))}.`));
  };
  draw();
}

/** @param {number} heads */
function picture(heads) {
  const D = WIDTH / heads;
  const side = 22;
  const block = (/** @type {number} */ x, /** @type {number} */ y, /** @type {number} */ from, /** @type {number} */ columns) => Array.from({ length: TOKENS * columns }, (_, i) =>
    svg("rect", { x: x + (i % columns) * side, y: y + Math.floor(i / columns) * side, width: side - 2, height: side - 2, rx: 3, fill: headColor(Math.floor((from + (i % columns)) / D)) }));
  const gap = 10;
  const middle = WIDTH * side + 70;
  const wide = heads * gap + WIDTH * side;
  const end = middle + wide + 60;
  const arrow = (/** @type {number} */ x, /** @type {string} */ text) => [svg("text", { x: x + 24, y: 42, "text-anchor": "middle" }, text), svg("path", { d: `M${x + 6},55h32m-6,-5l6,5l-6,5`, stroke: "var(--quiet)", fill: "none", "stroke-width": 1.5 })];
  return svg("svg", { class: "plot", viewBox: `0 0 ${end + 2 * WIDTH * side + 80} 100`, role: "img", "aria-label": `A row of ${WIDTH} numbers is split into ${heads} parts of ${D}, concatenated, and mixed by a matrix` },
    block(4, 22, 0, WIDTH), svg("text", { x: 4, y: 14 }, `q, k, v: [T ${TOKENS}, C ${WIDTH}]`), arrow(WIDTH * side + 8, "split"),
    Array.from({ length: heads }, (_, head) => block(middle + head * (D * side + gap), 22, head * D, D)).flat(), svg("text", { x: middle, y: 14 }, `[H ${heads}, T ${TOKENS}, D ${D}]`), arrow(middle + wide, "join"),
    block(end, 22, 0, WIDTH), svg("text", { x: end, y: 14 }, `[T ${TOKENS}, C ${WIDTH}]`), arrow(end + WIDTH * side + 4, "W_O"),
    Array.from({ length: TOKENS * WIDTH }, (_, i) => svg("rect", { x: end + WIDTH * side + 66 + (i % WIDTH) * side, y: 22 + Math.floor(i / WIDTH) * side, width: side - 2, height: side - 2, rx: 3, fill: "var(--strong)" })));
}
