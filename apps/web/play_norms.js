// Layer norm against batch norm: rows or columns.

import { h, replace } from "./dom.js";
import { batchNorm, layerNorm, rmsNorm } from "./math.js";
import { editable, matrix } from "./matrix.js";

/** @param {HTMLElement} root */
export function normPlay(root) {
  const x = [[1, 2, 3, 4], [10, 20, 30, 40], [1, 1, 1, 5]];
  const rows = ["token 0", "token 1", "token 2"];
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Layer norm and batch norm"),
    h("p", {}, "Layer norm takes each token by itself, across its features: a row. Batch norm takes each feature, across all tokens: a column. Change a number of token 0 and see who else moves: with batch norm the other tokens do, which is why text, with its ragged lengths and batches of one, uses layer norm."),
    h("div", { class: "matrices" }, editable("x", x, rows, draw), out)));
  function draw() {
    replace(out, h("div", { class: "matrices" }, matrix("layer norm: rows", x.map((row) => layerNorm(row)), { rows, digits: 4, most: 2 }), matrix("batch norm: columns", batchNorm(x), { rows, digits: 4, most: 2 }), matrix("RMS norm: rows, no mean taken", x.map((row) => rmsNorm(row)), { rows, digits: 4, most: 2 })));
  }
  draw();
}
