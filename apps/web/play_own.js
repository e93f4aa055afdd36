// Queries, keys and values typed by hand, the same as a NumPy function, and a check of the reader's own result.

import { figure, h, replace } from "./dom.js";
import { attention } from "./math.js";
import { matrix } from "./matrix.js";

/** @type {Record<"Q" | "K" | "V", string>} two queries and three keys of width 3, values of width 2 */
const START = { Q: "1 0 1\n0 1 0", K: "1 1 0\n0 1 1\n1 0 1", V: "1 2\n3 0\n0 1" };
const PROGRAM = `import numpy as np

def attention(Q, K, V, blocked=None):
    scores = Q @ K.T / np.sqrt(K.shape[-1])           # [T, S]
    if blocked is not None:
        scores = np.where(blocked, -np.inf, scores)
    scores -= scores.max(axis=-1, keepdims=True)      # no overflow
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)    # over the keys
    return weights @ V, weights                       # [T, D'], [T, S]
`;

/** Rows of numbers, also with brackets and commas as Python prints them. @param {string} text @returns {number[][] | string} or what is wrong */
export function matrixOf(text) {
  const rows = text.split(/\n|;|\]\s*,?\s*\[/).map((line) => line.replace(/[[\](),]|array/g, " ").trim().split(/\s+/).filter(Boolean)).filter((row) => row.length);
  if (rows.length === 0) return "empty; expected rows of numbers";
  if (rows.some((row) => row.length !== rows[0].length)) return `rows of ${rows.map((row) => row.length).join(", ")} numbers; expected rows of one length`;
  const wrong = rows.flat().find((word) => !Number.isFinite(Number(word)));
  return wrong === undefined ? rows.map((row) => row.map(Number)) : `“${wrong}”; expected a number`;
}

/** The first step whose result the reader's numbers are, or the mistake that they show. @param {number[][]} found @param {number[][]} q @param {number[][]} k @param {number[][]} v @returns {{right: boolean, text: string}} */
export function judged(found, q, k, v) {
  const scale = Math.sqrt(k[0].length);
  const { scores, scaled, weights, output } = attention(q, k, v, scale);
  const columns = scaled[0].map((_, j) => scaled.map((row) => row[j])).map((column) => {
    const exps = column.map(Math.exp);
    return exps.map((x) => x / exps.reduce((a, b) => a + b, 0));
  });
  /** @type {[string, number[][], boolean][]} */
  const known = [["Right: the output.", output, true], ["These are the weights, and they are right. The output is weights × V.", weights, true], ["These are the scaled scores, and they are right. The softmax over the keys comes next.", scaled, true],
    ["These are the scores before the division by √d.", scores, k[0].length === 1], ["The softmax ran over the queries: rows must add up to 1, not columns.", scaled.map((row, i) => row.map((_, j) => columns[j][i])), false],
    ["These are weights of scores that were not divided by √d.", attention(q, k, v, 1).weights, false], ["The scores were not divided by √d.", attention(q, k, v, 1).output, false],
    ["The scores were divided by d, not by √d.", attention(q, k, v, scale * scale).output, false]];
  const near = (/** @type {number[][]} */ wanted) => wanted.length === found.length && wanted[0].length === found[0].length && wanted.every((row, i) => row.every((x, j) => Math.abs(x - found[i][j]) <= 1e-3 * Math.max(1, Math.abs(x))));
  const hit = known.find(([, wanted]) => near(wanted));
  if (hit) return { right: hit[2], text: hit[0] };
  if (found.length !== output.length || found[0].length !== output[0].length) return { right: false, text: `The shape is [${found.length}, ${found[0].length}]; the output's is [${output.length}, ${output[0].length}].` };
  const [i, j] = output.flatMap((row, r) => row.map((x, c) => [r, c, Math.abs(x - found[r][c])])).reduce((a, b) => (b[2] > a[2] ? b : a));
  return { right: false, text: `Row ${i}, column ${j} is ${figure(found[i][j])}; expected ${figure(output[i][j])}.` };
}

/** @param {HTMLElement} root */
export function ownPlay(root) {
  const here = { ...START };
  const out = h("div");
  const box = (/** @type {"Q" | "K" | "V"} */ name) => h("label", { class: "typed" }, h("span", {}, name), h("textarea", { rows: "4", spellcheck: "false", "data-typed": name, oninput: (/** @type {Event} */ event) => { here[name] = /** @type {HTMLTextAreaElement} */ (event.target).value; draw(); } }, START[name]));
  const verdict = h("p", { role: "status", id: "verdict" });
  const own = h("textarea", { rows: "4", spellcheck: "false", "aria-label": "Your result", placeholder: "0.938 0.000" });
  root.append(h("section", { class: "panel" }, h("h2", {}, "Your own queries, keys and values"),
    h("p", {}, "One row a line. Compute the output on paper or with your own program, and check it below. ", h("code", {}, "fovea check FILE"), " does the same for arrays of a program, step by step."),
    h("div", { class: "row boxes" }, box("Q"), box("K"), box("V")), out,
    h("div", { class: "pair", style: { "margin-top": "1rem" } }, h("div", {}, h("h3", {}, "The same in NumPy"), h("pre", { class: "formula", tabindex: "0" }, PROGRAM)),
      h("div", {}, h("h3", {}, "Your result"), own, h("div", { class: "row", style: { margin: ".6rem 0" } }, h("button", { class: "primary", onclick: () => check() }, "Check")), verdict))));
  const read = () => /** @type {const} */ (["Q", "K", "V"]).map((name) => matrixOf(here[name]));
  const problem = () => {
    const all = read();
    const at = all.findIndex((each) => typeof each === "string");
    if (at >= 0) return `${"QKV"[at]}: ${all[at]}`;
    const [q, k, v] = /** @type {number[][][]} */ (all);
    if (q[0].length !== k[0].length) return `K: rows of ${k[0].length} numbers; expected ${q[0].length}, as in Q`;
    return k.length === v.length ? "" : `V: ${v.length} rows; expected ${k.length}, one for each key`;
  };
  const check = () => {
    const found = matrixOf(own.value);
    const wrong = problem() || (typeof found === "string" ? `Your result: ${found}` : "");
    if (wrong) {
      verdict.textContent = wrong;
      return;
    }
    const [q, k, v] = /** @type {number[][][]} */ (read());
    const { right, text } = judged(/** @type {number[][]} */ (found), q, k, v);
    verdict.textContent = `${right ? "✓" : "✗"} ${text}`;
  };
  const draw = () => {
    const wrong = problem();
    if (wrong) {
      replace(out, h("p", { class: "error", role: "alert" }, wrong));
      return;
    }
    const [q, k, v] = /** @type {number[][][]} */ (read());
    const { scores, scaled, weights, output } = attention(q, k, v, Math.sqrt(k[0].length));
    const rows = q.map((_, i) => `query ${i}`);
    const columns = k.map((_, i) => `key ${i}`);
    replace(out, h("div", { class: "matrices", style: { "margin-top": "1rem" } }, matrix("1. Q Kᵀ", scores, { rows, columns }), matrix(`2. divided by √${k[0].length}`, scaled, { rows, columns }), matrix("3. weights", weights, { rows, columns, weights: true }), matrix("4. output: weights × V", output, { rows })),
      h("p", { class: "quiet small" }, `Shapes: Q [T ${q.length}, D ${q[0].length}], K [S ${k.length}, D ${k[0].length}], V [S ${v.length}, D' ${v[0].length}], output [T ${q.length}, D' ${v[0].length}]. The width of the values may differ from that of the keys.`));
  };
  draw();
}
