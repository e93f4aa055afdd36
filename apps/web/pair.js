// Two words: all heads ranked by the link between them, and the product of query and key, number by number.

import { ask } from "./api.js";
import { signed } from "./colors.js";
import { figure, h, percent, replace, shown, track } from "./dom.js";
import { change } from "./state.js";
import { linksBetween } from "./suggestions.js";

/** @typedef {import("./api.js").Token} Token */
const LISTED = 8; // heads, until the reader asks for all
const TERMS = 6; // largest products that are written out
const WEAK = 0.1; // a weight below this is called weak

/**
 * @param {HTMLElement} root @param {import("./main.js").Session} session @param {import("./state.js").State} state
 * @param {{rows: Token[], keys: Token[]}} sides @param {HTMLElement} line the result in one sentence @param {() => boolean} still
 */
export async function drawPair(root, session, state, { rows, keys }, line, still) {
  const from = Number(state.direction === "to" ? state.token : state.second);
  const to = Number(state.direction === "to" ? state.second : state.token);
  line.hidden = root.hidden = state.token === "" || state.second === "" || from >= rows.length || to >= keys.length;
  if (root.hidden) return;
  const links = await linksBetween(session, state.look, from, to);
  const head = Number(state.heads.split(",")[0]);
  const product = await productOf(session, state, from, to, head).catch(() => null); // a saved file has no queries and keys
  if (!still()) return;
  const [a, b] = [shown(rows[from].text), shown(keys[to].text)];
  const both = state.look !== "cross";
  const sees = session.shape.mask(state.look, Number(state.layer));
  const [there, back] = [sees(from, to), both && sees(to, from)];
  const word = (/** @type {Token} */ { text }) => shown(text.trim() || text);
  drawBest(line, root, links, word(rows[from]), word(keys[to]));
  const listed = root.dataset.all ? links : links.slice(0, LISTED);
  const cell = (/** @type {number} */ weight, /** @type {boolean} */ seen, /** @type {string} */ name) => [track(weight, 1, false), h("span", { class: "number", "data-pair": name, title: String(weight) }, seen ? figure(weight) : "masked")];
  replace(root, h("h2", {}, `“${a}” and “${b}”`),
    h("p", { class: "quiet small" }, `All heads by the weight of this link, strongest first. ${both ? "Attention has a direction: the query of one word is compared with the key of the other." : ""}`),
    h("div", { class: "pair" },
      h("div", {}, h("div", { class: both ? "links" : "links one", role: "list", "aria-label": "Heads by link" },
        h("div", { class: "link head", role: "presentation" }, h("span", {}, "head"), h("span", {}, `${a} → ${b}`), h("span", {}), both && h("span", {}, `${b} → ${a}`), both && h("span", {})),
        listed.map((link) => h("div", { class: "link", role: "listitem" },
          h("button", { class: "small", "aria-pressed": String(link.layer === Number(state.layer) && link.head === head), "data-link": `${link.layer}.${link.head}`,
            onclick: () => change({ layer: String(link.layer), heads: String(link.head), mean: "" }, { replace: true }) }, `${link.layer}.${link.head}`),
          cell(link.there, there, `there.${link.layer}.${link.head}`), both && cell(link.back, back, `back.${link.layer}.${link.head}`)))),
      links.length > LISTED && h("button", { class: "small", onclick: () => {
        root.dataset.all = root.dataset.all ? "" : "1";
        void drawPair(root, session, state, { rows, keys }, line, still);
      } }, root.dataset.all ? "Show fewer" : `Show all ${links.length}`)),
      product && h("div", {}, neurons(product, a, b, `${state.layer}.${head}`))));
}

/** Says which head links the two words. @param {HTMLElement} line @param {HTMLElement} list @param {{layer: number, head: number, there: number, back: number}[]} links strongest first @param {string} a @param {string} b */
function drawBest(line, list, links, a, b) {
  const [{ layer, head, there, back }] = links;
  const backwards = back > there;
  const weight = backwards ? back : there;
  replace(line, "Of all heads, ", h("b", { "data-best": `${layer}.${head}` }, `head ${head} of layer ${layer}`), ` links the two words most strongly${weight < WEAK ? ", though weakly" : ""}: “${backwards ? b : a}” puts `,
    h("span", { title: String(weight) }, percent(weight)), ` of its attention on “${backwards ? a : b}”. `,
    h("button", { class: "small", onclick: () => list.scrollIntoView({ block: "start" }) }, "Compare all heads"));
}

/** @typedef {{q: number[], k: number[], width: number, score: number | null}} Product */

/** The query of one word and the key of the other, which cross-attention does not have. @param {import("./main.js").Session} session @param {import("./state.js").State} state @param {number} from @param {number} to @param {number} head @returns {Promise<Product | null>} */
async function productOf(session, state, from, to, head) {
  if (state.look === "cross") return null;
  const query = (/** @type {number} */ token) => ask("api/walk", { run: session.run.run, look: state.look, token, layer: state.layer, head, values: 128 });
  const [one, other] = await Promise.all([query(from), query(to)]);
  const find = (/** @type {{name: string}[]} */ steps, /** @type {string} */ name) => /** @type {any} */ (steps.find((step) => step.name === name));
  const [q, k, scores] = [find(one, "query"), find(other, "key"), find(one, "scores")];
  if (!q || !k) return null;
  const at = scores ? scores.ids.indexOf(to) : -1;
  return { q: q.values, k: k.values, width: q.size, score: at < 0 ? null : scores.values[at] };
}

/** @param {Product} product @param {string} a @param {string} b @param {string} head @returns {Node[]} */
function neurons({ q, k, width, score }, a, b, head) {
  const products = q.map((x, i) => x * k[i]);
  const total = products.reduce((sum, x) => sum + x, 0);
  const order = [...products.keys()].sort((i, j) => Math.abs(products[j]) - Math.abs(products[i]));
  const strip = (/** @type {string} */ name, /** @type {number[]} */ values) => {
    const most = Math.max(...values.map(Math.abs), 1e-9);
    return h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, h("div", { class: "strip", role: "img", "aria-label": `${values.length} numbers of ${name}` }, values.map((value, i) => h("span", { title: `${i}: ${value}`, style: { background: signed(value, most) } })))));
  };
  const scaled = total / Math.sqrt(width);
  const usual = score === null || Math.abs(scaled - score) < 1e-3 * Math.max(1, Math.abs(score));
  return [h("h3", {}, `Head ${head}: query times key`),
    h("table", { class: "worked strips" }, h("tbody", {}, strip(`q of “${a}”`, q), strip(`k of “${b}”`, k), strip("q × k", products))),
    h("p", { class: "small" }, "Largest products: ", order.slice(0, TERMS).flatMap((i) => [" ", h("span", { class: "mono term", title: `dimension ${i}: ${q[i]} × ${k[i]} = ${products[i]}` }, `${figure(products[i], 2)} (dimension ${i})`)])),
    q.length < width ? h("p", { class: "quiet small" }, `The first ${q.length} of ${width} dimensions; the score is that of all of them: ${score === null ? "masked" : figure(score)}.`)
      : h("p", { class: "small" }, "Sum ", h("b", { class: "mono", "data-sum": total, title: String(total) }, figure(total)), usual ? `, divided by √${width} = ${figure(Math.sqrt(width))}: ` : "; after this model's scale, bias or cap: ", h("b", { class: "mono", title: String(score ?? scaled) }, figure(score ?? scaled)), score === null ? " (masked before the softmax)." : ", the score before the softmax.")];
}
