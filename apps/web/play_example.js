// The worked example of three tokens with four numbers each: every number can be changed, and all results are updated.

import { h, replace } from "./dom.js";
import { attention } from "./math.js";
import { editable, matrix } from "./matrix.js";
import { figure } from "./dom.js";

export const START = [[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]];
const ROWS = ["The", "cat", "sat"];
/** @type {Record<string, (i: number, j: number) => boolean>} */
const MASKS = { none: () => true, causal: (i, j) => j <= i, padding: (_, j) => j < 2 };

/** @param {HTMLElement} root */
export function examplePlay(root) {
  const fresh = () => START.map((row) => [...row]);
  const here = { x: fresh(), divisor: 2, mask: "none", row: 0 };
  const inputs = h("div");
  const out = h("div");
  const edit = () => replace(inputs, editable("X: query, key and value of each token", here.x, ROWS, draw));
  root.append(h("section", { class: "panel" }, h("h2", {}, "Three tokens by hand"),
    h("p", {}, "Query, key and value are the same vector here, so that every step is visible. Change any number."),
    h("div", { class: "matrices" }, inputs, h("div", { class: "controls" },
      h("label", { for: "divisor" }, "Divisor"), h("input", { id: "divisor", type: "number", step: "any", min: "0.01", value: here.divisor, oninput: (/** @type {Event} */ event) => {
        const typed = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
        if (typed > 0) here.divisor = typed;
        draw();
      } }), h("span", { class: "quiet small" }, "√4 = 2"),
      h("label", { for: "mask" }, "Mask"), h("select", { id: "mask", onchange: (/** @type {Event} */ event) => { here.mask = /** @type {HTMLSelectElement} */ (event.target).value; draw(); } }, Object.keys(MASKS).map((name) => h("option", { value: name }, name))), h("span", {}),
      h("button", { onclick: () => { here.x = fresh(); edit(); draw(); } }, "Reset"))), out));
  function draw() {
    const sees = MASKS[here.mask];
    const { scores, scaled, weights, output } = attention(here.x, here.x, here.x, here.divisor, sees);
    const hidden = (/** @type {number} */ i, /** @type {number} */ j) => !sees(i, j);
    const options = { rows: ROWS, columns: ROWS, digits: 4 };
    const row = here.row;
    const exps = scaled[row].map((x, j) => (sees(row, j) ? Math.exp(x) : 0));
    const sum = exps.reduce((a, b) => a + b, 0);
    replace(out, h("div", { class: "matrices", style: { "margin-top": "1rem" } },
      matrix("1. scores = X Xᵀ", scores, options), matrix("2. scaled = scores / divisor", scaled, { ...options, blank: hidden }),
      matrix("3. weights = softmax of each row", weights, { ...options, weights: true, onRow: (i) => { here.row = i; draw(); }, chosen: row }),
      matrix("4. output = weights X", output, { rows: ROWS, digits: 4 })),
    h("h3", { style: { "margin-top": "1rem" } }, `Row “${ROWS[row]}” in detail`),
    h("div", { class: "formula", tabindex: "0" }, `exp(${scaled[row].map((x, j) => (sees(row, j) ? figure(x, 3) : "−∞")).join("), exp(")}) = ${exps.map((x) => figure(x, 4)).join(", ")};  sum ${figure(sum, 4)};  weights ${weights[row].map((x) => figure(x, 4)).join(", ")}`));
  }
  edit();
  draw();
}
