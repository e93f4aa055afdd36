// The tokens on one line, with arcs between the selected token and the tokens that it attends to or that attend to it. For
// cross-attention, two lines of tokens.

import { headColor } from "./colors.js";
import { figure, h, replace, shown, svg } from "./dom.js";
import { change } from "./state.js";

/** @typedef {import("./sentence.js").Found} Found */
/** @typedef {import("./api.js").Token} Token */
const MOST_TOKENS = 160; // on the line, around the selected one
const MOST_ARCS = 24; // of each head; the list and the map show all weights

/**
 * @param {HTMLElement} root
 * @param {{rows: Token[], keys: Token[], state: import("./state.js").State,
 *   found: Found | null}} view
 */
export function drawArcs(root, { rows, keys, state, found }) {
  if (!found) {
    replace(root);
    return;
  }
  const chosen = Number(state.token);
  if (state.look === "cross") {
    drawBetween(root, { rows, keys, state, found });
    return;
  }
  const first = Math.max(0, Math.min(chosen - MOST_TOKENS / 2, rows.length - MOST_TOKENS));
  const indices = [];
  for (let i = first; i < Math.min(rows.length, first + MOST_TOKENS); ++i) if (!(state.hide && rows[i].special)) indices.push(i);
  const { centers, widths, total } = layLine(indices.map((i) => rows[i]));
  /** @type {Map<number, number>} */
  const at = new Map(indices.map((token, n) => [token, centers[n]]));
  const from = at.get(chosen);
  if (from === undefined) return replace(root);
  const shown_ = arcsOf(found, at);
  const farthest = Math.max(30, ...shown_.map((arc) => Math.abs((at.get(arc.other) ?? from) - from)));
  const height = Math.min(150, 24 + farthest * 0.35);
  const base = height + 4;
  const paths = shown_.map(({ other, head, weight }) => {
    const x = /** @type {number} */ (at.get(other));
    // The arcs of several heads have different heights, so that none hides another.
    const up = other === chosen ? 18 + 3 * head : Math.min(height, 14 + Math.abs(x - from) * 0.4) * (1 - 0.25 * (head / found.heads.length));
    const d = other === chosen ? `M${from - 7},${base} C${from - 16},${base - up * 1.4} ${from + 16},${base - up * 1.4} ${from + 7},${base}`
      : `M${from},${base} C${from},${base - up * 1.3} ${x},${base - up * 1.3} ${x},${base}`;
    return svg("path", { d, "data-head": head, stroke: found.heads.length > 1 ? headColor(head) : "var(--accent)", "stroke-width": (0.6 + 6 * weight).toFixed(2), "stroke-opacity": (0.25 + 0.7 * Math.sqrt(weight)).toFixed(2) });
  });
  const best = strongest(found);
  const names = indices.map((i, n) => token(rows[i], i, centers[n], widths[n], base, best[i], i === chosen));
  replace(root, svg("svg", { width: total, height: base + 44, role: "img", "aria-label": state.direction === "to" ? "Arcs to the tokens that the selected token attends to" : "Arcs from the tokens that attend to the selected token" }, paths, names), legend(root, found.heads));
  keepInSight(root, from);
}

/** The heads by colour; pointing at one, or at an arc of it, leaves only its arcs. @param {HTMLElement} root @param {number[]} heads */
function legend(root, heads) {
  if (heads.length < 2) return null;
  const single = (/** @type {string | undefined} */ nth) => {
    for (const path of root.querySelectorAll("path[data-head]")) path.classList.toggle("faded", nth !== undefined && /** @type {SVGElement} */ (path).dataset.head !== nth);
  };
  root.onpointerover = (event) => single(/** @type {HTMLElement} */ (event.target).dataset?.head);
  root.onpointerleave = () => single(undefined);
  return h("div", { class: "row small arc-heads" }, heads.map((head, n) => h("button", { class: "small", "data-head": n, onfocus: () => single(String(n)), onblur: () => single(undefined) },
    h("span", { "aria-hidden": "true", style: { color: headColor(n) } }, "■ "), `head ${head}`)));
}

/** @param {Found} found */
function strongest(found) {
  return Array.from({ length: found.others.length }, (_, i) => Math.max(...found.weights.map((w) => w[i])));
}

/** @param {Found} found @param {Map<number, number>} at */
function arcsOf(found, at) {
  return found.weights.flatMap((weights, head) => [...weights.keys()].filter((i) => at.has(i) && weights[i] >= 0.005)
    .sort((a, b) => weights[b] - weights[a]).slice(0, MOST_ARCS).map((other) => ({ other, head, weight: weights[other] })))
    .sort((a, b) => a.weight - b.weight);
}

/** @param {Token[]} tokens */
function layLine(tokens) {
  const centers = [];
  const widths = [];
  let x = 8;
  for (const each of tokens) {
    const letters = [...shown(each.text)].slice(0, 14).length;
    const width = Math.max(44, letters * 7.6 + 12);
    centers.push(x + width / 2);
    widths.push(width);
    x += width;
  }
  return { centers, widths, total: Math.ceil(x + 8) };
}

/**
 * @param {Token} of @param {number} index @param {number} x @param {number} width @param {number} y
 * @param {number} weight @param {boolean} chosen
 */
function token(of, index, x, width, y, weight, chosen) {
  const letters = [...shown(of.text)];
  const name = letters.length > 14 ? `${letters.slice(0, 13).join("")}…` : letters.join("");
  const choose = () => change({ token: String(index) }, { replace: true });
  return svg("g", {},
    svg("rect", { class: "spot", x: x - width / 2, y: y + 2, width, height: 38, rx: 5, onclick: choose }),
    svg("text", { class: `token${of.special ? " special" : ""}${chosen ? " chosen" : ""}`, x, y: y + 17, "text-anchor": "middle", "pointer-events": "none" }, name),
    svg("text", { class: "weight", x, y: y + 34, "text-anchor": "middle", "pointer-events": "none" }, weight >= 0.0005 ? figure(weight, 3) : "·"));
}

/** Two lines: the target above, the source below. @param {HTMLElement} root @param {any} view */
function drawBetween(root, { rows, keys, state, found }) {
  const to = state.direction === "to";
  const chosen = Number(state.token);
  const hide = (/** @type {Token[]} */ tokens) => tokens.map((_, i) => i).filter((i) => !(state.hide && tokens[i].special)).slice(0, MOST_TOKENS);
  const above = hide(rows);
  const below = hide(keys);
  const upper = layLine(above.map((i) => rows[i]));
  const lower = layLine(below.map((i) => keys[i]));
  const at = new Map((to ? below : above).map((i, n) => [i, (to ? lower : upper).centers[n]]));
  const start = (to ? above : below).indexOf(chosen);
  if (start < 0) return replace(root);
  const from = (to ? upper : lower).centers[start];
  const paths = arcsOf(found, at).map(({ other, head, weight }) => {
    const x = /** @type {number} */ (at.get(other));
    const [top, bottom] = to ? [from, x] : [x, from];
    return svg("path", { "data-head": head, d: `M${top},46 C${top},100 ${bottom},100 ${bottom},152`, stroke: found.heads.length > 1 ? headColor(head) : "var(--accent)", "stroke-width": (0.6 + 6 * weight).toFixed(2), "stroke-opacity": (0.25 + 0.7 * Math.sqrt(weight)).toFixed(2) });
  });
  const best = strongest(found);
  const width = Math.max(upper.total, lower.total);
  replace(root, svg("svg", { width, height: 200, role: "img", "aria-label": "Lines between the target, above, and the source, below" }, paths,
    above.map((i, n) => between(rows[i], i, upper.centers[n], 4, to ? NaN : best[i], to && i === chosen, () => change({ token: String(i), direction: "to" }, { replace: true }))),
    below.map((i, n) => between(keys[i], i, lower.centers[n], 154, to ? best[i] : NaN, !to && i === chosen, () => change({ token: String(i), direction: "from" }, { replace: true })))), legend(root, found.heads));
  keepInSight(root, from);
}

/**
 * @param {Token} of @param {number} index @param {number} x @param {number} y @param {number} weight
 * @param {boolean} chosen @param {() => void} choose
 */
function between(of, index, x, y, weight, chosen, choose) {
  return svg("g", { onclick: choose, "data-index": index },
    svg("text", { class: `token${of.special ? " special" : ""}${chosen ? " chosen" : ""}`, x, y: y + 17, "text-anchor": "middle" }, shown(of.text).slice(0, 14)),
    Number.isNaN(weight) ? null : svg("text", { class: "weight", x, y: y + 34, "text-anchor": "middle" }, weight >= 0.0005 ? figure(weight, 3) : "·"));
}

/** @param {HTMLElement} root @param {number} x */
function keepInSight(root, x) {
  if (x < root.scrollLeft + 60 || x > root.scrollLeft + root.clientWidth - 60) root.scrollLeft = x - root.clientWidth / 2;
}
