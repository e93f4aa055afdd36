// Small maps of all layers and heads.

import { askMap } from "./api.js";
import { h, oneStop, put, replace } from "./dom.js";
import { pixels } from "./heatmap.js";
import { sides } from "./model.js";
import { change, numbers } from "./state.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./state.js").State} State */
const SIDE = 32; // samples per side of a small map

/**
 * @param {HTMLElement} root @param {Session} session @param {State} state
 * @param {State | null} before @param {Promise<unknown>} free resolves when there is time to load them
 */
export async function drawThumbnails(root, session, state, before, free) {
  const name = `${session.run.run}/${state.look}`;
  if (root.dataset.name !== name || !before) {
    root.dataset.name = name;
    build(root, session, state);
    mark(root, state);
    await free;
    await fill(root, session, state, name);
    return;
  }
  mark(root, state);
}

/** @param {HTMLElement} root @param {State} state */
function mark(root, state) {
  const chosen = new Set(numbers(state.heads).map((head) => `${state.layer}.${head}`));
  for (const button of root.querySelectorAll("button")) put(button, "aria-pressed", String(chosen.has(button.dataset.head ?? "")));
}

/** @param {HTMLElement} root @param {Session} session @param {State} state */
function build(root, session, state) {
  const stack = session.shape.stack(state.look);
  const { heads } = stack.attention;
  const windows = state.look !== "cross" && stack.attention.windows.some((window) => window > 0);
  const each = heads / stack.attention.kv_heads;
  const shared = each > 1 ? [h("span", {}), ...Array.from({ length: stack.attention.kv_heads }, (_, group) =>
    h("span", { class: "shared", style: { "grid-column": `span ${each}` }, title: `These heads share key-value head ${group}` }, each > 2 ? `keys ${group}` : `k ${group}`))] : [];
  const cells = [...shared, h("span", {}), ...Array.from({ length: heads }, (_, head) => h("span", { class: "head-name" }, head))];
  for (let layer = 0; layer < stack.layers; ++layer) {
    const window = session.shape.window(state.look, layer);
    cells.push(h("span", { class: "layer-name" }, layer, window > 0 && h("span", { class: "window", title: `a window of ${window} tokens` }, `≤${window}`)));
    if (!session.shape.attends(state.look, layer)) {
      cells.push(h("span", { class: "quiet small", style: { "grid-column": `span ${heads}` } }, stack.mixers[layer].toUpperCase()));
      continue;
    }
    for (let head = 0; head < heads; ++head) {
      cells.push(h("button", { "data-head": `${layer}.${head}`, "aria-label": `Layer ${layer}, head ${head}`, title: `layer ${layer}, head ${head}`,
        onclick: (/** @type {MouseEvent} */ event) => {
          const same = event.shiftKey && document.querySelector(`[data-head="${layer}.${head}"]`);
          const now = numbers(new URLSearchParams(location.hash.slice(1)).get("heads") ?? "0");
          change({ layer: String(layer), heads: same ? [...new Set([...now, head])].join(",") : String(head), mean: "" }, { replace: true });
        } }));
    }
  }
  replace(root, h("h2", {}, "All heads"),
    h("p", { class: "quiet small" }, `Rows: layers. Columns: heads. Click a map to enlarge it.${each > 1 ? " Heads under one line share keys and values." : ""}${windows ? " ≤: the size of the layer's window in tokens." : ""}`),
    oneStop(h("div", { class: "thumbs", role: "group", "aria-label": "Layers and heads", style: { "grid-template-columns": `${windows ? 2.6 : 1.7}rem repeat(${heads}, minmax(26px, ${heads > 12 ? 60 : 84}px))` } }, cells), heads));
  mark(root, state);
}

/** @param {HTMLElement} root @param {Session} session @param {State} state @param {string} name */
async function fill(root, session, state, name) {
  const stack = session.shape.stack(state.look);
  const { rows, keys } = sides(session, state.look);
  const step = Math.max(1, Math.ceil(Math.max(rows.length, keys.length) / SIDE));
  const heads = Array.from({ length: stack.attention.heads }, (_, i) => i).join(",");
  for (let layer = 0; layer < stack.layers; ++layer) {
    if (!session.shape.attends(state.look, layer)) continue;
    const map = await askMap({ run: session.run.run, look: state.look, layer, heads, step: step === 1 ? undefined : step });
    if (root.dataset.name !== name) return;
    const sees = session.shape.mask(state.look, layer);
    for (let head = 0; head < map.heads; ++head) {
      const weights = map.weights.subarray(head * map.rows * map.keys, (head + 1) * map.rows * map.keys);
      const canvas = pixels({ heads: 1, rows: map.rows, keys: map.keys, weights }, (r, k) => sees(Math.min(r * step + step - 1, rows.length - 1), k * step));
      root.querySelector(`[data-head="${layer}.${head}"]`)?.replaceChildren(h("img", { src: canvas.toDataURL(), alt: "" })); // images: each canvas would need a compositing layer
    }
  }
}
