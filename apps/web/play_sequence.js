// Recurrence beside attention, look-up in a table beside attention, and the order of words.

import { figure, h, replace, svg, slider } from "./dom.js";
import { attention, dot, layerCosts, randomOf, softmax, wave } from "./math.js";
import { key, plot, room } from "./play_positions.js";

/** @param {HTMLElement} root */
export function recurrencePlay(root) {
  const here = { n: 50, d: 6 };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Recurrence and attention"),
    h("p", {}, "A recurrent layer passes a state from word to word; in attention every word reads from every word. Which is cheaper depends on the length of the text n and the width d."),
    h("div", { class: "controls", style: { "max-width": "34rem" } }, slider("Tokens, n", { least: 2, most: 4096, step: 1, value: 50 }, (x) => { here.n = x; draw(); }).row,
      slider("Width, d", { least: 4, most: 12, step: 1, value: 6, word: (x) => String(2 ** x) }, (x) => { here.d = x; draw(); }).row), out));
  const draw = () => {
    const [n, d] = [here.n, 2 ** here.d];
    const { attention: a, recurrence: r } = layerCosts(n, d);
    const number = (/** @type {number} */ x) => x.toLocaleString("en");
    const row = (/** @type {string} */ name, /** @type {number} */ one, /** @type {number} */ other, /** @type {string} */ id) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number", "data-cost": `recurrence.${id}` }, number(one)), h("td", { class: "number", "data-cost": `attention.${id}` }, number(other)));
    const end = 2 * Math.max(n, d);
    const lengths = Array.from({ length: 101 }, (_, i) => (i / 100) * end);
    const lines = [{ name: "recurrence: n d²", values: lengths.map((x) => layerCosts(x, d).recurrence.multiplications) }, { name: "attention: n² d", values: lengths.map((x) => layerCosts(x, d).attention.multiplications) }];
    replace(out, h("table", { style: { "max-width": "40rem" } }, h("thead", {}, h("tr", {}, h("td", {}), h("th", { scope: "col", class: "number" }, "recurrence"), h("th", { scope: "col", class: "number" }, "attention"))),
      h("tbody", {}, row("steps between the first and the last word", r.path, a.path, "path"), row("steps that wait for one another", r.steps, a.steps, "steps"), row("multiplications that mix the words", r.multiplications, a.multiplications, "multiplications"))),
    relay(Math.min(n, 12)),
    plot("Multiplications by length", lines, [0, Math.max(...lines.flatMap((line) => line.values))], "tokens, n", { end, width: Math.min(room(), 900) }), key(lines),
    h("p", {}, n === d ? "At n = d both cost the same." : n < d ? `Up to n = d = ${number(d)} tokens, attention needs fewer multiplications.` : `Beyond n = d = ${number(d)} tokens, recurrence needs fewer multiplications, but its ${number(n)} steps must wait for one another.`));
  };
  draw();
}

/** The relay of the states above, the direct wires below. @param {number} n */
function relay(n) {
  const x = (/** @type {number} */ i) => 30 + i * 50;
  const dots = (/** @type {number} */ y) => Array.from({ length: n }, (_, i) => svg("circle", { cx: x(i), cy: y, r: 7, fill: "var(--accent)" }));
  return svg("svg", { class: "plot", viewBox: `0 0 ${Math.max(n * 50 + 20, 300)} 130`, role: "img", "aria-label": "The state is relayed from word to word; attention connects the last word with each one directly", style: { "max-width": "44rem" } },
    svg("text", { x: 10, y: 14 }, "recurrence: a relay"), Array.from({ length: n - 1 }, (_, i) => svg("line", { x1: x(i) + 8, x2: x(i + 1) - 8, y1: 32, y2: 32, stroke: "var(--quiet)", "stroke-width": 2 })), dots(32),
    svg("text", { x: 10, y: 66 }, "attention: a wire from each word"), Array.from({ length: n - 1 }, (_, i) => svg("path", { fill: "none", stroke: "var(--quiet)", "stroke-width": 1.5, d: `M${x(i)},115Q${(x(i) + x(n - 1)) / 2},${115 - Math.min(40, (n - 1 - i) * 12)} ${x(n - 1)},115` })), dots(115));
}

/** @param {HTMLElement} root */
export function lookupPlay(root) {
  const entries = [["north", 90, 10], ["east", 0, 20], ["south", -90, 30], ["west", 180, 40]];
  const here = { angle: 30, sharpness: 2 };
  const out = h("div");
  root.append(h("section", { class: "panel" }, h("h2", {}, "Look-up, hard and soft"),
    h("p", {}, "A dictionary returns the value of the one key that equals the query. Attention compares the query with every key and returns a mixture of all values, weighted by how well they match. Turn the query: the hard result jumps, the soft one glides, so that it has a gradient and can be learned."),
    h("div", { class: "controls", style: { "max-width": "34rem" } }, slider("Direction of the query", { least: -180, most: 180, step: 1, value: 30, word: (x) => `${x}°` }, (x) => { here.angle = x; draw(); }).row,
      slider("Sharpness (1 / temperature)", { least: 0, most: 20, step: 0.5, value: 2 }, (x) => { here.sharpness = x; draw(); }).row), out));
  const vector = (/** @type {number} */ degrees) => [Math.cos(degrees * Math.PI / 180), Math.sin(degrees * Math.PI / 180)];
  const look = (/** @type {number} */ angle) => {
    const matches = entries.map(([, degrees]) => dot(vector(angle), vector(Number(degrees))));
    const weights = softmax(matches.map((x) => x * here.sharpness));
    const best = matches.indexOf(Math.max(...matches));
    return { matches, weights, hard: Number(entries[best][2]), best, soft: weights.reduce((sum, weight, i) => sum + weight * Number(entries[i][2]), 0) };
  };
  const draw = () => {
    const { matches, weights, hard, best, soft } = look(here.angle);
    const lines = [{ name: "hard", values: Array.from({ length: 361 }, (_, i) => look(i - 180).hard) }, { name: "soft", values: Array.from({ length: 361 }, (_, i) => look(i - 180).soft) }];
    replace(out, h("table", { style: { "max-width": "40rem" } }, h("thead", {}, h("tr", {}, ["key", "value", "query · key", "hard weight", "soft weight"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, entries.map(([name, , value], i) => h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, value), h("td", { class: "number" }, figure(matches[i])), h("td", { class: "number" }, i === best ? 1 : 0), h("td", { class: "number", title: String(weights[i]) }, figure(weights[i])))))),
    h("p", {}, "Hard result ", h("b", { class: "mono", id: "hard" }, hard), ", soft result ", h("b", { class: "mono", id: "soft", title: String(soft) }, figure(soft)), "."),
    plot("Result by the direction of the query, from −180 to 180 degrees", lines, [10, 40], "degrees from −180", { end: 360, width: Math.min(room(), 900) }), key(lines));
  };
  draw();
}

const WIDTH = 8;
/** @param {HTMLElement} root */
export function orderPlay(root) {
  const here = { one: "dog bites man", other: "man bites dog" };
  const out = h("div");
  const field = (/** @type {"one" | "other"} */ name, /** @type {string} */ label) => h("label", {}, label, h("input", { type: "text", value: here[name], maxlength: "60", oninput: (/** @type {Event} */ event) => { here[name] = /** @type {HTMLInputElement} */ (event.target).value; draw(); } }));
  root.append(h("section", { class: "panel" }, h("h2", {}, "The order of words"),
    h("p", {}, "Self-attention over the same words in another order gives each word the same result: attention is blind to order. With positions added to the vectors, the results differ."),
    h("div", { class: "row" }, field("one", "One order"), field("other", "Another order")), out));
  const words = (/** @type {string} */ text) => text.trim().split(/\s+/).filter(Boolean).slice(0, 8);
  /** @param {string[]} all @param {boolean} positions */
  const results = (all, positions) => {
    const x = all.map((word, t) => randomOf(`word ${word}`, WIDTH).map((value, i) => value + (positions ? wave(t, i, WIDTH) : 0)));
    return attention(x, x, x, Math.sqrt(WIDTH)).output;
  };
  const draw = () => {
    const [one, other] = [words(here.one), words(here.other)];
    const same = [...one].sort().join(" ") === [...other].sort().join(" ") && one.length > 0;
    if (!same) {
      replace(out, h("p", {}, "Type the same words twice, in any order."));
      return;
    }
    const part = (/** @type {boolean} */ positions) => {
      const [a, b] = [results(one, positions), results(other, positions)];
      const apart = one.map((word, t) => Math.max(...a[t].map((x, i) => Math.abs(x - b[other.indexOf(word)][i]))));
      return h("div", {}, h("h3", {}, positions ? "With positions" : "Without positions"),
        h("table", {}, h("thead", {}, h("tr", {}, ["word", "in one order", "in the other", "difference"].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", {}, one.map((word, t) => h("tr", {}, h("th", { scope: "row" }, word), [a[t], b[other.indexOf(word)]].map((row) => h("td", { class: "mono" }, `${row.slice(0, 3).map((x) => figure(x, 2)).join(", ")}, …`)),
            h("td", { class: "number", "data-apart": positions ? "with" : "without", title: String(apart[t]) }, figure(apart[t])))))));
    };
    replace(out, h("div", { class: "pair", style: { "margin-top": "1rem" } }, part(false), part(true)));
  };
  draw();
}
