// The home of the page: the whole model in one picture, through which the sentence flows from the bottom to the top.

import { ask, askBytes, captured, startRun } from "./api.js";
import { headColor, tint } from "./colors.js";
import { diagramOf } from "./diagram.js";
import { announce, figure, h, percent, replace, shown, svg } from "./dom.js";
import { axesOf, MEANING } from "./steps.js";
import { partsOf, ROLES } from "./roles.js";
import { MEASURED } from "./measured.js";
import { filtered } from "./sampling.js";
import { change, current, hashOf, wantedRun } from "./state.js";
import { suggestions } from "./suggestions.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./diagram.js").Box} Box */
/** @typedef {{box: Box, layer: number, look: string, y: number, x: number, element: SVGElement, column: number}} Placed */

const WIDTH = 480; // of a column
const LINE = 46; // the stream's place in a column
const [BOX, GAP, LEFT] = [42, 12, 84];
const PACE = 1100; // milliseconds for each box

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function overviewView(root) {
  const chips = h("div", { class: "row panel chips", role: "group", "aria-label": "Try this" });
  const picture = h("section", { class: "panel", "aria-label": "The model" }, h("p", { class: "quiet" }, "Drawing the model …"));
  const side = h("section", { class: "panel", "aria-label": "The sentence on its way" });
  const roles = h("section", { class: "panel", "aria-label": "The parts" });
  root.append(chips, h("div", { class: "columns house" }, picture, h("div", {}, side)), roles);
  /** @type {Flow | null} */
  let flow = null;
  return {
    close: () => flow?.stop(),
    update(session, state, before) {
      if (!session) return;
      if (before && before.text === state.text && before.model === state.model && before.target === state.target && before.muted === state.muted && before.ids === state.ids && before.tids === state.tids && flow) return;
      flow?.stop();
      void suggestions(chips, session, state);
      flow = new Flow(drawPicture(picture, session, state), side, session);
      drawRoles(roles, session, state);
      if (!captured && !matchMedia("(prefers-reduced-motion: reduce)").matches) flow.start();
    },
  };
}

/** @param {State} state @param {Placed} placed */
function addressOf(state, { box, layer, look }) {
  return hashOf({ ...state, view: "follow", look, layer: String(Math.max(layer, 0)), heads: state.heads.split(",")[0], step: box.step }).replace("#", "#/");
}

/** @param {Box["shape"]} shape */
const shapeText = (shape) => (shape.length ? `[${shape.map(([axis, size]) => (axis === String(size) ? axis : `${axis} ${size.toLocaleString("en")}`)).join(", ")}]` : "");

/** Draws all stacks. @param {HTMLElement} root @param {Session} session @param {State} state @returns {Placed[]} the boxes in the order of the computation */
function drawPicture(root, session, state) {
  const { shape, run } = session;
  const stacks = diagramOf(shape.spec, { T: run.tokens.length, S: run.source.length });
  /** @type {Placed[]} */
  const placed = [];
  const drawings = stacks.map((stack, column) => drawStack(stack, column, session, state, placed));
  const top = Math.min(...drawings.map((each) => each.top)) - 14;
  const width = stacks.length * WIDTH;
  const link = shape.both ? crossLink(placed, drawings[0].top) : null;
  replace(root, h("h2", {}, "The model in one picture"),
    h("p", { class: "quiet small" }, `${shape.parameters.toLocaleString("en")} parameters. Read from the bottom, box 1, to the top; each box is a step: click it to see what it does, with its numbers for one token. T: tokens, C: width of the stream, H: heads${shape.both ? ", S: tokens of the source" : ""}.`),
    h("div", { class: "wide picture", tabindex: "0", role: "region", "aria-label": "Picture of the model" },
      svg("svg", { viewBox: `0 ${top} ${width} ${-top}`, style: { "max-width": `${width * 1.15}px`, "min-width": `${width * 0.72}px` }, role: "group", "aria-label": `${shape.kind()} with ${stacks.map((each) => `${each.groups.reduce((sum, group) => sum + group.layers.length, 0)} layers`).join(" and ")}` }, drawings.map((each) => each.element), link)));
  return placed;
}

/** Draws upwards from y = 0.
 * @param {import("./diagram.js").Drawn} stack @param {number} column
 * @param {Session} session @param {State} state @param {Placed[]} placed
 */
function drawStack(stack, column, session, state, placed) {
  const left = column * WIDTH;
  const x = left + LINE;
  let y = -26;
  const lines = [];
  const parts = [];
  const own = () => y - BOX;
  const put = (/** @type {Box} */ box, /** @type {number} */ layer) => {
    const one = { box, layer, look: stack.look, x, y: own() + BOX / 2, column, element: /** @type {SVGElement} */ (/** @type {unknown} */ (null)) };
    placed.push(one);
    one.element = drawBox(one, placed.length, left, state);
    parts.push(one.element);
    y -= BOX + GAP;
  };
  const up = (/** @type {number} */ from, /** @type {number} */ to, kind = "stream") => lines.push(svg("line", { class: kind, x1: x, x2: x, y1: from, y2: to }));
  const plus = (/** @type {number} */ at) => parts.push(svg("circle", { class: "plus", cx: x, cy: at, r: 9 }), svg("path", { class: "plus-sign", d: `M${x - 5},${at}h10M${x},${at - 5}v10` }));
  const bottom = y;
  parts.push(svg("text", { class: "end", x: left + 12, y: -8 }, `${stack.look === "encoder" ? session.run.source.length : session.run.tokens.length} tokens in`));
  for (const box of stack.input) {
    if (box.lane === "branch") {
      plus(own() + BOX / 2);
      lines.push(svg("line", { class: "branch", x1: left + LEFT, x2: x + 9, y1: own() + BOX / 2, y2: own() + BOX / 2 }));
    }
    put(box, -1);
  }
  for (const group of stack.groups) {
    const start = y + 2;
    y -= 30;
    for (const sublayer of group.sublayers) {
      const inside = sublayer.boxes.filter((box) => box.lane === "branch");
      const begin = y;
      y -= 8;
      const bx = left + LEFT + 16;
      for (const box of inside) put(box, group.layers[0]);
      const end = y - 4;
      if (inside.length) {
        lines.push(svg("path", { class: "branch", d: `M${x},${begin}H${bx}V${end}H${x + (sublayer.add ? 9 : 0)}` }));
        if (sublayer.add) plus(end);
        else lines.push(svg("line", { class: "gap", x1: x, x2: x, y1: begin - 3, y2: end + 3 }));
      }
      y = end - 14;
      for (const box of sublayer.boxes.filter((each) => each.lane === "stream")) put(box, group.layers[0]);
    }
    parts.push(svg("rect", { class: "bracket", x: left + 6, y: y - 4, width: WIDTH - 14, height: start - y + 4, rx: 12 }),
      svg("text", { class: "times", x: left + WIDTH - 18, y: start - 8, "text-anchor": "end" }, group.name));
    y -= 18;
  }
  const top = y;
  for (const box of stack.output) put(box, session.shape.stack(stack.look).layers - 1);
  up(bottom, Math.min(top, y + GAP));
  parts.push(svg("text", { class: "stack-name", x: x + 12, y: y + 6 }, stack.title));
  const brackets = parts.filter((each) => each.getAttribute("class") === "bracket");
  return { element: svg("g", {}, brackets, lines, parts.filter((each) => !brackets.includes(each))), top: y };
}

/** @param {Placed} placed @param {number} number in the order of the computation @param {number} left @param {State} state */
function drawBox(placed, number, left, state) {
  const { box, y } = placed;
  const on = box.lane === "stream";
  const x = left + (on ? 18 : LEFT);
  const width = WIDTH - (on ? 18 : LEFT) - 16;
  const shape = shapeText(box.shape);
  const room = Math.floor((width - 16) / 6.1);
  const detail = box.detail.length > room ? `${box.detail.slice(0, room - 1)}…` : box.detail;
  return svg("a", { href: addressOf(state, placed), class: `box ${box.lane} ${box.part}`, "data-step": box.step },
    svg("rect", { x, y: y - BOX / 2, width, height: BOX, rx: 8 }, svg("title", {}, `${box.title}: ${box.detail}`)),
    svg("text", { class: "name", x: x + 10, y: y - 4 }, svg("tspan", { class: "order" }, `${number} `), box.title),
    svg("text", { class: "detail", x: x + 10, y: y + 13 }, detail),
    svg("text", { class: "shape", x: x + width - 8, y: y - 4, "text-anchor": "end" }, shape));
}

/** The link from the encoder's output to the cross-attention of the decoder. @param {Placed[]} placed @param {number} top of the encoder */
function crossLink(placed, top) {
  const crosses = placed.filter(({ box }) => box.part === "cross");
  return svg("g", {}, crosses.map(({ y }) => [
    svg("path", { class: "cross-link", d: `M${LINE},${top + GAP}V${top}H${WIDTH - 1}V${y}H${WIDTH + LEFT - 7}` }),
    svg("path", { class: "arrow", d: `M${WIDTH + LEFT - 8},${y - 5}l7,5l-7,5z` })]).flat());
}

/** The way of the sentence through the boxes, one after the other. */
class Flow {
  /** @param {Placed[]} placed @param {HTMLElement} root @param {Session} session */
  constructor(placed, root, session) {
    this.placed = placed;
    this.session = session;
    this.at = -1;
    this.timer = 0;
    const tokens = session.run.tokens.slice(0, 10);
    this.dots = svg("g", { class: "dots", "aria-hidden": "true" }, tokens.map((_, n) => svg("circle", { r: 4, cx: (n - (tokens.length - 1) / 2) * 8, cy: 0, fill: headColor(n) })));
    placed[0]?.element.ownerSVGElement?.append(this.dots);
    this.button = h("button", { class: "primary", onclick: () => (this.timer ? this.stop() : this.start()) }, "▶ Let the sentence flow");
    this.words = h("div", {});
    this.lens = h("div", {});
    replace(root, h("h2", {}, "The sentence on its way"),
      h("div", { class: "row" }, this.button,
        h("button", { "aria-label": "One box back", onclick: () => { this.stop(); this.go(this.at - 1); } }, "↓"),
        h("button", { "aria-label": "One box on", onclick: () => { this.stop(); this.go(this.at + 1); } }, "↑")),
      h("p", { class: "flow-tokens", dir: "auto" }, tokens.map((token, n) => h("span", { style: { "border-color": headColor(n) } }, shown(token.text))), session.run.tokens.length > tokens.length && "…"),
      this.words, this.lens);
    this.go(0);
    void drawLens(this.lens, session).catch((error) => replace(this.lens, h("p", { class: "error", role: "alert" }, error.message)));
  }

  start() {
    this.stop();
    if (this.at >= this.placed.length - 1) this.go(0);
    this.button.textContent = "❚❚ Pause";
    this.timer = window.setInterval(() => {
      if (!this.dots.isConnected || this.at >= this.placed.length - 1) this.stop();
      else this.go(this.at + 1);
    }, PACE);
  }

  stop() {
    window.clearInterval(this.timer);
    this.timer = 0;
    this.button.textContent = "▶ Let the sentence flow";
  }

  /** @param {number} to */
  go(to) {
    if (to < 0 || to >= this.placed.length) return;
    this.placed[this.at]?.element.classList.remove("now");
    this.at = to;
    const { box, element, x, y, layer, look } = this.placed[to];
    element.classList.add("now");
    this.dots.setAttribute("transform", `translate(${box.lane === "stream" ? x : x + 60},${y - BOX / 2 - 6})`);
    const [section, title, , words] = MEANING[box.step] ?? ["", box.title, "", ""];
    const numbers = h("p", { class: "mono small numbers" });
    replace(this.words, h("p", { class: "quiet small" }, `${to + 1} of ${this.placed.length} · ${section}${layer >= 0 && to < this.placed.length - 1 ? `, layer ${layer}` : ""}`), h("h3", {}, box.title === title ? title : `${box.title}: ${title.toLowerCase()}`), h("p", {}, words), numbers);
    if (!this.timer) announce(`${box.title}: ${box.detail}`);
    const { source, tokens, run } = this.session.run;
    const all = look === "encoder" ? source : tokens;
    ask("api/walk", { run, look, token: all.length - 1, layer: Math.max(layer, 0), head: 0, values: 128 }).then((steps) => {
      const step = steps.find((/** @type {{name: string}} */ each) => each.name === box.step);
      if (step && this.at === to) replace(numbers, `“${shown(all[all.length - 1].text)}”, ${axesOf(step.name, step.shape)}: ${step.values.slice(0, 4).map((/** @type {number} */ x) => figure(x)).join(", ")}${step.size > 4 ? ", …" : ""}`);
    }, () => {});
  }
}

/** What the head would predict after each layer, for the last token. @param {HTMLElement} root @param {Session} session */
async function drawLens(root, session) {
  const { tokens, run } = session.run;
  const position = tokens.length - 1;
  if (captured) return; // a saved file has no predictions
  if (!session.shape.languageModel) {
    replace(root, h("p", { class: "quiet small" }, "The head of this model predicts no tokens; “Predictions” shows its output."));
    return;
  }
  const decoder = Boolean(session.shape.spec.decoder);
  const at = decoder ? position : Math.min(1, position);
  const [layers, bytes] = await Promise.all([ask("api/lens", { run, positions: `${at}-${at + 1}` }), askBytes("api/logits", { run, position: at })]);
  const { order, probabilities } = filtered(new Float32Array(bytes), 1, 0, 1, 3);
  /** @type {[number, number][]} */
  const best = layers.map((/** @type {[number, number][]} */ each) => each[0]);
  /** @type {import("./api.js").Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: [...best.map(([id]) => id), ...order].join(",") });
  const every = Math.ceil(best.length / 12);
  replace(root, h("h3", {}, decoder ? `After “${shown(tokens[at].text)}” comes` : `At “${shown(tokens[at].text)}”`),
    h("p", {}, [...order].map((_, i) => h("span", { class: "prediction", style: { background: tint("accent", Math.sqrt(probabilities[i])) }, title: String(probabilities[i]) }, `${shown(texts[best.length + i].text)} ${percent(probabilities[i])}`))),
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "after layer"), h("th", { scope: "col" }, "the head would say"), h("th", { scope: "col", class: "number" }, "probability"))),
      h("tbody", {}, [...best.keys()].filter((i) => i % every === 0 || i === best.length - 1).reverse().map((i) => h("tr", {}, h("th", { scope: "row" }, i === 0 ? "none" : i - 1), h("td", {}, shown(texts[i].text)), h("td", { class: "number", title: String(best[i][1]) }, figure(best[i][1])))))),
    h("p", { class: "small", style: { "margin-top": ".6rem" } }, h("a", { href: hashOf({ ...current(), view: "say" }).replace("#", "#/") }, "All predictions")));
}

/** Measures the loss without any head. @param {Session} session @param {State} state */
function measure(session, state) {
  if (!session.shape.languageModel || captured) return null;
  const result = h("p", { class: "small", role: "status" });
  const lossOf = async (/** @type {string} */ muted) => {
    const { run } = await startRun(wantedRun({ ...state, muted }));
    const all = await ask("api/surprise", { run });
    return all.reduce((/** @type {number} */ sum, /** @type {{probability: number}} */ each) => sum - Math.log(each.probability), 0) / Math.max(all.length, 1);
  };
  const heads = session.shape.looks().flatMap((look) => Array.from({ length: session.shape.stack(look).layers }, (_, layer) => layer).filter((layer) => session.shape.attends(look, layer))
    .flatMap((layer) => Array.from({ length: session.shape.stack(look).attention.heads }, (_, head) => `${look}.${layer}.${head}`)));
  return h("div", {}, h("button", { class: "small", "data-measure": "attention", onclick: async () => {
    result.textContent = "Measuring …";
    try {
      const [before, after] = [await lossOf(""), await lossOf(heads.join(","))];
      result.textContent = `Loss on this text: ${figure(before)} with all heads, ${figure(after)} with none.`;
      result.title = `${before} ${after}`;
    } catch (error) {
      result.textContent = error instanceof Error ? error.message : String(error);
    }
  } }, "Leave all heads out"), result);
}

/** Results of the laboratory. @param {string} part */
function figures(part) {
  const found = MEASURED[part];
  if (!found) return [h("span", { class: "quiet" }, "not measured")];
  return found.map(([command, metric, value, without, words]) => h("p", { title: `${command}: ${value} and ${without}` }, `${metric}: `, h("b", { class: "mono" }, figure(without)), ` ${words}, `, h("b", { class: "mono" }, figure(value)), " otherwise"));
}

/** @param {HTMLElement} root @param {Session} session @param {State} state */
function drawRoles(root, session, state) {
  const parts = partsOf(diagramOf(session.shape.spec, { T: session.run.tokens.length, S: session.run.source.length }));
  const look = (/** @type {Box} */ box) => (session.shape.both && box.part !== "cross" ? "encoder" : "self");
  replace(root, h("h2", {}, "What each part is for"),
    h("p", { class: "quiet small" }, "The parts of this model; measured: with small models in the laboratory (", h("code", {}, "fovea lab"), ")."),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Parts and reasons" }, h("table", { class: "roles" },
      h("thead", {}, h("tr", {}, ["part", "what it does", "why", "without it", "measured", "here"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, parts.map(([part, boxes]) => {
        const [does, why, without] = ROLES[part];
        const link = hashOf({ ...state, view: "follow", look: look(boxes[0]), step: boxes[0].step }).replace("#", "#/");
        return h("tr", {}, h("th", { scope: "row" }, h("a", { href: link, onclick: (/** @type {MouseEvent} */ event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          change({ view: "follow", look: look(boxes[0]), step: boxes[0].step });
        } }, [...new Set(boxes.map((box) => box.title))].slice(0, 3).join(", "))),
        h("td", {}, does), h("td", {}, why), h("td", {}, without, part === "attention" && measure(session, state)), h("td", { class: "small" }, figures(part)), h("td", { class: "quiet" }, [...new Set(boxes.map((box) => box.detail))].slice(0, 3).join("; ")));
      })))));
}
