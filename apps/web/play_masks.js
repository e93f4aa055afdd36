// Masks: the keys that each query sees.

import { h, replace, slider } from "./dom.js";

/** @param {HTMLElement} root */
export function maskPlay(root) {
  const here = { tokens: 12, causal: true, window: 0, prefix: 0, padding: 0 };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Masks"),
    h("p", {}, "The score of a masked key becomes −∞ before the softmax, so that its weight is exactly 0. Rows are queries, columns are keys; filled cells are visible."),
    h("div", { class: "row" }, h("label", {}, h("input", { type: "checkbox", checked: true, onchange: (/** @type {Event} */ event) => { here.causal = /** @type {HTMLInputElement} */ (event.target).checked; draw(); } }), "causal: no token sees later ones")),
    h("div", { class: "controls", style: { "max-width": "34rem", margin: ".8rem 0" } },
      slider("Tokens", { least: 4, most: 100, step: 1, value: 12 }, (x) => { here.tokens = x; draw(); }).row,
      slider("Window", { least: 0, most: 32, step: 1, value: 0, word: (x) => (x ? String(x) : "none") }, (x) => { here.window = x; draw(); }).row,
      slider("Prefix visible to all", { least: 0, most: 16, step: 1, value: 0 }, (x) => { here.prefix = x; draw(); }).row,
      slider("Padding at the end", { least: 0, most: 8, step: 1, value: 0 }, (x) => { here.padding = x; draw(); }).row), out));
  const sees = (/** @type {number} */ i, /** @type {number} */ j) => {
    if (j >= here.tokens - here.padding) return false;
    if (here.causal && j > i && j >= here.prefix) return false;
    return here.window === 0 || Math.abs(i - j) < here.window || (here.causal && j < here.prefix);
  };
  function draw() {
    const n = here.tokens;
    const canvas = h("canvas", { width: n, height: n, role: "img", "aria-label": "Picture of the mask", style: { width: "min(26rem, 100%)", "image-rendering": "pixelated", "border-radius": "6px", border: "1px solid var(--line)" } });
    const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const style = getComputedStyle(out);
    const [seenColor, pale, dark] = ["--accent", "--blank", "--line"].map((name) => style.getPropertyValue(name));
    let count = 0;
    for (let i = 0; i < n; ++i) for (let j = 0; j < n; ++j) {
      const seen = sees(i, j);
      count += seen ? 1 : 0;
      to.globalAlpha = seen && (i + j) % 2 ? 0.88 : 1; // a chequered pattern for counting
      to.fillStyle = seen ? seenColor : (i + j) % 2 ? pale : dark;
      to.fillRect(j, i, 1, 1);
    }
    replace(out, h("div", { class: "matrices" }, canvas, h("p", {}, h("b", { id: "pairs", class: "mono" }, count.toLocaleString("en")), ` of ${(n * n).toLocaleString("en")} pairs are computed: ${((100 * count) / (n * n)).toFixed(1)} %.`)));
  }
  draw();
}
