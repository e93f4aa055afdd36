// The curves of a run that learns from preferences or rewards, and its samples before and after.

import { range, smooth, spread } from "./curves.js";
import { figure, h } from "./dom.js";
import { key, plot, room } from "./play_positions.js";

/** @typedef {{metrics?: Record<string, number[][]>, samples?: {step: number, text: string}[]}} Log */

/** @type {[string, string, string][]} names in the log, title, meaning */
const CURVES = [
  ["reward", "Reward", "the mean reward of the answers that the model writes"],
  ["margin", "Margin", "the reward of the chosen answer minus that of the rejected one"],
  ["accuracy", "Accuracy", "the fraction of pairs whose chosen answer has the greater reward"],
  ["chosen_reward", "Reward of chosen answers", ""],
  ["rejected_reward", "Reward of rejected answers", ""],
  ["kl", "Divergence", "an estimate of the divergence from the initial model, per token"],
  ["entropy", "Entropy", "an estimate of the entropy of the next token"],
  ["clip_fraction", "Clipped share", "the fraction of tokens whose ratio is clipped"],
  ["answer_tokens", "Length", "the mean number of tokens of an answer"],
  ["ended", "Ended", "the fraction of answers with an end"],
  ["value_loss", "Loss of values", "of the value head (PPO)"],
];

/** @param {Log} log @param {number} most the last step @returns {Node[]} */
export function alignmentCurves(log, most) {
  const metrics = log.metrics ?? {};
  const third = { end: most, width: room() > 900 ? room() / 3 - 20 : room() > 640 ? room() / 2 - 20 : room() };
  const shown = CURVES.filter(([name]) => metrics[name] || metrics[`held_out_${name}`]);
  if (shown.length === 0) return [];
  return [h("div", { class: "pair", style: { "margin-top": "1rem" } }, shown.map(([name, title, meaning]) => curve(metrics, name, title, meaning, third))), ...samples(log)];
}

/** @param {Record<string, number[][]>} metrics @param {string} name @param {string} title @param {string} meaning @param {{end: number, width: number}} size */
function curve(metrics, name, title, meaning, size) {
  const lines = [];
  if (metrics[name]) lines.push({ name: "training", values: smooth(spread(metrics[name], size.end)) });
  if (metrics[`held_out_${name}`]) lines.push({ name: "held-out prompts or pairs", values: spread(metrics[`held_out_${name}`], size.end) });
  const last = (metrics[name] ?? metrics[`held_out_${name}`]).at(-1)?.[1] ?? NaN;
  return h("div", { "data-curve": name }, h("h3", {}, `${title} `, h("b", { class: "mono" }, figure(last, 4))),
    plot(title, lines, visible(lines.flatMap((line) => line.values)), "step", size), lines.length > 1 && key(lines),
    meaning && h("p", { class: "quiet small" }, meaning));
}

/** The range of the values, with some room if they are all equal. @param {number[]} values @returns {[number, number]} */
function visible(values) {
  const [least, most] = range(values);
  const more = least === most ? Math.max(Math.abs(most) / 2, 0.5) : 0;
  return [least - more, most + more];
}

/** @param {Log} log @returns {Node[]} */
function samples({ samples: all = [] }) {
  if (all.length === 0) return [];
  return [h("h3", { style: { "margin-top": "1rem" } }, all.length > 1 ? "A sample before and after" : "A sample"),
    h("div", { class: "pair" }, all.map((each) => h("div", {}, h("p", { class: "quiet small" }, each.step === 0 ? "before the first step" : `after step ${each.step.toLocaleString("en")}`),
      h("p", { class: "formula sample", tabindex: "0", role: "region", "aria-label": `Sample of step ${each.step}` }, each.text))))];
}
