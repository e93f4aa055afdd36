// The computation of one token, step by step, with the numbers of this model.

import { ask } from "./api.js";
import { color, ink, signed } from "./colors.js";
import { announce, figure, h, replace, shown, track } from "./dom.js";
import { drawHeadBar } from "./headbar.js";
import { formulaOf } from "./formula.js";
import { sides } from "./model.js";
import { change } from "./state.js";
import { axesOf, MEANING } from "./steps.js";
import { worked } from "./worked.js";

/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./state.js").State} State */
/** @typedef {{name: string, shape: number[], values: number[], size: number, rms: number, ids: number[]}} Step */

const VALUES = 128; // requested of each vector: entire heads of up to this width, so that their products can be verified
const SHOWN = 32; // shown of them, until the reader requests more

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function followView(root) {
  const bar = h("div", { class: "row panel" });
  const pipeline = h("nav", { class: "panel", "aria-label": "Steps" });
  const stage = h("section", { class: "panel", "aria-label": "The step" });
  root.append(bar, h("div", { class: "columns" }, stage, pipeline));
  let turn = 0;
  const keys = (/** @type {KeyboardEvent} */ event) => {
    const { target } = event;
    if (target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement) return;
    if (event.key === "ArrowRight") move(1);
    else if (event.key === "ArrowLeft") move(-1);
  };
  document.addEventListener("keydown", keys);
  return {
    close: () => document.removeEventListener("keydown", keys),
    update(session, state) {
      if (!session) return;
      const mine = ++turn;
      const look = state.look === "cross" ? "self" : state.look;
      const { rows } = sides(session, look);
      const token = state.token === "" ? rows.length - 1 : Number(state.token);
      drawBar(bar, session, { ...state, look }, rows, token);
      ask("api/walk", { run: session.run.run, look, token, layer: state.layer, head: state.heads.split(",")[0], values: VALUES })
        .then((steps) => {
          if (mine !== turn) return undefined;
          length = steps.length;
          return draw(stage, pipeline, session, state, steps, token);
        }, (error) => replace(stage, h("p", { class: "error", role: "alert" }, error.message)));
    },
  };
}

let length = 1;
let shownStep = 0;
let wide = false; // all available numbers are shown

/** @param {number} by */
function move(by) {
  change({ step: String(Math.min(Math.max(shownStep + by, 0), length - 1)) }, { replace: true });
}

/**
 * @param {HTMLElement} root @param {Session} session @param {State} state
 * @param {import("./api.js").Token[]} rows @param {number} token
 */
function drawBar(root, session, state, rows, token) {
  const shared = h("div", { class: "row" });
  drawHeadBar(shared, session, state, { looks: false, several: false });
  replace(root, h("label", {}, "Token", h("select", { onchange: (/** @type {Event} */ event) =>
    change({ token: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
    rows.map((each, i) => h("option", { value: i, selected: i === token }, `${i}: ${shown(each.text)}`)))), shared);
}

/**
 * @param {HTMLElement} stage @param {HTMLElement} pipeline @param {Session} session
 * @param {State} state @param {Step[]} steps @param {number} token
 */
async function draw(stage, pipeline, session, state, steps, token) {
  // An address names a step by its number or its name; a step that this layer lacks shows the first one.
  const named = steps.findIndex((each) => each.name === state.step);
  const at = shownStep = named >= 0 ? named : Math.min(Number(state.step) || 0, steps.length - 1);
  const step = steps[at];
  const [section, title, formula, words] = MEANING[step.name] ?? ["", step.name, "", ""];
  const names = await namesOf(session, state, step);
  const look = state.look === "cross" ? "self" : state.look;
  const { rows } = sides(session, look);
  const button = (/** @type {string} */ text, /** @type {number} */ by) => h("button", { disabled: at + by < 0 || at + by >= steps.length, "data-by": by,
    onclick: () => move(by) }, text);
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.by;
  replace(stage,
    h("div", { class: "row" }, h("span", { class: "quiet small" }, `${section}${["Attention", "Feed-forward", "Cross-attention"].includes(section) ? `, layer ${state.layer}` : ""} · step ${at + 1} of ${steps.length}`),
      h("div", { class: "grow" }), button("← back", -1), button("next →", 1)),
    h("h2", { style: { "margin-top": ".6rem" } }, title),
    h("p", {}, words),
    formula && h("div", { class: "formula math", tabindex: "0" }, formulaOf(formula)),
    h("p", { class: "quiet small" }, `Token ${token} “${shown(rows[token].text)}”, part of a tensor of shape `, h("code", {}, axesOf(step.name, step.shape)),
      `. Root mean square ${figure(step.rms)}.`),
    worked(step, steps, (key) => shown(sides(session, step.name.startsWith("cross_") ? "cross" : look).keys[key].text), token),
    names ? table(step, names) : cells(step));
  if (focus !== undefined) /** @type {HTMLElement | null} */ (stage.querySelector(`[data-by="${focus}"]`))?.focus();
  announce(`${title}, step ${at + 1}`);
  let last = "";
  const list = [];
  for (const [i, each] of steps.entries()) {
    const [part, name] = MEANING[each.name] ?? ["", each.name];
    if (part !== last) list.push(h("li", { class: "section" }, part));
    last = part;
    list.push(h("li", {}, h("button", { "aria-current": i === at ? "step" : undefined, onclick: () => change({ step: String(i) }, { replace: true }) },
      name, h("span", { class: "grow" }), h("span", { class: "mono quiet" }, each.shape.length ? axesOf(each.name, each.shape) : ""))));
  }
  replace(pipeline, h("h2", {}, "Steps"), h("ol", { class: "pipeline" }, list));
}

/** The labels of the numbers, if each number belongs to a token. @param {Session} session @param {State} state @param {Step} step */
async function namesOf(session, state, step) {
  const look = state.look === "encoder" ? "encoder" : step.name.startsWith("cross_") ? "cross" : "self";
  if (/(scores|weights)$/.test(step.name)) return step.ids.map((key) => `${key}: ${shown(sides(session, look).keys[key].text)}`);
  if (step.name === "experts") return step.ids.map((expert) => `expert ${expert}`);
  if (step.name !== "logits" && step.name !== "probabilities") return null;
  const texts = await ask("api/texts", { model: session.model, ids: step.ids.join(",") });
  return texts.map((/** @type {import("./api.js").Token} */ each) => shown(each.text));
}

/** @param {Step} step @param {string[]} names */
function table(step, names) {
  const share = /(weights|probabilities|experts)$/.test(step.name);
  const most = share ? Math.max(...step.values, 1) : Math.max(...step.values.map(Math.abs), 1e-9); // a router may scale its weights
  return h("div", { class: "bars", role: "list" }, names.map((name, i) => h("div", { class: "bar-row", role: "listitem" },
    h("span", { class: "name", dir: "auto" }, name),
    track(step.values[i], most, step.values.some((x) => x < 0)),
    h("span", { class: "number", "data-value": i, title: String(step.values[i]) }, figure(step.values[i])))));
}

/** @param {Step} step */
function cells(step) {
  const most = Math.max(...step.values.map(Math.abs), 1e-9);
  const share = step.name === "router";
  const listed = wide ? step.values : step.values.slice(0, SHOWN);
  return h("div", {},
    h("div", { class: "cells" }, listed.map((value, i) => h("span", { "data-value": i, title: String(value),
      style: share ? { background: color(value), color: ink(value) } : { background: signed(value, most) } }, figure(value)))),
    h("div", { class: "row", style: { "margin-top": ".6rem" } },
      h("span", { class: "quiet small" }, `${step.size > listed.length ? `The first ${listed.length} of ${step.size} numbers` : `All ${step.size} numbers`}. Orange: positive; blue: negative.`),
      step.values.length > SHOWN && h("button", { class: "small", onclick: (/** @type {Event} */ event) => {
        wide = !wide;
        /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (event.target).closest(".row")?.parentElement).replaceWith(cells(step));
      } }, wide ? "fewer" : `${step.values.length} of them`)));
}
