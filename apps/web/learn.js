// Watch it learn: a training's own files, read again as they grow, and two of its checkpoints side by side.

import { ask, askAnew, askMap, captured, startRun } from "./api.js";
import { color, ink } from "./colors.js";
import { figure, h, replace, shown } from "./dom.js";
import { Heatmap, pixels } from "./heatmap.js";
import { ModelShape } from "./model.js";
import { key, plot } from "./play_positions.js";
import { change, current } from "./state.js";

/** @typedef {{model: string, name: string, training?: boolean, step?: number}} Known */
const EVERY = 3000; // milliseconds between looks at the log

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function learnView(root) {
  const curves = h("section", { class: "panel", "aria-label": "Curves" });
  const insides = h("section", { class: "panel", "aria-label": "Inside" });
  const sides = h("section", { class: "panel", "aria-label": "Side by side" });
  root.append(curves, insides, sides);
  let timer = 0;
  let count = 0;
  /** @type {Heatmap[]} */
  let maps = [];
  const look = async () => {
    const models = /** @type {Known[]} */ (await askAnew("api/models", {}));
    const training = models.find((each) => each.training);
    if (training) await drawCurves(curves, training);
    else replace(curves, h("h2", {}, "Watch it learn"), h("p", {}, "This is no training's directory. Give one to ", h("code", {}, "fovea inspect"), ", while ", h("code", {}, "fovea train"), " writes to it or afterwards, and its curves and checkpoints appear here."));
    if (models.length !== count) {
      count = models.length;
      for (const map of maps) map.close();
      maps = await drawInside(insides, sides, models);
    }
  };
  const again = () => {
    look().catch((error) => replace(curves, h("p", { class: "error", role: "alert" }, String(error.message ?? error))))
      .finally(() => { if (timer >= 0 && !captured) timer = window.setTimeout(again, EVERY); });
  };
  again();
  return {
    close() {
      window.clearTimeout(timer);
      timer = -1;
      for (const map of maps) map.close();
    },
    update(_, state, before) {
      if (before && (before.model !== state.model || before.other !== state.other || before.layer !== state.layer || before.heads !== state.heads || before.text !== state.text)) {
        count = -1;
        void look();
      }
    },
  };
}

/** @param {HTMLElement} root @param {Known} training */
async function drawCurves(root, training) {
  /** @type {{steps: (number | null)[][], evaluations: {step: number, eval_loss: number, bpb?: number}[]}} */
  const log = await askAnew("api/training", { model: training.model });
  if (log.steps.length === 0) {
    replace(root, h("h2", {}, training.name), h("p", { class: "quiet" }, "No step yet."));
    return;
  }
  const last = log.steps[log.steps.length - 1];
  const most = Number(last[0]);
  const column = (/** @type {number} */ at) => spread(log.steps.map((step) => [Number(step[0]), Number(step[at] ?? NaN)]), most);
  const loss = column(1);
  const evaluated = spread(log.evaluations.map((each) => [each.step, each.eval_loss]), most);
  const lines = [{ name: "loss of each step", values: smooth(loss) }, ...(log.evaluations.length ? [{ name: "held-out text", values: evaluated }] : [])];
  const range = (/** @type {number[]} */ values) => /** @type {[number, number]} */ ([Math.min(...values.filter(Number.isFinite)), Math.max(...values.filter(Number.isFinite))]);
  const best = Math.min(...log.evaluations.map((each) => each.eval_loss));
  const norms = smooth(column(2));
  const rates = column(3);
  replace(root, h("h2", {}, `${training.name}: step ${most.toLocaleString("en")}`),
    h("p", {}, "Loss ", h("b", { class: "mono" }, figure(Number(last[1]))), log.evaluations.length ? [", held out ", h("b", { class: "mono" }, figure(log.evaluations[log.evaluations.length - 1].eval_loss)), `, at best ${figure(best)}`] : "", `; ${Math.round(Number(last[4])).toLocaleString("en")} tokens a second. Read again every three seconds.`),
    plot("Loss", lines, range([...loss, ...evaluated]), "step", most), key(lines),
    h("div", { class: "columns", style: { "grid-template-columns": "repeat(auto-fit, minmax(17rem, 1fr))", "margin-top": "1rem" } },
      h("div", {}, h("h3", {}, "Size of the gradient"), plot("Size of the gradient", [{ name: "gradient norm", values: norms }], range(norms), "step", most)),
      h("div", {}, h("h3", {}, "Learning rate"), plot("Learning rate", [{ name: "learning rate", values: rates }], [0, Math.max(...rates.filter(Number.isFinite))], "step", most))));
}

/** Values at even distances, those between two points on their line. @param {number[][]} points @param {number} most */
function spread(points, most) {
  const usable = points.filter(([, y]) => Number.isFinite(y));
  if (usable.length === 0) return [NaN];
  let at = 0;
  const count = Math.min(most, 400);
  return Array.from({ length: count + 1 }, (_, i) => {
    const x = (i / count) * most;
    while (at + 1 < usable.length && usable[at + 1][0] <= x) ++at;
    const [x0, y0] = usable[at];
    const [x1, y1] = usable[Math.min(at + 1, usable.length - 1)];
    if (x < x0) return NaN;
    return x1 === x0 ? y0 : y0 + ((x - x0) / (x1 - x0)) * (y1 - y0);
  });
}

/** @param {number[]} values */
function smooth(values) {
  let mean = values.find(Number.isFinite) ?? NaN;
  return values.map((value) => (Number.isFinite(value) ? (mean += 0.3 * (value - mean)) : NaN));
}

/**
 * @param {HTMLElement} insides @param {HTMLElement} sides @param {Known[]} models
 * @returns {Promise<Heatmap[]>}
 */
async function drawInside(insides, sides, models) {
  const state = current();
  const one = models.find((each) => each.model === state.model) ?? models[0];
  const other = models.find((each) => each.model === state.other) ?? models[models.length - 1];
  const pick = (/** @type {string} */ name, /** @type {Known} */ chosen, /** @type {"model" | "other"} */ field) => h("label", {}, name, h("select", { "data-field": field, onchange: (/** @type {Event} */ event) => change({ [field]: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
    models.map((each) => h("option", { value: each.model, selected: each === chosen }, each.name))));
  const box = h("input", { type: "text", value: state.text, "aria-label": "Text", style: { flex: "1", "min-width": "12rem", padding: ".35rem .6rem" }, onchange: () => change({ text: box.value }, { replace: true }) });
  replace(insides, h("h2", {}, "Inside, side by side"), h("p", { class: "quiet small" }, "Two models or two moments of one: before and after training, fine-tuning or quantising."),
    h("div", { class: "row" }, pick("Left", one, "model"), pick("Right", other, "other")), h("div", { class: "row", style: { margin: ".7rem 0" } }, box));
  replace(sides, h("p", { class: "quiet" }, "Computing …"));
  try {
    const [left, right] = await Promise.all([opened(one, state.text), opened(other, state.text)]);
    insides.append(h("div", { class: "columns", style: { "grid-template-columns": "repeat(auto-fit, minmax(18rem, 1fr))" } }, await sizes(one, left), await sizes(other, right)));
    return await drawSides(sides, [one, other], [left, right]);
  } catch (error) {
    replace(sides, h("p", { class: "error", role: "alert" }, error instanceof Error ? error.message : String(error)));
    return [];
  }
}

/** @typedef {{run: import("./api.js").Run, shape: ModelShape, model: string}} Opened */

/** @param {Known} known @param {string} text @returns {Promise<Opened>} */
async function opened(known, text) {
  const [spec, run] = await Promise.all([ask("api/spec", { model: known.model }), startRun({ model: known.model, text, target: "", muted: [] })]);
  return { run, shape: new ModelShape(spec), model: known.model };
}

/** What flows through each layer, and what its heads do. @param {Known} known @param {Opened} here */
async function sizes(known, here) {
  /** @type {{stream: number, gradient: number, entropy: number[]}[]} */
  const layers = await ask("api/sizes", { run: here.run.run, look: "self", gradients: 1 });
  const sample = h("p", { class: "formula", style: { "white-space": "pre-wrap", "font-size": ".85rem", "line-height": "1.45", "max-height": "9rem", "overflow-y": "auto" }, tabindex: "0", role: "region", "aria-label": `What ${known.name} writes` }, "writing …");
  if (here.shape.languageModel && here.shape.spec.decoder && !here.shape.both && here.shape.tokenizer) ask("api/sample", { model: known.model, tokens: 48 }).then((answer) => { sample.textContent = answer.text; }, () => sample.remove());
  else sample.remove();
  const gradients = layers.some((layer) => layer.gradient > 0);
  return h("div", {}, h("h3", {}, known.name), sample,
    h("div", { class: "wide" }, h("table", { class: "scores" },
      h("thead", {}, h("tr", {}, ["layer", "stream", ...(gradients ? ["gradient"] : []), "entropy of each head"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, layers.map((layer, i) => h("tr", {}, h("th", { scope: "row" }, i), h("td", {}, figure(layer.stream, 3)), gradients && h("td", {}, figure(layer.gradient, 3)),
        h("td", {}, h("span", { style: { display: "flex", gap: "2px" } }, layer.entropy.map((entropy, head) => h("button", { title: `layer ${i}, head ${head}: ${figure(entropy, 3)}${entropy > 0.97 ? " (looks everywhere alike: not formed, or dead)" : ""}`, "aria-label": `Layer ${i}, head ${head}, entropy ${figure(entropy, 2)}`, style: { background: color(entropy * entropy), color: ink(entropy * entropy), border: "0", "border-radius": "3px", padding: "0 .25rem", font: ".72rem var(--mono)" },
          onclick: () => change({ layer: String(i), heads: String(head) }, { replace: true }) }, figure(entropy, 2)))))))))),
    h("p", { class: "quiet small", style: { "margin-top": ".5rem" } }, "Stream: root mean square of what enters the layer. Gradient: size of the layer's gradients on this text. Entropy: 1 looks everywhere alike (a head not formed, or dead). Click a head to see it below."));
}

/** @param {HTMLElement} root @param {Known[]} known @param {Opened[]} both @returns {Promise<Heatmap[]>} */
async function drawSides(root, known, both) {
  const state = current();
  const layer = Math.min(Number(state.layer), ...both.map((each) => each.shape.stack("self").layers - 1));
  const head = Math.min(Number(state.heads.split(",")[0]), ...both.map((each) => each.shape.stack("self").attention.heads - 1));
  const places = both.map(() => h("div"));
  replace(root, h("h2", {}, `Head ${head} of layer ${layer}`), h("div", { class: "columns", style: { "grid-template-columns": "repeat(auto-fit, minmax(18rem, 1fr))" } }, both.map((_, i) => h("div", {}, h("h3", {}, known[i].name), places[i]))));
  const maps = both.map((here, i) => {
    const map = new Heatmap(places[i], { onRow: () => {} });
    const { tokens } = here.run;
    const query = { run: here.run.run, look: "self", layer, heads: String(head) };
    map.show({ name: JSON.stringify(query), rows: tokens, keys: tokens, rowSpan: [0, tokens.length], keySpan: [0, tokens.length], heads: 1, sees: here.shape.mask("self", layer),
      load: (q, k, step) => askMap({ ...query, q, k, step: step === 1 ? undefined : step }) }, -1);
    return map;
  });
  const same = both[0].run.tokens.map((token) => token.id).join() === both[1].run.tokens.map((token) => token.id).join();
  if (same) root.append(await difference(both, layer, head));
  const steps = await forming(known, layer, head);
  if (steps) root.append(steps);
  return maps;
}

/** @param {Opened[]} both @param {number} layer @param {number} head */
async function difference(both, layer, head) {
  const [a, b] = await Promise.all(both.map((each) => askMap({ run: each.run.run, look: "self", layer, heads: String(head) })));
  let most = 0;
  let sum = 0;
  let at = 0;
  a.weights.forEach((weight, i) => {
    const apart = Math.abs(weight - b.weights[i]);
    sum += apart;
    if (apart > most) [most, at] = [apart, i];
  });
  const { tokens } = both[0].run;
  return h("p", { style: { "margin-top": "1rem" } }, "The maps differ by ", h("b", { class: "mono" }, figure(most, 6)), ` at most (“${shown(tokens[Math.floor(at / a.keys)].text)}” looking at “${shown(tokens[at % a.keys].text)}”), by ${figure(sum / a.rows, 6)} a row in all.`);
}

/** A head at each checkpoint. @param {Known[]} known @param {number} layer @param {number} head */
async function forming(known, layer, head) {
  const number = known[1].model.split("@")[0];
  const steps = /** @type {Known[]} */ (await ask("api/models")).filter((each) => each.step !== undefined && each.model.startsWith(`${number}@`));
  if (steps.length < 2) return null;
  const row = h("div", { class: "row", style: { gap: ".6rem" } });
  const every = Math.ceil(steps.length / 12);
  const told = steps.filter((_, i) => i % every === 0 || i === steps.length - 1);
  void (async () => {
    for (const step of told) {
      const here = await opened(step, current().text);
      const samples = Math.max(1, Math.ceil(here.run.tokens.length / 48));
      const map = await askMap({ run: here.run.run, look: "self", layer, heads: String(head), step: samples === 1 ? undefined : samples });
      const canvas = pixels(map, (r, k) => here.shape.mask("self", layer)(r * samples + samples - 1, k * samples));
      canvas.style.width = canvas.style.height = "84px";
      canvas.style.imageRendering = "pixelated";
      row.append(h("figure", { style: { margin: "0" } }, canvas, h("figcaption", { class: "small quiet" }, `step ${step.step}`)));
    }
  })().catch(() => {});
  return h("div", {}, h("h3", { style: { "margin-top": "1rem" } }, "As it formed"), row);
}
