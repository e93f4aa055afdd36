// Encodings of positions: sinusoids, rotations, and biases by distance.

import { headColor } from "./colors.js";
import { figure, h, replace, svg, slider } from "./dom.js";
import { alibiSlope, dot, randomOf, rotated, softmax, wave, wavelength } from "./math.js";
import { formulaOf } from "./formula.js";

/** The width of a panel in pixels, so that letters have their normal size. */
export function room() {
  return Math.min(1680, document.documentElement.clientWidth - 60);
}

/**
 * Lines over x = 0 .. end, with values at equal distances; NaN is omitted. @param {string} label
 * @param {{name: string, values: number[]}[]} lines @param {[number, number]} range @param {string} across
 * @param {{end?: number, width?: number}} [options] end: by default, x counts the values; width: in pixels
 */
export function plot(label, lines, range, across, { end, width = room() } = {}) {
  const [height, bottom] = [260, 30];
  const most = Math.max(...lines.map((line) => line.values.length)) - 1;
  const left = Math.max(46, 14 + 7 * Math.max(...roundTicks(range[0], range[1], 4).map((tick) => figure(tick, 0).length)));
  const x = (/** @type {number} */ i) => left + (i / Math.max(most, 1)) * (width - left - 10);
  const y = (/** @type {number} */ value) => 10 + ((range[1] - value) / (range[1] - range[0] || 1)) * (height - bottom - 10);
  const ticks = roundTicks(range[0], range[1], 4);
  const decimals = Math.max(0, ...ticks.map((tick) => (String(Number(tick.toPrecision(6))).split(".")[1] ?? "").length));
  const last = end ?? most;
  return svg("svg", { class: "plot", viewBox: `0 0 ${width} ${height + 4}`, role: "img", "aria-label": label },
    ticks.map((tick) => [svg("line", { class: "grid", x1: left, x2: width - 10, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, figure(tick, Math.min(decimals, 6)))]).flat(),
    roundTicks(0, last, 6).map((tick) => svg("text", { x: x((tick / (last || 1)) * most), y: height - 12, "text-anchor": tick === last ? "end" : "middle" }, Number(tick.toPrecision(6)).toLocaleString("en"))),
    svg("text", { x: width - 10, y: height - 1, "text-anchor": "end" }, across),
    lines.map((line, n) => svg("path", { fill: "none", stroke: headColor(n), "stroke-width": 2, d: path(line.values, x, y) }, svg("title", {}, line.name))),
    lines.map((line, n) => line.values.map((value, i) => (Number.isFinite(value) && !Number.isFinite(line.values[i - 1]) && !Number.isFinite(line.values[i + 1])
      ? svg("circle", { cx: x(i), cy: y(value), r: 3.5, fill: headColor(n) }, svg("title", {}, `${line.name}: ${figure(value)}`)) : null))).flat());
}

/** Round numbers from `least` to `most`: 1, 2 or 5 times a power of ten apart. @param {number} least @param {number} most @param {number} count about as many */
export function roundTicks(least, most, count) {
  if (!(most > least)) return [least];
  const rough = (most - least) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough) ?? rough;
  const ticks = [];
  for (let n = Math.ceil(least / step - 1e-9); n * step <= most + step * 1e-9; ++n) ticks.push(n * step);
  return ticks;
}

/** @param {number[]} values @param {(i: number) => number} x @param {(value: number) => number} y */
function path(values, x, y) {
  return values.map((value, i) => (Number.isFinite(value) ? `${i && Number.isFinite(values[i - 1]) ? "L" : "M"}${x(i).toFixed(1)},${y(value).toFixed(1)}` : "")).join("");
}

/** @param {{name: string}[]} lines */
export function key(lines) {
  return h("div", { class: "row small" }, lines.map((line, n) => h("span", {}, h("span", { "aria-hidden": "true", style: { color: headColor(n) } }, "━ "), line.name)));
}

/** @param {HTMLElement} root */
export function wavesPlay(root) {
  const here = { width: 64, positions: 100, dimensions: [4, 5, 20] };
  const out = h("div");
  const fields = h("div", { class: "row" });
  root.append(h("section", { class: "panel" }, h("h2", {}, "Sinusoidal positions"),
    h("p", {}, "Each dimension of the position vector is a sinusoid: low dimensions have short wavelengths, high ones long wavelengths, like the hands of many clocks. The vector is added to the embedding."), h("div", { class: "formula math", tabindex: "0" }, formulaOf("P_{t,2i} = sin({t}/{10000^{2i/d}})"), formulaOf("P_{t,2i+1} = cos({t}/{10000^{2i/d}})")),
    h("div", { class: "controls", style: { "max-width": "34rem" } }, slider("Width d", { least: 4, most: 128, step: 2, value: 64 }, (x) => { here.width = x; choose(); draw(); }).row,
      slider("Positions", { least: 20, most: 400, step: 10, value: 100 }, (x) => { here.positions = x; draw(); }).row), fields, out));
  const choose = () => replace(fields, here.dimensions.map((dimension, n) => h("label", {}, h("span", { "aria-hidden": "true", style: { color: headColor(n) } }, "━"), "dimension", h("input", { type: "number", min: "0", max: here.width - 1, value: Math.min(dimension, here.width - 1), style: { width: "5rem" }, oninput: (/** @type {Event} */ event) => {
    here.dimensions[n] = Math.min(Math.max(Math.trunc(/** @type {HTMLInputElement} */ (event.target).valueAsNumber || 0), 0), here.width - 1);
    draw();
  } }))));
  const draw = () => {
    const lines = here.dimensions.map((d) => Math.min(d, here.width - 1)).map((d) => ({ name: `dimension ${d}: wavelength ${figure(wavelength(d, here.width), 1)} positions`, values: Array.from({ length: here.positions }, (_, t) => wave(t, d, here.width)) }));
    replace(out, plot("Sinusoids of the selected dimensions", lines, [-1, 1], "position"), key(lines), h("h3", { style: { "margin-top": "1rem" } }, "The entire table"), table(here.width, Math.min(here.positions, 160)),
      h("p", { class: "quiet small" }, "Rows: positions. Columns: dimensions. Blue is −1, orange is +1."));
  };
  choose();
  draw();
}

/** @param {number} width @param {number} positions */
function table(width, positions) {
  const canvas = h("canvas", { width, height: positions, role: "img", "aria-label": "Picture of all sinusoids", style: { width: "100%", height: "220px", "image-rendering": "pixelated", "border-radius": "6px" } });
  const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = to.createImageData(width, positions);
  for (let t = 0; t < positions; ++t) for (let d = 0; d < width; ++d) {
    const value = wave(t, d, width);
    const end = value < 0 ? [11, 99, 168] : [198, 93, 0];
    for (let c = 0; c < 3; ++c) image.data[4 * (t * width + d) + c] = 245 + Math.abs(value) * (end[c] - 245);
    image.data[4 * (t * width + d) + 3] = 255;
  }
  to.putImageData(image, 0, 0);
  return canvas;
}

/** @param {HTMLElement} root */
export function rotaryPlay(root) {
  const here = { query: 6, key: 2, shift: 0, pair: 0, width: 8 };
  const q = randomOf("a query", here.width);
  const k = randomOf("a key", here.width);
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Rotary positions"),
    h("p", {}, "Pairs of elements of queries and keys are rotated by an angle that grows with the position. The score then depends only on the distance: if both positions move by the same number, the score stays the same."),
    h("div", { class: "controls", style: { "max-width": "34rem" } }, slider("Position of the query, m", { least: 0, most: 40, step: 1, value: 6 }, (x) => { here.query = x; draw(); }).row, slider("Position of the key, n", { least: 0, most: 40, step: 1, value: 2 }, (x) => { here.key = x; draw(); }).row,
      slider("Move both by", { least: 0, most: 1000, step: 1, value: 0 }, (x) => { here.shift = x; draw(); }).row, slider("Pair shown", { least: 0, most: 3, step: 1, value: 0 }, (x) => { here.pair = x; draw(); }).row), out));
  const draw = () => {
    const m = here.query + here.shift;
    const n = here.key + here.shift;
    const turned = [rotated(q, m, 10000), rotated(k, n, 10000)];
    const score = dot(turned[0], turned[1]);
    const distances = Array.from({ length: 41 }, (_, d) => dot(rotated(q, d, 10000), k));
    const angle = 10000 ** (-2 * here.pair / here.width);
    replace(out, h("div", { class: "columns" },
      h("div", {}, plot("Score by distance", [{ name: "score", values: distances }], [Math.min(...distances), Math.max(...distances)], "distance m − n", { width: room() > 960 ? room() - 370 : room() }), h("p", { class: "quiet small" }, "The score of this query with this key, by the distance between them.")),
      h("div", {}, circle(q, k, turned, here.pair), h("p", { class: "small quiet" }, `Pair ${here.pair} rotates by ${figure(angle, 4)} radians per position. Pale: before the rotation; strong: after it.`))),
    h("p", {}, "Score at m = ", h("b", {}, m), ", n = ", h("b", {}, n), ", distance ", h("b", {}, m - n), ": ", h("b", { class: "mono", id: "rotary-score" }, figure(score, 6)), "."));
  };
  draw();
}

/** @param {number[]} q @param {number[]} k @param {number[][]} turned @param {number} pair */
function circle(q, k, turned, pair) {
  const arrow = (/** @type {number[]} */ x, /** @type {string} */ stroke, /** @type {string} */ name, /** @type {number} */ opacity) => {
    const [a, b] = [x[2 * pair], x[2 * pair + 1]];
    const scale = 70 / Math.max(Math.hypot(a, b), 1);
    return [svg("line", { x1: 100, y1: 100, x2: 100 + a * scale, y2: 100 - b * scale, stroke, "stroke-width": 3, "stroke-opacity": opacity, "stroke-linecap": "round" }),
      opacity === 1 ? svg("text", { x: 100 + a * scale * 1.2, y: 104 - b * scale * 1.2, "text-anchor": "middle" }, name) : null];
  };
  return svg("svg", { class: "plot", viewBox: "0 0 200 200", role: "img", "aria-label": "Query and key before and after the rotation", style: { "max-width": "15rem" } },
    svg("circle", { cx: 100, cy: 100, r: 80, fill: "none", class: "axis" }), arrow(q, headColor(0), "", 0.3), arrow(k, headColor(1), "", 0.3), arrow(turned[0], headColor(0), "q", 1), arrow(turned[1], headColor(1), "k", 1));
}

/** @param {HTMLElement} root */
export function alibiPlay(root) {
  const here = { heads: 8, length: 32 };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "ALiBi: a slope for each head"),
    h("p", {}, "Nothing is added to embeddings. Each score is reduced by slope × distance. Each head has its own slope: heads with a steep slope attend to near tokens only, heads with a flat slope to distant tokens as well."),
    h("div", { class: "controls", style: { "max-width": "34rem" } }, slider("Heads", { least: 1, most: 16, step: 1, value: 8 }, (x) => { here.heads = x; draw(); }).row, slider("Tokens", { least: 4, most: 128, step: 4, value: 32 }, (x) => { here.length = x; draw(); }).row), out));
  const draw = () => {
    const slopes = Array.from({ length: here.heads }, (_, i) => alibiSlope(i, here.heads));
    const lines = slopes.slice(0, 8).map((slope, i) => ({ name: `head ${i}: ${figure(slope, 6)}`, values: softmax(Array.from({ length: here.length }, (_, d) => -slope * d)) }));
    replace(out, h("p", { class: "quiet small" }, "Weights of the last token by distance, if all scores are equal otherwise:"), plot("Weights by distance for each head", lines, [0, Math.max(...lines.flatMap((line) => line.values))], "distance"), key(lines),
      h("p", { class: "mono small", id: "slopes", style: { "margin-top": ".8rem" } }, `slopes ${slopes.map((slope) => figure(slope, 6)).join(", ")}`));
  };
  draw();
}
