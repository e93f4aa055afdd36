// Exports the view as one self-contained file or as a picture.

import { askMap, ask, base64, captured, keptResponses, startRun } from "./api.js";
import { color } from "./colors.js";
import { announce, figure, h, replace, shown } from "./dom.js";
import { ModelShape } from "./model.js";
import { current, hashOf, numbers, wantedRun } from "./state.js";

const WHOLE = 2 << 20; // weights of all layers that a file may contain: 11 MB as base64
const THUMBNAIL = 32; // as in thumbnails.js

export function savePanel() {
  const list = h("div", { hidden: true, role: "group", "aria-label": "Export this view" });
  const open = h("button", { "aria-expanded": "false", "aria-haspopup": "true", onclick: () => toggle(Boolean(list.hidden)) }, "Export");
  const toggle = (/** @type {boolean} */ show) => {
    list.hidden = !show;
    open.setAttribute("aria-expanded", String(show));
  };
  const note = h("p", { class: "small quiet", role: "status", style: { margin: ".2rem .5rem" } });
  const act = (/** @type {string} */ text, /** @type {() => Promise<void>} */ make) => h("button", { onclick: () => {
    note.textContent = "…";
    make().then(() => { note.textContent = "Done."; announce("Done."); }, (error) => { note.textContent = error.message; });
  } }, text);
  replace(list, captured ? null : act("This view as one HTML file", saveHtml), act("The map as SVG", saveSvg), act("The map as PNG", savePng),
    act("Copy the address of this view", async () => { await navigator.clipboard.writeText(location.href); }), note);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !list.hidden) { toggle(false); open.focus(); } });
  document.addEventListener("click", (event) => { if (!menu.contains(/** @type {Node} */ (event.target))) toggle(false); });
  const menu = h("div", { class: "menu" }, open, list);
  return menu;
}

/** @param {Blob} content @param {string} name */
function download(content, name) {
  const link = h("a", { href: URL.createObjectURL(content), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function session() {
  const state = current();
  const [spec, run] = await Promise.all([ask("api/spec", { model: state.model }), startRun(wantedRun(state))]);
  return { state, run, shape: new ModelShape(spec) };
}

/** Saves the page with the responses that this view needs and the maps of its layer; those of other layers are thumbnails, unless small. */
async function saveHtml() {
  const { state, run, shape } = await session();
  const responses = await keptResponses((name) => !name.startsWith("api/map") && !name.startsWith("api/strongest") && (!name.includes("run=") || name.includes(`run=${run.run}&`) || name.endsWith(`run=${run.run}`)));
  const look = state.look;
  const rows = (look === "encoder" ? run.source : run.tokens).length;
  const keys = (look === "self" ? run.tokens : run.source).length;
  const stack = shape.stack(look);
  const heads = Array.from({ length: stack.attention.heads }, (_, i) => i).join(",");
  const step = Math.ceil(Math.max(rows, keys) / THUMBNAIL);
  const small = stack.layers * stack.attention.heads * rows * keys <= WHOLE;
  for (let layer = 0; layer < stack.layers; ++layer) {
    if (!shape.attends(look, layer)) continue;
    const name = `api/map?look=${look}&layer=${layer}`;
    if (small || layer === Number(state.layer)) responses[name] = packed(await askMap({ run: run.run, look, layer, heads }));
    if (step > 1) responses[`${name}&step=${step}`] = packed(await askMap({ run: run.run, look, layer, heads, step }));
  }
  const shell = await (await fetch("saved.html")).text();
  const content = JSON.stringify({ hash: hashOf(state), responses }).replaceAll("<", "\\u003c");
  download(new Blob([shell.replace(/(<script type="application\/json" id="captured">)[^<]*/, (_, tag) => tag + content)], { type: "text/html" }), "fovea-view.html");
}

/** @param {import("./api.js").WeightMap} map */
function packed(map) {
  const bytes = new Uint8Array(12 + map.weights.byteLength);
  bytes.set(new Uint8Array(Int32Array.of(map.heads, map.rows, map.keys).buffer));
  bytes.set(new Uint8Array(map.weights.buffer, map.weights.byteOffset, map.weights.byteLength), 12);
  return { type: "application/octet-stream", body: base64(bytes) };
}

/** The map of the first selected head, or of the average, as SVG. */
async function drawing() {
  const { state, run, shape } = await session();
  const rows = state.look === "encoder" ? run.source : run.tokens;
  const keys = state.look === "self" ? run.tokens : run.source;
  if (rows.length * keys.length > 250000) throw new Error(`An SVG of ${rows.length} x ${keys.length} cells is too large; expected at most 250,000.`);
  const heads = state.mean ? state.heads : String(numbers(state.heads)[0]);
  const map = await askMap({ run: run.run, look: state.look, layer: Number(state.layer), heads, mean: state.mean ? 1 : undefined });
  const size = rows.length > 60 ? 8 : 20;
  const [left, top] = [110, 96];
  const sees = shape.mask(state.look, Number(state.layer));
  const safe = (/** @type {string} */ text) => shown(text).slice(0, 12).replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c] ?? "").replace(/[\u0000-\u001f]/g, " ");
  const every = size < 12 ? 2 : 1;
  const parts = [`<svg xmlns="http://www.w3.org/2000/svg" width="${left + size * keys.length + 60}" height="${top + size * rows.length + 12}" font-family="serif" font-size="${Math.min(13, size + 4)}">`, `<title>Attention of layer ${state.layer}, ${state.mean ? `average of heads ${heads}` : `head ${heads}`}</title>`, '<rect width="100%" height="100%" fill="#ffffff"/>'];
  keys.forEach((token, k) => { if (k % every === 0) parts.push(`<text transform="translate(${left + size * k + size / 2},${top - 6}) rotate(-55)">${safe(token.text)}</text>`); });
  rows.forEach((token, r) => {
    if (r % every === 0) parts.push(`<text x="${left - 6}" y="${top + size * (r + 1) - 5}" text-anchor="end">${safe(token.text)}</text>`);
    for (let k = 0; k < keys.length; ++k) {
      const weight = map.weights[r * keys.length + k];
      if (sees(r, k)) parts.push(`<rect x="${left + size * k}" y="${top + size * r}" width="${size}" height="${size}" fill="${color(weight).replace(/rgb\((.*)\)/, (_, c) => `rgb(${c.split(" ").map((/** @type {string} */ x) => Math.round(Number(x))).join(",")})`)}"><title>${figure(weight, 6)}</title></rect>`);
    }
  });
  return `${parts.join("\n")}\n</svg>\n`;
}

async function saveSvg() {
  download(new Blob([await drawing()], { type: "image/svg+xml" }), "fovea-map.svg");
}

async function savePng() {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(await drawing())}`;
  await image.decode();
  const canvas = h("canvas", { width: image.width * 2, height: image.height * 2 });
  const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  to.drawImage(image, 0, 0, canvas.width, canvas.height);
  const content = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  if (!content) throw new Error("The picture is too large for this browser.");
  download(/** @type {Blob} */ (content), "fovea-map.png");
}
