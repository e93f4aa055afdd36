// A matrix as a table of shaded numbers or of editable fields.

import { color, ink, signed } from "./colors.js";
import { figure, h } from "./dom.js";

/**
 * @param {string} name @param {number[][]} values
 * @param {{rows?: string[], columns?: string[], weights?: boolean, digits?: number, onRow?: (row: number) => void, chosen?: number, blank?: (i: number, j: number) => boolean, most?: number}} [options]
 *   weights: use the colour scale of weights instead of that of signed numbers
 */
export function matrix(name, values, options = {}) {
  const most = options.most ?? Math.max(...values.flat().map(Math.abs), 1e-9);
  const columns = options.columns;
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": name }, h("table", { class: "grid-edit", "data-matrix": name }, h("caption", { class: "small quiet", style: { "text-align": "left" } }, name),
    columns && h("thead", {}, h("tr", {}, options.rows && h("td", {}), columns.map((each) => h("th", { scope: "col" }, each)))),
    h("tbody", {}, values.map((row, i) => h("tr", {},
      options.rows && h("th", { scope: "row" }, options.onRow ? h("button", { "aria-pressed": String(options.chosen === i), "data-row": i, onclick: () => options.onRow?.(i) }, options.rows[i]) : options.rows[i]),
      row.map((value, j) => h("td", {}, h("span", { "data-cell": `${i},${j}`, title: String(value),
        style: options.blank?.(i, j) ? { background: "var(--blank)", color: "var(--quiet)" } : options.weights ? { background: color(value), color: ink(value) } : { background: signed(value, most) } },
      options.blank?.(i, j) ? "−∞" : figure(value, options.digits ?? 3)))))))));
}

/** @param {string} name @param {number[][]} values changed in place @param {string[]} rows @param {() => void} act */
export function editable(name, values, rows, act) {
  return h("div", { class: "wide" }, h("table", { class: "grid-edit" }, h("caption", { class: "small quiet", style: { "text-align": "left" } }, name),
    h("tbody", {}, values.map((row, i) => h("tr", {}, h("th", { scope: "row" }, rows[i]),
      row.map((value, j) => h("td", {}, h("input", { type: "number", step: "any", value: value, "aria-label": `${name}, ${rows[i]}, number ${j + 1}`, oninput: (/** @type {Event} */ event) => {
        const typed = /** @type {HTMLInputElement} */ (event.target).valueAsNumber;
        if (!Number.isFinite(typed)) return;
        row[j] = typed;
        act();
      } }))))))));
}
