// The curves of a training run, updated while it runs, and two of its snapshots side by side.

import { ask, askAnew, askMap, captured, startRun } from "./api.js";
import { alignmentCurves } from "./alignment.js";
import { color, ink } from "./colors.js";
import { range, smooth, spread } from "./curves.js";
import { figure, h, replace, shown } from "./dom.js";
import { drawHeadBar } from "./headbar.js";
import { Heatmap, pixels } from "./heatmap.js";
import { ModelShape, sides } from "./model.js";
import { key, plot, room } from "./play_positions.js";
import { change, current } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./main.js").Known} Known */
/** @typedef {import("./main.js").Session} Opened */
const EVERY = 3000; // milliseconds between reads of the log
const UNFORMED = 0.97; // a head whose entropy exceeds this fraction of the maximum has nearly uniform attention

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function learnView(root) {
  const curves = h("section", { class: "panel", "aria-label": "Curves" });
  const insides = h("section", { class: "panel", "aria-label": "Inside", hidden: true });
  const bar = h("div", { class: "row panel", hidden: true });
  const beside = h("section", { class: "panel", "aria-label": "Side by side", hidden: true });
  root.append(curves, insides, bar, beside);
  let timer = 0;
  let names = "";
  /** @type {Known[]} */
  let models = [];
  /** @type {Known[]} one, or two for a comparison */
  let pair = [];
  /** @type {Opened[]} */
  let both = [];
  /** @type {Heatmap[]} */
  let maps = [];

  const wrong = (/** @type {HTMLElement} */ box) => (/** @type {any} */ error) => {
    box.hidden = false;
    replace(box, h("p", { class: "error", role: "alert" }, String(error.message ?? error)));
  };
  const compare = async () => {
    for (const map of maps) map.close();
    maps = [];
    if (both.length === 0) return;
    bar.hidden = beside.hidden = false;
    drawHeadBar(bar, both[0], current(), { several: false });
    maps = await drawSides(beside, pair, both, models);
  };
  const open = async () => {
    const state = current();
    pair = chosenPair(models, state);
    if (pair.length === 0) return;
    insides.hidden = false;
    const { columns } = frame(insides, models, pair, state);
    both = await Promise.all(pair.map((each) => opened(each, state)));
    replace(columns, await Promise.all(pair.map((each, i) => inside(each, both[i], state.look))));
    await compare();
  };
  const look = async () => {
    models = await askAnew("api/models", {});
    const training = models.find((each) => each.training);
    if (training) await drawCurves(curves, training, models.filter((each) => each.training && each !== training));
    else replace(curves, ...noTraining(models));
    const now = JSON.stringify(models);
    if (now === names) return;
    names = now;
    window.dispatchEvent(new CustomEvent("models", { detail: models }));
    await open().catch(wrong(insides));
  };
  const again = () => {
    look().then(() => ended(curves, false), (error) => (curves.childElementCount > 1 ? ended(curves, true) : wrong(curves)(error))).finally(() => { if (timer >= 0 && !captured) timer = window.setTimeout(again, EVERY); });
  };
  again();
  return {
    close() {
      window.clearTimeout(timer);
      timer = -1;
      for (const map of maps) map.close();
    },
    update(_, state, before) {
      const changed = (/** @type {(keyof State)[]} */ ...keys) => before !== null && keys.some((key) => before[key] !== state[key]);
      if (changed("model", "other", "text", "target", "look")) open().catch(wrong(insides));
      else if (changed("layer", "heads")) compare().catch(wrong(beside));
    },
  };
}

/** Says below the curves that the server is gone: with a training run, its page ends. @param {HTMLElement} curves @param {boolean} gone */
function ended(curves, gone) {
  const known = curves.querySelector("[data-ended]");
  if (!gone) known?.remove();
  else if (!known) curves.append(h("p", { role: "status", "data-ended": true }, "The program that served this page has ended, as it does with a training run. These are its last curves; ", h("code", {}, "fovea inspect DIR"), " shows them again."));
}

/** @param {Known[]} models @returns {(Node | string)[]} */
function noTraining(models) {
  if (models[0]?.ready === false) return [h("h2", {}, "Training"), h("p", {}, "The training run has not written a log yet.")];
  return [h("h2", {}, "Training"),
    h("p", {}, "This is not the directory of a training run, so there are no curves. To see them, use ", h("code", {}, "fovea train … --inspect"), ", or ", h("code", {}, "fovea inspect DIR"), " for the directory of a running or finished training run."),
    models.length === 1 ? h("p", { class: "quiet" }, "To compare two models, for example before and after fine-tuning or quantisation: ", h("code", {}, "fovea inspect MODEL --with OTHER"), ".") : ""];
}

/** The models in the address; by default, the first and the last. @param {Known[]} models @param {State} state */
export function chosenPair(models, state) {
  const usable = models.filter((each) => each.ready !== false);
  if (usable.length < 2) return usable;
  const find = (/** @type {string} */ name) => usable.find((each) => each.model === name);
  if (state.other !== "") return [find(state.model) ?? usable[0], find(state.other) ?? usable[usable.length - 1]];
  const steps = usable.filter((each) => each.step !== undefined);
  return steps.length > 1 ? [steps[0], steps[steps.length - 1]] : [usable[0], usable[usable.length - 1]];
}

/** The loss of further runs, for the same picture. @param {Known[]} others @param {number} most */
async function otherCurves(others, most) {
  const logs = await Promise.all(others.map((each) => askAnew("api/training", { model: each.model })));
  return logs.map((log, i) => ({ name: `${others[i].name}: training loss`, values: smooth(spread(log.steps.map((/** @type {(number | null)[]} */ step) => [Number(step[0]), Number(step[1] ?? NaN)]), most)) }));
}

/** @param {HTMLElement} root @param {Known} training @param {Known[]} others */
async function drawCurves(root, training, others) {
  /** @type {{steps: (number | null)[][], evaluations: {step: number, eval_loss: number, bpb?: number}[]} & import("./alignment.js").Log} */
  const log = await askAnew("api/training", { model: training.model });
  if (log.steps.length === 0) {
    replace(root, h("h2", {}, training.name), h("p", { class: "quiet" }, "No steps yet."));
    return;
  }
  const last = log.steps[log.steps.length - 1];
  const most = Number(last[0]);
  const column = (/** @type {number} */ at) => spread(log.steps.map((step) => [Number(step[0]), Number(step[at] ?? NaN)]), most);
  const loss = column(1);
  const evaluated = spread(log.evaluations.map((each) => [each.step, each.eval_loss]), most);
  const lines = [{ name: "training loss", values: smooth(loss) }, ...(log.evaluations.length ? [{ name: "validation loss", values: evaluated }] : [])];
  const all = [...lines, ...await otherCurves(others, most)];
  const best = Math.min(...log.evaluations.map((each) => each.eval_loss));
  const norms = smooth(column(2));
  const rates = column(3);
  const half = { end: most, width: room() > 640 ? room() / 2 - 20 : room() };
  replace(root, h("h2", {}, `${training.name}: step ${most.toLocaleString("en")}`),
    h("p", {}, "Loss ", h("b", { class: "mono" }, figure(Number(last[1]))), log.evaluations.length ? [", validation loss ", h("b", { class: "mono" }, figure(log.evaluations[log.evaluations.length - 1].eval_loss)), `, best ${figure(best)}`] : "", `; ${Math.round(Number(last[4])).toLocaleString("en")} tokens per second. Updated every three seconds.`),
    plot("Loss", all, range(all.flatMap((line) => line.values)), "step", { end: most }), key(all),
    h("div", { class: "pair", style: { "margin-top": "1rem" } },
      h("div", {}, h("h3", {}, "Gradient norm"), plot("Gradient norm", [{ name: "gradient norm", values: norms }], range(norms), "step", half)),
      h("div", {}, h("h3", {}, "Learning rate"), plot("Learning rate", [{ name: "learning rate", values: rates }], [0, Math.max(...rates.filter(Number.isFinite))], "step", half))),
    ...alignmentCurves(log, most));
}

/**
 * The selection of models and of their input. @param {HTMLElement} root @param {Known[]} models @param {Known[]} pair
 * @param {State} state
 */
function frame(root, models, pair, state) {
  const pick = (/** @type {string} */ name, /** @type {number} */ nth) => h("label", {}, name, h("select", { "data-field": nth ? "other" : "model", onchange: (/** @type {Event} */ event) => {
    const now = pair.map((each) => each.model);
    now[nth] = /** @type {HTMLSelectElement} */ (event.target).value;
    change({ model: now[0], other: now[1] }, { replace: true });
  } }, models.filter((each) => each.ready !== false).map((each) => h("option", { value: each.model, selected: each === pair[nth] }, each.name))));
  const text = (/** @type {"text" | "target"} */ field, /** @type {string} */ name, /** @type {string} */ empty) => h("input", { type: "text", value: state[field], "aria-label": name, placeholder: empty, dir: "auto", style: { flex: "1", "min-width": "12rem", padding: ".35rem .6rem" },
    onchange: (/** @type {Event} */ event) => change({ [field]: /** @type {HTMLInputElement} */ (event.target).value }, { replace: true }) });
  const columns = h("div", { class: "pair" }, h("p", { class: "quiet" }, "Computing …"));
  const two = document.querySelector("header.two") !== null;
  replace(root, h("h2", {}, pair.length > 1 ? "Comparison" : "Layers and heads"),
    pair.length > 1 && h("p", { class: "quiet small" }, "Two models, or two snapshots of one training run: before and after training, fine-tuning or quantisation."),
    pair.length > 1 && h("div", { class: "row" }, pick("Left", 0), pick("Right", 1)),
    h("div", { class: "row", style: { margin: ".7rem 0" } }, text("text", "Text", ""), two && text("target", "Text of the decoder", "generated by the model")), columns);
  return { columns };
}

/** @param {Known} known @param {State} state @returns {Promise<Opened>} */
async function opened(known, { text, target }) {
  const [spec, run] = await Promise.all([ask("api/spec", { model: known.model }), startRun({ model: known.model, text, target, muted: [] })]);
  return { run, shape: new ModelShape(spec), model: known.model };
}

/** A generated sample, and the residual stream and the heads of each layer. @param {Known} known @param {Opened} here @param {string} look */
async function inside(known, here, look) {
  /** @type {{stream: number, gradient: number, entropy: number[]}[]} */
  const layers = await ask("api/sizes", { run: here.run.run, look: here.shape.both && look === "encoder" ? "encoder" : "self", gradients: 1 });
  const gradients = layers.some((layer) => layer.gradient > 0);
  const unformed = layers.flatMap((layer, i) => layer.entropy.flatMap((entropy, head) => (entropy > UNFORMED ? [`${i}.${head}`] : [])));
  const of = layers.reduce((sum, layer) => sum + layer.entropy.length, 0);
  return h("div", {}, h("h3", {}, known.name), sample(known, here),
    h("div", { class: "wide" }, h("table", { class: "scores" },
      h("thead", {}, h("tr", {}, ["layer", "stream", ...(gradients ? ["gradient"] : []), "entropy of each head"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, layers.map((layer, i) => h("tr", {}, h("th", { scope: "row" }, i), h("td", {}, figure(layer.stream, 3)), gradients && h("td", {}, figure(layer.gradient, 3)),
        h("td", {}, h("span", { class: "entropies" }, layer.entropy.map((entropy, head) => entropyButton(i, head, entropy))))))))),
    h("p", { class: "small", style: { "margin-top": ".5rem" } }, unformed.length ? `${unformed.length} of ${of} heads have nearly uniform attention (untrained or inactive): ${unformed.slice(0, 24).join(", ")}${unformed.length > 24 ? ", …" : ""}.` : `All ${of} heads prefer some tokens.`),
    h("p", { class: "quiet small" }, `Stream: root mean square of the layer's input.${gradients ? " Gradient: norm of the layer's gradients on this text." : ""} Entropy: 1 means uniform attention. Click a head to see its map below.`));
}

/** @param {number} layer @param {number} head @param {number} entropy */
function entropyButton(layer, head, entropy) {
  return h("button", { title: `layer ${layer}, head ${head}: ${figure(entropy, 3)}`, "aria-label": `${figure(entropy, 2)}: layer ${layer}, head ${head}`, style: { background: color(entropy * entropy), color: ink(entropy * entropy) },
    onclick: () => change({ layer: String(layer), heads: String(head) }, { replace: true }) }, figure(entropy, 2));
}

/** A sample that the model generates. @param {Known} known @param {Opened} here */
function sample(known, here) {
  const { shape } = here;
  if (!shape.languageModel || !shape.spec.decoder || !shape.tokenizer) return null;
  const said = shape.both ? here.run.tokens.filter((token) => !token.special).map((token) => token.text).join("") : "generating …";
  const box = h("p", { class: "formula sample", tabindex: "0", role: "region", "aria-label": `Sample of ${known.name}` }, said);
  if (!shape.both) ask("api/sample", { model: known.model, tokens: 48 }).then((answer) => { box.textContent = answer.text.trim(); }, () => box.remove());
  return box;
}

/** @param {HTMLElement} root @param {Known[]} pair @param {Opened[]} both @param {Known[]} models @returns {Promise<Heatmap[]>} */
async function drawSides(root, pair, both, models) {
  const state = current();
  const look = both.every((each) => each.shape.looks().includes(/** @type {any} */ (state.look))) ? state.look : "self";
  const layer = Math.min(Number(state.layer), ...both.map((each) => each.shape.stack(look).layers - 1));
  const head = Math.min(Number(state.heads.split(",")[0]), ...both.map((each) => each.shape.stack(look).attention.heads - 1));
  const boxes = both.map(() => h("div"));
  if (!both.every((each) => each.shape.attends(look, layer))) {
    replace(root, h("h2", {}, `Layer ${layer}`), h("p", { class: "quiet" }, "This layer is recurrent and has no attention weights."));
    return [];
  }
  replace(root, h("h2", {}, `Head ${head} of layer ${layer}`), h("div", { class: "pair" }, both.map((_, i) => h("div", {}, h("h3", {}, pair[i].name), boxes[i]))));
  const maps = both.map((here, i) => {
    const map = new Heatmap(boxes[i], { onRow: () => {} });
    const { rows, keys } = sides(here, look);
    const query = { run: here.run.run, look, layer, heads: String(head) };
    map.show({ name: JSON.stringify(query), rows, keys, rowSpan: [0, rows.length], keySpan: [0, keys.length], heads: [head], sees: here.shape.mask(look, layer),
      load: (q, k, step) => askMap({ ...query, q, k, step: step === 1 ? undefined : step }) }, -1);
    return map;
  });
  if (both.length > 1) root.append(await difference(both, look, layer, head));
  const steps = await forming(pair[pair.length - 1], models, { look, layer, head });
  if (steps) root.append(steps);
  return maps;
}

/** @param {Opened[]} both @param {string} look @param {number} layer @param {number} head */
async function difference(both, look, layer, head) {
  const named = both.map((each) => sides(each, look));
  const ids = (/** @type {{rows: import("./api.js").Token[], keys: import("./api.js").Token[]}} */ of) => [of.rows, of.keys].map((tokens) => tokens.map((token) => token.id).join()).join("/");
  if (ids(named[0]) !== ids(named[1])) return h("p", { class: "quiet", style: { "margin-top": "1rem" } }, "The two models have different tokens, so their maps are not compared.");
  const [a, b] = await Promise.all(both.map((each) => askMap({ run: each.run.run, look, layer, heads: String(head) })));
  let most = 0;
  let sum = 0;
  let at = 0;
  a.weights.forEach((weight, i) => {
    const apart = Math.abs(weight - b.weights[i]);
    sum += apart;
    if (apart > most) [most, at] = [apart, i];
  });
  const { rows, keys } = named[0];
  return h("p", { style: { "margin-top": "1rem" } }, "The maps differ by at most ", h("b", { class: "mono", title: String(most) }, figure(most)), `${most > 0 ? ` (“${shown(rows[Math.floor(at / a.keys)].text)}” attending to “${shown(keys[at % a.keys].text)}”)` : ""}; the differences of a row add up to ${figure(sum / a.rows)} on average.`);
}

/** The map of a head in each snapshot. @param {Known} known @param {Known[]} models @param {{look: string, layer: number, head: number}} at */
async function forming(known, models, { look, layer, head }) {
  const number = known.model.split("@")[0];
  const steps = models.filter((each) => each.step !== undefined && each.model.startsWith(`${number}@`));
  if (steps.length < 2) return null;
  const row = h("div", { class: "row", style: { gap: ".6rem" } });
  const every = Math.ceil(steps.length / 12);
  const listed = steps.filter((_, i) => i % every === 0 || i === steps.length - 1);
  void (async () => {
    for (const step of listed) {
      const here = await opened(step, current());
      const { rows, keys } = sides(here, look);
      const samples = Math.max(1, Math.ceil(Math.max(rows.length, keys.length) / 48));
      const map = await askMap({ run: here.run.run, look, layer, heads: String(head), step: samples === 1 ? undefined : samples });
      const sees = here.shape.mask(look, layer);
      const canvas = pixels(map, (r, k) => sees(r * samples + samples - 1, k * samples));
      canvas.style.width = canvas.style.height = "84px";
      canvas.style.imageRendering = "pixelated";
      row.append(h("figure", { style: { margin: "0" } }, canvas, h("figcaption", { class: "small quiet" }, `step ${step.step}`)));
    }
  })().catch(() => {});
  return h("div", {}, h("h3", { style: { "margin-top": "1rem" } }, "By snapshot"), row);
}
