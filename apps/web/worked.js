// A step of the computation of a token as arithmetic: its inputs and outputs, number by number.

import { signed } from "./colors.js";
import { figure, h, shown } from "./dom.js";

/** @typedef {import("./follow.js").Step} Step */

const COLUMNS = 8; // numbers of each vector, for verification by hand
const TERMS = 4; // terms of a sum over tokens

/**
 * @param {Step} step @param {Step[]} steps all steps @param {(key: number) => string} nameOf the text of a key
 * @param {number} token
 * @returns {HTMLElement | null}
 */
export function worked(step, steps, nameOf, token) {
  /** @param {...string} names */
  const latest = (...names) => names.map((name) => steps.find((each) => each.name === name)).find(Boolean);
  const before = stream(step.name, latest);
  switch (step.name) {
    case "embedding": return line(`id ${step.ids[0]} → row ${step.ids[0].toLocaleString("en")} of ${step.shape[0].toLocaleString("en")}`);
    case "position": return lines([["x", latest("embedding")], ["+ S", latest("type")], ["+ P", step], ["= x", sum([latest("embedding"), latest("type"), step])]]);
    case "attention_norm":
    case "recurrence_norm":
    case "cross_norm":
    case "ffn_norm": return lines([["x", before], ["y", step]]);
    case "final_norm": return lines([["x", latest("final_stream")], ["y", step]]);
    case "scores": return ownScore(step, latest("query"), latest("key"), token);
    case "weights":
    case "cross_weights": return shares(latest(step.name.replace("weights", "scores")), step, nameOf);
    case "sum": return line(mixture(latest("weights"), nameOf));
    case "cross_sum": return line(mixture(latest("cross_weights"), nameOf));
    case "attention_stream": return lines([["x", before], ["+ o", latest("attention_output_norm", "attention_output")], ["= x", step]]);
    case "recurrence_stream": return lines([["x", before], ["+ o", latest("recurrence_output_norm", "recurrence_output")], ["= x", step]]);
    case "cross_stream": return lines([["x", before], ["+ o", latest("cross_output_norm", "cross_output")], ["= x", step]]);
    case "ffn_stream": return lines([["x", before], ["+ o", latest("attention_stream") ? undefined : latest("attention_output")],
      ["+ o", latest("ffn_output_norm", "ffn_output")], ["= x", step]]);
    case "ffn_activation": return lines([["u", latest("ffn_up")], ["f(u)", step]]);
    case "ffn_product": return lines([["g", latest("ffn_gate")], ["· u", latest("ffn_up")], ["= h", step]]);
    default: return null;
  }
}

/** The residual stream that a step reads. @param {string} name @param {(...names: string[]) => Step | undefined} latest */
function stream(name, latest) {
  if (name.startsWith("attention") || name.startsWith("recurrence")) return latest("stream");
  if (name.startsWith("cross")) return latest("attention_stream", "recurrence_stream");
  return latest("cross_stream", "attention_stream", "recurrence_stream", "stream");
}

/** @param {(Step | undefined)[]} parts @returns {{values: number[]}} */
function sum(parts) {
  const there = parts.filter((part) => part !== undefined);
  return { values: there[0].values.map((_, i) => there.reduce((total, part) => total + part.values[i], 0)) };
}

/** @param {string} text */
function line(text) {
  return h("div", { class: "formula", tabindex: "0" }, text);
}

/** @param {[string, {values: number[]} | undefined][]} named */
function lines(named) {
  const there = /** @type {[string, {values: number[]}][]} */ (named.filter(([, step]) => step));
  const most = Math.max(...there.flatMap(([, step]) => step.values.slice(0, COLUMNS).map(Math.abs)), 1e-9);
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Inputs and outputs" }, h("table", { class: "worked" }, h("tbody", {}, there.map(([name, step]) =>
    h("tr", { class: name.startsWith("=") ? "total" : undefined }, h("th", { scope: "row" }, name),
      step.values.slice(0, COLUMNS).map((value) => h("td", { style: { background: signed(value, most) } }, figure(value))), h("td", {}, "…"))))));
}

/** The score of the token with its own key: those of others are not available. @param {Step} scores @param {Step | undefined} query @param {Step | undefined} key @param {number} token */
function ownScore(scores, query, key, token) {
  const found = scores.values[scores.ids.indexOf(token)];
  if (!query || !key || found === undefined || query.values.length < query.size) return null;
  const product = query.values.reduce((total, x, i) => total + x * key.values[i], 0);
  const width = query.size;
  // Only the result is shown for models with a different scale, a softcap or a bias by distance.
  const scaled = Math.abs(product / Math.sqrt(width) - found) < 1e-4 * Math.max(1, Math.abs(found));
  return line(`with its own key:  q · k = ${figure(product)}${scaled ? `,  divided by √${width} = ${figure(Math.sqrt(width))}:  ` : "  →  "}${figure(found)}`);
}

/** @param {Step | undefined} scores @param {Step} weights @param {(key: number) => string} nameOf */
function shares(scores, weights, nameOf) {
  if (!scores) return null;
  const best = weights.values.indexOf(Math.max(...weights.values));
  const most = Math.max(...scores.values);
  // Keys with small weights are missing, so the sum is computed from the weight itself.
  const total = Math.exp(scores.values[best] - most) / weights.values[best];
  return line(`“${nameOf(weights.ids[best])}”:  exp(${figure(scores.values[best])} − ${figure(most)}) / ${figure(total)} = ${figure(weights.values[best])}`);
}

/** @param {Step | undefined} weights @param {(key: number) => string} nameOf */
function mixture(weights, nameOf) {
  if (!weights) return "";
  const order = [...weights.values.keys()].sort((a, b) => weights.values[b] - weights.values[a]).slice(0, TERMS);
  return `z = ${order.map((i) => `${figure(weights.values[i], 3)} v(${shown(nameOf(weights.ids[i]))})`).join(" + ")}${weights.values.length > TERMS ? " + …" : ""}`;
}
