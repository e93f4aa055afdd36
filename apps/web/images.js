// The page images.html: an image cut into patches, and what the heads of a model look at in it.

import { ask, askBytes } from "./api.js";
import { color } from "./colors.js";
import { figure, h, oneStop, percent, put, replace, shown } from "./dom.js";

/** @typedef {{rows: number, columns: number, tokens: number[]}} Grid */
/** @typedef {{run: string, tokens: import("./api.js").Token[], answer_begin: number, side: number, pixels: string, ratio: number,
 *   grids: Grid[], labels: {label: string, score: number}[]}} Seen */
/** @typedef {{layers: number, heads: number, writes: boolean}} Shape */

const STRONGEST = 6;
const model = new URLSearchParams(location.search).get("model") ?? "0";
const count = (/** @type {number} */ n) => Array.from({ length: n }, (_, i) => i);

/** @param {Blob} file @param {string} question @returns {Promise<Seen>} */
async function see(file, question) {
  const response = await fetch(`api/image?${new URLSearchParams({ model, question })}`, { method: "POST", body: file });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

/** Draws the pixels that the model sees. @param {Seen} seen */
function imageOf(seen) {
  const canvas = h("canvas", { width: seen.side, height: seen.side, role: "img", "aria-label": "The image as the model sees it" });
  const bytes = atob(seen.pixels), image = new ImageData(seen.side, seen.side);
  for (let i = 0; i < bytes.length; ++i) image.data[i + Math.floor(i / 3)] = bytes.charCodeAt(i);
  for (let i = 3; i < image.data.length; i += 4) image.data[i] = 255;
  canvas.getContext("2d")?.putImageData(image, 0, 0);
  return canvas;
}

/** @param {Grid} grid @param {Float32Array} weights */
const largest = (grid, weights) => grid.tokens.reduce((most, token) => Math.max(most, weights[token]), 1e-30);
/** @param {Grid} grid @param {number} cell */
const indexOf = (grid, cell) => `row ${Math.floor(cell / grid.columns) + 1}, column ${(cell % grid.columns) + 1}`;

/** @param {HTMLCanvasElement} canvas @param {Grid} grid @param {Float32Array} weights */
function paint(canvas, grid, weights) {
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d")), most = largest(grid, weights);
  grid.tokens.forEach((token, i) => {
    context.fillStyle = color(weights[token] / most);
    context.fillRect(i % grid.columns, Math.floor(i / grid.columns), 1, 1);
  });
}

/** @param {HTMLElement} root @param {Seen} seen @param {Shape} shape */
function show(root, seen, shape) {
  const H = shape.heads, T = seen.tokens.length, begin = shape.writes ? seen.answer_begin : T;
  const inGrids = new Set(seen.grids.flatMap((each) => each.tokens));
  const words = count(T).filter((i) => !inGrids.has(i) && (i >= begin || !shape.writes || !seen.tokens[i].special));
  let grid = seen.grids[0], token = shape.writes ? Math.min(begin, T - 1) : words[0] ?? 0, layer = shape.layers - 1, asked = 0;
  let head = 0; // 0: the mean; then each head; H + 1: rollout

  const stage = h("div", { class: "stage", style: { "aspect-ratio": seen.ratio } }), heads = h("div", { class: "row small-maps" });
  const said = h("p", { id: "said", "aria-live": "polite" }), strongest = h("tbody");
  const others = oneStop(h("div", { class: "sentence" }, words.map((i) => h("button", { class: seen.tokens[i].special ? "special" : "", "data-token": i, title: `token ${i}`, onclick: () => choose(i) },
    i >= begin ? h("strong", {}, shown(seen.tokens[i].text)) : shown(seen.tokens[i].text)))));

  /** @param {Element} button @param {boolean} on */
  const press = (button, on) => put(button, "aria-pressed", String(on));
  /** A word of the answer follows from the position before it. @param {number} i */
  const rowOf = (i) => (i >= begin ? i - 1 : i);
  /** @param {number} i */
  const choose = (i) => { token = i; void draw(); };
  /** @param {number} i */
  const weightsName = (i) => (i > H ? "rollout" : i ? `head ${i - 1}` : "mean");

  /** @param {Grid} chosen */
  function build(chosen) {
    grid = chosen;
    const cells = grid.tokens.map((i) => h("button", { "data-token": i, onclick: () => choose(i) }));
    replace(stage, imageOf(seen), oneStop(h("div", { class: "patches", role: "group", "aria-label": "Patches", style: { "grid-template-columns": `repeat(${grid.columns}, 1fr)` } }, cells), grid.columns));
    replace(heads, count(H + 2).map((i) => h("button", { onclick: () => { head = i; void draw(); } }, h("canvas", { width: grid.columns, height: grid.rows }), weightsName(i))));
    void draw();
  }

  const draw = () => redraw().catch((error) => { said.textContent = String(error); });
  async function redraw() {
    const mine = ++asked, row = rowOf(token), { run } = seen;
    const map = await askBytes("api/map", { run, look: "self", layer, heads: count(H).join(","), q: `${row}-${row + 1}` });
    const each = count(H).map((i) => new Float32Array(map, 12 + 4 * i * T, T));
    const all = [each[0].map((_, t) => each.reduce((sum, weights) => sum + weights[t], 0) / H), ...each];
    if (head > H) all.push(new Float32Array(await askBytes("api/rollout", { run, token: row }))); // takes long, so only on request
    if (mine !== asked) return;
    const weights = all[head], most = largest(grid, weights);
    [...stage.querySelectorAll("button")].forEach((cell, i) => {
      cell.style.backgroundColor = color(weights[grid.tokens[i]] / most);
      put(cell, "aria-label", cell.title = `${indexOf(grid, i)}: ${figure(weights[grid.tokens[i]], 6)}`);
    });
    for (const button of root.querySelectorAll("[data-token]")) press(button, /** @type {HTMLElement} */ (button).dataset.token === String(token));
    [...heads.children].forEach((button, i) => {
      if (all[i]) paint(/** @type {HTMLCanvasElement} */ (button.firstChild), grid, all[i]);
      press(button, i === head);
    });
    const order = count(grid.tokens.length).sort((a, b) => weights[grid.tokens[b]] - weights[grid.tokens[a]]).slice(0, STRONGEST);
    replace(strongest, order.map((i) => h("tr", {}, h("td", {}, indexOf(grid, i)), h("td", { class: "number" }, figure(weights[grid.tokens[i]], 6)))));
    const cell = grid.tokens.indexOf(token), from = cell < 0 ? `“${shown(seen.tokens[token].text)}”` : indexOf(grid, cell);
    const sum = grid.tokens.reduce((total, i) => total + weights[i], 0);
    said.textContent = `${head > H ? "All layers" : `Layer ${layer}`}, ${weightsName(head)}, from ${row < token ? `the place where ${from} was written` : from}: ${percent(sum)} of the weight is on these patches.`;
  }

  const layers = h("select", { id: "layer", onchange: () => { layer = Number(layers.value); void draw(); } }, count(shape.layers).map((i) => h("option", { selected: i === layer }, i)));
  const heat = h("input", { type: "range", min: 0, max: 1, step: 0.05, value: 0.6, oninput: () => stage.style.setProperty("--heat", heat.value) });
  replace(root,
    seen.labels.length > 0 && h("p", { id: "labels" }, seen.labels.map((each) => `${each.label} ${percent(each.score)}`).join(", ")),
    h("div", { class: "columns" },
      h("div", { class: "panel" }, stage, h("p", { class: "row" }, h("label", {}, "Colours ", heat),
        seen.grids.length > 1 && seen.grids.map((each, i) => h("button", { onclick: () => build(each) }, i ? "Tiles" : "Whole image"))),
        h("p", { class: "quiet small" }, "Choose a patch to see what it attends to. Arrow keys move between patches.")),
      h("div", { class: "panel" }, words.length > 0 && others, h("p", {}, h("label", {}, "Layer ", layers)), heads, said,
        h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "strongest patches"), h("th", { class: "number" }, "weight"))), strongest))));
  build(grid);
}

async function start() {
  const content = /** @type {HTMLElement} */ (document.getElementById("content"));
  const { spec, images } = await ask("api/spec", { model });
  const stack = spec.decoder ?? spec.encoder, shape = { layers: stack.layers, heads: stack.attention.heads, writes: Boolean(spec.decoder) };
  /** @type {Blob | undefined} */
  let file;
  const root = h("div", { id: "view" }), question = h("input", { type: "text", id: "question", value: "What is in the image?" });
  const picker = h("input", { type: "file", accept: "image/*", id: "file", onchange: () => { file = picker.files?.[0]; void look(); } });
  async function look() {
    if (!file) return;
    replace(root, h("p", { class: "quiet" }, "Looking …"));
    try {
      show(root, await see(file, question.value), shape);
    } catch (error) {
      replace(root, h("p", { class: "error", role: "alert" }, String(error)));
    }
  }
  replace(content, h("h1", {}, "What the model looks at"),
    h("p", {}, images ? "An image as the model sees it, cut into patches, and the attention weights from one token to them." : "This model reads no images."),
    images && h("p", { class: "row" }, h("label", {}, "Image ", picker),
      shape.writes && [h("label", {}, "Question ", question), h("button", { class: "primary", onclick: look }, "Ask")]), root);
  const given = await askBytes("api/opening", {});
  if (given.byteLength) file = new Blob([given]);
  await look();
}

start();
