// Layer norm and batch norm: they normalise rows or columns.

import { h, replace } from "./dom.js";
import { batchNorm, layerNorm, rmsNorm } from "./math.js";
import { editable, matrix } from "./matrix.js";

/** @param {HTMLElement} root */
export function normPlay(root) {
  const x = [[1, 2, 3, 4], [10, 20, 30, 40], [1, 1, 1, 5]];
  const rows = ["token 0", "token 1", "token 2"];
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Layer norm and batch norm"),
    h("p", {}, "Layer norm normalises each token over its features: a row. Batch norm normalises each feature over all tokens: a column. Change a number of token 0: with batch norm, the other tokens change as well. Models of text use layer norm, since texts differ in length and a batch may consist of a single text."),
    h("div", { class: "matrices" }, editable("x", x, rows, draw), out)));
  function draw() {
    replace(out, h("div", { class: "matrices" }, matrix("layer norm: rows", x.map((row) => layerNorm(row)), { rows, digits: 4, most: 2 }), matrix("batch norm: columns", batchNorm(x), { rows, digits: 4, most: 2 }), matrix("RMS norm: rows, no mean subtracted", x.map((row) => rmsNorm(row)), { rows, digits: 4, most: 2 })));
  }
  draw();
}
