// Feed-forward neurons: which fire on a token, which tokens each promotes, and what changes without them.

import { ask, askBytes, startRun } from "./api.js";
import { wordChoice } from "./answers.js";
import { figure, h, replace, shown, track } from "./dom.js";
import { filtered } from "./sampling.js";
import { change, wantedRun } from "./state.js";

/** @typedef {{layer: number, neuron: number, activation: number, promoted: [number, number][]}} Neuron */
const LISTED = 24; // neurons of all layers together
const PROMOTED = 5;
const NEXT = 6; // next tokens in the comparison
/** @type {Set<string>} the neurons that are off, as "layer.neuron" */
const off = new Set();

/** @type {import("./circuits.js").Draw} */
export async function drawNeurons(root, session, state, still) {
  const look = state.look === "encoder" ? "encoder" : "self";
  const tokens = look === "encoder" ? session.run.source : session.run.tokens;
  const token = Math.min(Number(state.token), tokens.length - 1);
  /** @type {Omit<Neuron, "layer">[][]} */
  const layers = await ask("api/neurons", { run: session.run.run, look, token });
  const chosen = layers[Number(state.depth)] && state.depth !== "" ? Number(state.depth) : -1;
  const all = layers.flatMap((neurons, layer) => neurons.map((each) => ({ layer, ...each })));
  const listed = (chosen < 0 ? all.sort((a, b) => Math.abs(b.activation) - Math.abs(a.activation)) : all.filter((each) => each.layer === chosen)).slice(0, LISTED);
  const ids = [...new Set(listed.flatMap((each) => each.promoted.slice(0, PROMOTED).map(([id]) => id)))];
  /** @type {import("./api.js").Token[]} */
  const texts = ids.length ? await ask("api/texts", { model: session.model, ids: ids.join(",") }) : [];
  if (!still()) return;
  const text = new Map(ids.map((id, i) => [id, shown(texts[i].text)]));
  const effect = h("section", { class: "panel", "aria-label": "Without neurons", "aria-live": "polite" });
  const redo = () => void drawEffect(effect, session, state, look, token, redo).catch((error) => replace(effect, h("p", { class: "error", role: "alert" }, error.message)));
  const most = Math.max(...listed.map((each) => Math.abs(each.activation)), 1e-9);
  const negative = listed.some((each) => each.activation < 0);
  replace(root, h("section", { class: "panel" }, h("h2", {}, "Which neurons fire"),
    h("p", { class: "quiet small" }, "A neuron is one element of the hidden layer of a feed-forward network. If it fires, it adds its activation times a fixed vector to the residual stream; through the head, this vector raises the logits of some tokens. Choose a token."),
    wordChoice(tokens, token),
    h("label", {}, "Layer", h("select", { "data-field": "depth", onchange: (/** @type {Event} */ event) => change({ depth: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
      h("option", { value: "", selected: chosen < 0 }, "all"), layers.map((_, i) => h("option", { value: i, selected: i === chosen }, i)))),
    listed.length === 0 ? h("p", { class: "quiet" }, "This layer has experts, or no feed-forward network.") : h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Neurons", style: { "margin-top": ".8rem" } }, h("table", { style: { "min-width": "40rem" } },
      h("thead", {}, h("tr", {}, ["off", "layer", "neuron", "activation", "", "adds to the logits of"].map((name) => h(name ? "th" : "td", name ? { scope: "col" } : {}, name)))),
      h("tbody", {}, listed.map((each) => {
        const name = `${each.layer}.${each.neuron}`;
        return h("tr", { "data-neuron": name }, h("td", {}, h("input", { type: "checkbox", "aria-label": `Switch neuron ${name} off`, checked: off.has(name), onchange: (/** @type {Event} */ event) => {
          if (/** @type {HTMLInputElement} */ (event.target).checked) off.add(name);
          else off.delete(name);
          redo();
        } })), h("th", { scope: "row" }, each.layer), h("td", { class: "number" }, each.neuron), h("td", { class: "bars", style: { "min-width": "7rem", display: "table-cell" } }, track(each.activation, most, negative)),
        h("td", { class: "number", "data-activation": name, title: String(each.activation) }, figure(each.activation)),
        h("td", { class: "small" }, each.promoted.slice(0, PROMOTED).map(([id, value], i) => [i > 0 && ", ", h("span", { title: String(value) }, `${text.get(id)} +${figure(value, 2)}`.replace("+−", "−"))]).flat()));
      }))))), effect);
  redo();
}

/** The next token with and without the neurons that are off. @param {HTMLElement} root @param {import("./main.js").Session} session @param {import("./state.js").State} state @param {string} look @param {number} token @param {() => void} redo */
async function drawEffect(root, session, state, look, token, redo) {
  const heading = h("h2", {}, "Without neurons");
  if (!session.shape.languageModel) return replace(root, heading, h("p", { class: "quiet" }, "This model predicts no tokens."));
  if (off.size === 0) return replace(root, heading, h("p", { class: "quiet" }, "Tick neurons to switch them off, and see what the model then predicts after the chosen token."));
  const neurons = [...off].map((name) => [look, ...name.split(".").map(Number)]);
  const without = await startRun({ ...wantedRun(state), muted_neurons: neurons });
  const position = look === "encoder" ? session.run.tokens.length - 1 : token;
  const probabilities = async (/** @type {string} */ run) => filtered(new Float32Array(await askBytes("api/logits", { run, position })), 1, 0, 1, Infinity);
  const [before, after] = await Promise.all([probabilities(session.run.run), probabilities(without.run)]);
  const of = (/** @type {{order: ArrayLike<number>, probabilities: ArrayLike<number>}} */ all, /** @type {number} */ id) => all.probabilities[Array.prototype.indexOf.call(all.order, id)];
  const ids = [...new Set([...Array.from(before.order).slice(0, NEXT), ...Array.from(after.order).slice(0, NEXT)])];
  /** @type {import("./api.js").Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: ids.join(",") });
  return replace(root, heading, h("p", { class: "small" }, `Off: ${[...off].join(", ")}. `, h("button", { class: "small", onclick: () => {
    off.clear();
    for (const box of document.querySelectorAll("[data-neuron] input")) /** @type {HTMLInputElement} */ (box).checked = false;
    redo();
  } }, "Switch all on")),
  h("table", {}, h("thead", {}, h("tr", {}, ["token", "all neurons", "without", "change"].map((name, i) => h("th", { scope: "col", class: i ? "number" : undefined }, name)))),
    h("tbody", {}, ids.map((id, i) => {
      const [p, q] = [of(before, id), of(after, id)];
      return h("tr", {}, h("th", { scope: "row" }, shown(texts[i].text)), h("td", { class: "number", "data-with": id, title: String(p) }, figure(p)), h("td", { class: "number", "data-without": id, title: String(q) }, figure(q)), h("td", { class: "number", title: String(q - p) }, figure(q - p)));
    }))));
}
