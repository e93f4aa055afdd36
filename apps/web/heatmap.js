// The attention map; rows are queries. Visible tiles are requested from the server at the resolution of the screen, so that
// maps of two thousand tokens pan as smoothly as maps of ten.

import { headColor, paint } from "./colors.js";
import { figure, h, onScreen, onceAFrame, replace, shown } from "./dom.js";

const TILE = 256; // samples on a side
const LARGEST = 40; // maximum size of a cell in CSS pixels
const LABEL = 17; // height of a row's label in pixels
const TOP = 78; // height of the labels of keys above the map, in pixels
const HIGHEST = 640; // maximum height in pixels

/**
 * @typedef {object} Source
 * @property {string} name identifies the tiles: they are replaced if it changes
 * @property {import("./api.js").Token[]} rows
 * @property {import("./api.js").Token[]} keys
 * @property {[number, number]} rowSpan the first row of the map and the row after its last
 * @property {[number, number]} keySpan the first key of the map and the key after its last
 * @property {(q: string, k: string, step: number) => Promise<import("./api.js").WeightMap>} load
 * @property {(query: number, key: number) => boolean} sees
 * @property {number[]} heads the heads of the map; each has its own colour if there are several
 */

/** @typedef {{canvas: HTMLCanvasElement | null, map: import("./api.js").WeightMap | null, come: Promise<void>}} Tile `come` resolves when the tile is loaded or has failed */

export class Heatmap {
  /** @param {HTMLElement} root @param {{onRow: (row: number) => void}} events */
  constructor(root, events) {
    this.events = events;
    this.canvas = h("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "heat map",
      "aria-label": "Attention weights. Rows are queries, columns are keys. Arrow keys move, plus and minus zoom, Enter selects the row.",
      onkeydown: (/** @type {KeyboardEvent} */ e) => this.key(e),
      onpointerdown: (/** @type {PointerEvent} */ e) => this.press(e),
      onpointermove: (/** @type {PointerEvent} */ e) => this.move(e),
      onpointerup: (/** @type {PointerEvent} */ e) => this.release(e),
      onpointercancel: (/** @type {PointerEvent} */ e) => this.release(e),
      onpointerleave: () => { if (!this.pressed.size) this.hover(null); },
      ondblclick: (/** @type {MouseEvent} */ e) => this.zoom(2, e.offsetX, e.offsetY),
    });
    this.canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
    this.labels = h("div", { class: "labels" });
    this.reading = h("p", { class: "reading small quiet", "aria-live": "polite" });
    this.tip = h("div", { class: "tip", "aria-hidden": "true", hidden: true });
    this.frame = h("div", { class: "map" }, this.canvas, this.labels, this.tip);
    const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) =>
      h("button", { class: "icon", "aria-label": label, title: label, onclick: act }, text);
    this.legend = h("div", { class: "legend" });
    root.append(this.frame, h("div", { class: "row", style: { "margin-top": ".5rem" } }, this.legend, h("div", { class: "grow" }),
      button("+", "Zoom in", () => this.zoom(1.6)), button("−", "Zoom out", () => this.zoom(1 / 1.6)),
      button("⤢", "Show the entire map", () => this.fit())), this.reading);
    this.draw = onceAFrame(() => this.paintNow());
    this.resize = new ResizeObserver(() => this.fit());
    this.resize.observe(this.frame);
    this.repaint = () => this.draw();
    window.addEventListener("theme", this.repaint);
    /** @type {Map<number, PointerEvent>} */
    this.pressed = new Map();
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
    /** @type {Source | null} */
    this.source = null;
    /** @type {{row: number, key: number} | null} */
    this.cursor = null;
    this.chosen = -1;
    this.size = 1; // size of a cell in CSS pixels
    this.x = 0; // the first visible key
    this.y = 0; // the first visible row
    this.dragged = false;
  }

  close() {
    this.resize.disconnect();
    window.removeEventListener("theme", this.repaint);
  }

  /** Resolves when the map is on the screen. @param {Source} source @param {number} chosen a row, or -1 */
  show(source, chosen) {
    const fits = this.source?.rows !== source.rows || this.source.rowSpan.join() !== source.rowSpan.join()
      || this.source.keySpan.join() !== source.keySpan.join();
    if (this.source?.name !== source.name) {
      this.tiles.clear();
      replace(this.legend, source.heads.length > 1 ? headsLegend(source.heads) : scaleLegend(), ...blankLegend(source));
    }
    this.source = source;
    this.chosen = chosen;
    if (fits) this.fit();
    const asked = this.visible().map(([row, key, step]) => this.tile(row, key, step).come);
    this.draw();
    return Promise.all(asked).then(onScreen);
  }

  get left() {
    return this.frame.clientWidth < 480 ? 74 : 118;
  }

  fit() {
    const source = this.source;
    if (!source || !this.frame.clientWidth) return;
    const width = this.frame.clientWidth - this.left;
    const height = Math.min(HIGHEST, 0.8 * window.innerHeight) - TOP;
    const rows = source.rowSpan[1] - source.rowSpan[0];
    this.size = Math.min(LARGEST, width / (source.keySpan[1] - source.keySpan[0]), height / rows);
    this.frame.style.height = `${Math.ceil(TOP + this.size * rows) + 2}px`;
    this.least = this.size;
    this.x = source.keySpan[0];
    this.y = source.rowSpan[0];
    this.draw();
  }

  /** Cells per sample of the tiles on the screen. */
  get step() {
    return this.size >= 1 ? 1 : 2 ** Math.floor(Math.log2(1 / this.size));
  }

  paintNow() {
    const source = this.source;
    const { clientWidth: width, clientHeight: height } = this.frame;
    if (!source || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    const to = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    to.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.frame);
    const left = this.left;
    const { right, bottom } = this.ends();
    to.save();
    to.beginPath();
    to.rect(left, TOP, right - left, bottom - TOP);
    to.clip();
    to.fillStyle = style.getPropertyValue("--blank");
    to.fillRect(left, TOP, right - left, bottom - TOP);
    to.imageSmoothingEnabled = false;
    this.paintTiles(to);
    this.paintCursor(to, style);
    to.restore();
    this.paintKeys(to, style, right);
    this.placeLabels(bottom);
  }

  /** The right and bottom ends of the map on the canvas. */
  ends() {
    const source = /** @type {Source} */ (this.source);
    return {
      right: Math.min(this.frame.clientWidth, this.left + (source.keySpan[1] - this.x) * this.size),
      bottom: Math.min(this.frame.clientHeight, TOP + (source.rowSpan[1] - this.y) * this.size),
    };
  }

  /** The visible tiles: first row, first key, step. @returns {[number, number, number][]} */
  visible() {
    const source = /** @type {Source} */ (this.source);
    const step = this.step;
    const span = TILE * step;
    const { right, bottom } = this.ends();
    const lastRow = this.y + (bottom - TOP) / this.size;
    const lastKey = this.x + (right - this.left) / this.size;
    /** @type {[number, number, number][]} */
    const all = [];
    for (let row = source.rowSpan[0] + Math.floor((this.y - source.rowSpan[0]) / span) * span; row < lastRow; row += span)
      for (let key = source.keySpan[0] + Math.floor((this.x - source.keySpan[0]) / span) * span; key < lastKey; key += span) all.push([row, key, step]);
    return all;
  }

  /** @param {CanvasRenderingContext2D} to */
  paintTiles(to) {
    for (const [row, key, step] of this.visible()) {
      const tile = this.tile(row, key, step);
      if (!tile.canvas || !tile.map) continue;
      const x = this.left + (key - this.x) * this.size;
      const y = TOP + (row - this.y) * this.size;
      to.drawImage(tile.canvas, x, y, tile.map.keys * step * this.size, tile.map.rows * step * this.size);
    }
  }

  /** @param {number} row @param {number} key @param {number} step */
  tile(row, key, step) {
    const source = /** @type {Source} */ (this.source);
    const name = `${step}/${row}/${key}`;
    const found = this.tiles.get(name);
    if (found) return found;
    /** @type {Tile} */
    const tile = { canvas: null, map: null, come: Promise.resolve() };
    this.tiles.set(name, tile);
    if (this.tiles.size > 96) this.tiles.delete(/** @type {string} */ (this.tiles.keys().next().value));
    const until = (/** @type {number} */ from, /** @type {number} */ end) => `${from}-${Math.min(from + TILE * step, end)}`;
    tile.come = source.load(until(row, source.rowSpan[1]), until(key, source.keySpan[1]), step).then((map) => {
      tile.map = map;
      tile.canvas = pixels(map, (r, k) => source.sees(row + r * step + step - 1, key + k * step));
      this.draw();
    }, () => void this.tiles.delete(name));
    return tile;
  }

  /** @param {CanvasRenderingContext2D} to @param {CSSStyleDeclaration} style */
  paintCursor(to, style) {
    to.strokeStyle = style.getPropertyValue("--focus");
    to.lineWidth = 2;
    if (this.chosen >= 0) {
      to.strokeRect(this.left + 1, TOP + (this.chosen - this.y) * this.size, 1e5, Math.max(this.size, 2));
    }
    if (this.cursor) {
      const size = Math.max(this.size, 3);
      to.strokeRect(this.left + (this.cursor.key - this.x) * this.size, TOP + (this.cursor.row - this.y) * this.size, size, size);
    }
  }

  /** @param {CanvasRenderingContext2D} to @param {CSSStyleDeclaration} style @param {number} right */
  paintKeys(to, style, right) {
    const source = /** @type {Source} */ (this.source);
    const every = Math.max(1, Math.ceil(15 / this.size));
    to.font = `13px ${style.getPropertyValue("--serif")}`;
    to.textBaseline = "middle";
    const first = Math.max(source.keySpan[0], Math.ceil(this.x / every) * every);
    for (let key = first; key < source.keySpan[1]; key += every) {
      const x = this.left + (key + 0.5 - this.x) * this.size;
      if (x < this.left || x > right) continue;
      to.save();
      to.translate(x, TOP - 6);
      to.rotate(-Math.PI / 3.2);
      to.fillStyle = style.getPropertyValue(this.cursor?.key === key ? "--ink" : "--quiet");
      to.fillText(short(shown(source.keys[key].text), 11), 0, 0);
      to.restore();
    }
  }

  /** @param {number} bottom */
  placeLabels(bottom) {
    const source = /** @type {Source} */ (this.source);
    const every = Math.max(1, Math.ceil(LABEL / this.size));
    const labels = [];
    const height = Math.max(this.size, LABEL);
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.row;
    for (let row = Math.max(source.rowSpan[0], Math.ceil(this.y / every) * every); row < source.rowSpan[1]; row += every) {
      const y = TOP + (row + 0.5 - this.y) * this.size - height / 2;
      if (y < TOP - height / 2 || y > bottom - height / 3) continue;
      labels.push(h("button", {
        "data-row": row, tabindex: "-1", "aria-pressed": row === this.chosen ? "true" : "false", dir: "auto",
        "aria-label": `Row ${row}: ${source.rows[row].text}`, onclick: () => this.events.onRow(row),
        style: { top: `${y}px`, height: `${height}px`, "font-size": `${Math.min(14, height * 0.82)}px`, "line-height": `${height}px` },
      }, shown(source.rows[row].text)));
    }
    this.labels.style.width = `${this.left}px`;
    replace(this.labels, labels);
    if (focused !== undefined) /** @type {HTMLElement | null} */ (this.labels.querySelector(`[data-row="${focused}"]`))?.focus();
  }

  /** @param {number} factor @param {number} [x] @param {number} [y] */
  zoom(factor, x = this.left + 40, y = TOP + 40) {
    const size = Math.min(LARGEST * 2, Math.max(this.least ?? 0.01, this.size * factor));
    this.x += (x - this.left) / this.size - (x - this.left) / size;
    this.y += (y - TOP) / this.size - (y - TOP) / size;
    this.size = size;
    this.bound();
    this.draw();
  }

  bound() {
    const source = this.source;
    if (!source) return;
    const across = (this.frame.clientWidth - this.left) / this.size;
    const down = (this.frame.clientHeight - TOP) / this.size;
    this.x = Math.max(source.keySpan[0], Math.min(this.x, source.keySpan[1] - across));
    this.y = Math.max(source.rowSpan[0], Math.min(this.y, source.rowSpan[1] - down));
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    // Without Ctrl or the focus, the wheel scrolls the page.
    if (!event.ctrlKey && document.activeElement !== this.canvas) return;
    event.preventDefault();
    this.zoom(Math.exp(-event.deltaY * 0.002), event.offsetX, event.offsetY);
  }

  /** @param {PointerEvent} event */
  press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pressed.set(event.pointerId, event);
    this.dragged = false;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.pressed.get(event.pointerId);
    if (!before) {
      this.hover(this.cellAt(event));
      return;
    }
    const dx = event.offsetX - before.offsetX;
    const dy = event.offsetY - before.offsetY;
    if (this.pressed.size === 2) {
      const other = [...this.pressed.values()].find((each) => each.pointerId !== event.pointerId) ?? before;
      const far = (/** @type {PointerEvent} */ a) => Math.hypot(a.offsetX - other.offsetX, a.offsetY - other.offsetY) || 1;
      this.zoom(far(event) / far(before), (event.offsetX + other.offsetX) / 2, (event.offsetY + other.offsetY) / 2);
    } else if (this.dragged || Math.hypot(dx, dy) > 3) {
      this.dragged = true;
      this.x -= dx / this.size;
      this.y -= dy / this.size;
      this.bound();
      this.draw();
    } else {
      return; // not a drag yet: keep its start
    }
    this.pressed.set(event.pointerId, event);
  }

  /** @param {PointerEvent} event */
  release(event) {
    this.pressed.delete(event.pointerId);
    if (this.dragged) return;
    const cell = this.cellAt(event);
    if (!cell) return;
    this.hover(cell);
    this.events.onRow(cell.row);
  }

  /** @param {PointerEvent} event */
  cellAt(event) {
    const source = this.source;
    if (!source || event.offsetX < this.left || event.offsetY < TOP) return null;
    const row = Math.floor(this.y + (event.offsetY - TOP) / this.size);
    const key = Math.floor(this.x + (event.offsetX - this.left) / this.size);
    return row < source.rowSpan[1] && key < source.keySpan[1] ? { row, key } : null;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const source = this.source;
    if (!source) return;
    const steps = /** @type {Record<string, [number, number]>} */ ({ ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] });
    const step = steps[event.key];
    if (step) {
      const at = this.cursor ?? { row: Math.max(this.chosen, source.rowSpan[0]), key: source.keySpan[0] };
      const row = Math.min(Math.max(at.row + step[0], source.rowSpan[0]), source.rowSpan[1] - 1);
      const key = Math.min(Math.max(at.key + step[1], source.keySpan[0]), source.keySpan[1] - 1);
      this.follow(row, key);
      this.hover({ row, key });
    } else if (event.key === "+" || event.key === "=") {
      this.zoom(1.6);
    } else if (event.key === "-") {
      this.zoom(1 / 1.6);
    } else if (event.key === "0") {
      this.fit();
    } else if (event.key === "Enter" && this.cursor) {
      this.events.onRow(this.cursor.row);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Scrolls to make a cell visible. @param {number} row @param {number} key */
  follow(row, key) {
    const across = (this.frame.clientWidth - this.left) / this.size;
    const down = (this.frame.clientHeight - TOP) / this.size;
    if (key < this.x) this.x = key;
    if (key + 1 > this.x + across) this.x = key + 1 - across;
    if (row < this.y) this.y = row;
    if (row + 1 > this.y + down) this.y = row + 1 - down;
    this.bound();
  }

  /** Writes the weight next to the cell, within the map. @param {{row: number, key: number}} cell @param {string} text */
  label(cell, text) {
    this.tip.textContent = text;
    this.tip.hidden = false;
    const x = this.left + (cell.key + 1 - this.x) * this.size + 8;
    const y = TOP + (cell.row + 1 - this.y) * this.size + 6;
    const { clientWidth: width, clientHeight: height } = this.frame;
    this.tip.style.left = `${Math.max(0, Math.min(x, width - this.tip.offsetWidth - 4))}px`;
    this.tip.style.top = `${y + this.tip.offsetHeight > height ? Math.max(0, y - this.size - this.tip.offsetHeight - 12) : y}px`;
  }

  /** @param {{row: number, key: number} | null} cell */
  hover(cell) {
    this.cursor = cell;
    this.draw();
    const source = this.source;
    this.tip.hidden = true;
    if (!source || !cell) {
      this.reading.textContent = "";
      return;
    }
    source.load(`${cell.row}-${cell.row + 1}`, this.step === 1 ? `${source.keySpan[0]}-${source.keySpan[1]}` : `${cell.key}-${cell.key + 1}`, 1).then((map) => {
      if (this.cursor !== cell) return;
      const at = this.step === 1 ? cell.key - source.keySpan[0] : 0;
      const values = Array.from({ length: map.heads }, (_, n) => map.weights[n * map.keys + at]);
      const unseen = source.sees(cell.row, cell.key) ? "" : " (masked)";
      this.reading.textContent = `“${shown(source.rows[cell.row].text)}” (${cell.row}) attends to “${shown(source.keys[cell.key].text)}” (${cell.key}): ${values.map((v) => figure(v)).join(", ")}${unseen}`;
      this.label(cell, `${shown(source.rows[cell.row].text)} → ${shown(source.keys[cell.key].text)}: ${values.map((v) => figure(v)).join(", ")}${unseen}`);
    }, () => {});
  }
}

/** The legend of cells without a weight, if the map has some. @param {Source} source @returns {(Node | string)[]} */
function blankLegend({ rowSpan: [first, end], keySpan: [k0, k1], sees }) {
  const masked = !sees(first, k1 - 1) || !sees(end - 1, k0);
  return masked ? [h("span", { class: "blank", "aria-hidden": "true" }), h("span", {}, "masked: this query does not see the key")] : [];
}

/** @param {string} text @param {number} most */
function short(text, most) {
  const letters = [...text];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : text;
}

/**
 * Draws one head with the colour scale. Of several heads, each cell gets the colour of the head with the largest weight.
 * @param {import("./api.js").WeightMap} map @param {(row: number, key: number) => boolean} sees
 */
export function pixels(map, sees) {
  const canvas = h("canvas", { width: map.keys, height: map.rows });
  const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = to.createImageData(map.keys, map.rows);
  const plane = map.rows * map.keys;
  const colors = Array.from({ length: map.heads }, (_, n) => rgb(headColor(n)));
  for (let row = 0; row < map.rows; ++row) {
    for (let key = 0; key < map.keys; ++key) {
      const at = row * map.keys + key;
      if (!sees(row, key)) continue;
      if (map.heads === 1) {
        paint(image.data, 4 * at, map.weights[at]);
        continue;
      }
      let best = 0;
      for (let n = 1; n < map.heads; ++n) if (map.weights[n * plane + at] > map.weights[best * plane + at]) best = n;
      image.data.set([...colors[best], Math.round(255 * Math.sqrt(map.weights[best * plane + at]))], 4 * at);
    }
  }
  to.putImageData(image, 0, 0);
  return canvas;
}

/** @param {string} hex */
function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** The legend of the colour scale. @returns {(Node | string)[]} */
function scaleLegend() {
  const canvas = h("canvas", { class: "scale", width: 256, height: 1, "aria-hidden": "true" });
  const to = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  const image = to.createImageData(256, 1);
  for (let i = 0; i < 256; ++i) paint(image.data, 4 * i, (i / 255) ** 2);
  to.putImageData(image, 0, 0);
  return ["0", canvas, "1", h("span", {}, "(square-root scale: the middle is 0.25)")];
}

/** @param {number[]} heads @returns {(Node | string)[]} */
function headsLegend(heads) {
  return [...heads.map((head, n) => h("span", {}, h("span", { "aria-hidden": "true", style: { color: headColor(n) } }, "■ "), `head ${head}`)),
    h("span", {}, "(each cell shows the head with the largest weight; pale colours are small weights)")];
}
