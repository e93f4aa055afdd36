// The attention of a selected token in both directions, the entire map, and thumbnails of all heads.

import { ask, askMap, foresee } from "./api.js";
import { drawArcs } from "./arcs.js";
import { color, headColor, ink, tint } from "./colors.js";
import { announce, figure, h, onScreen, oneStop, put, replace, shown } from "./dom.js";
import { drawHeadBar } from "./headbar.js";
import { Heatmap } from "./heatmap.js";
import { sides } from "./model.js";
import { drawPair } from "./pair.js";
import { drawThumbnails } from "./thumbnails.js";
import { suggestions } from "./suggestions.js";
import { change, numbers } from "./state.js";

/** @typedef {import("./state.js").State} State */
/** @typedef {import("./main.js").Session} Session */
/** @typedef {import("./api.js").Token} Token */

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function sentenceView(root) {
  const bar = h("div", { class: "row panel" });
  const words = h("div", { class: "panel" });
  const arcs = h("div", { class: "arcs", tabindex: "0", role: "group", "aria-label": "Arcs" });
  const list = h("div", { class: "panel" });
  const best = h("p", { class: "small", role: "status", hidden: true });
  const mapPlace = h("div", { class: "panel" }, h("h2", {}, "Attention map"),
    h("p", { class: "quiet small" }, "Rows are queries, columns are keys. Click the name of a row for its numbers. Drag to move, double-click to zoom in."));
  const thumbs = h("div", { class: "panel" });
  const experts = h("div", { class: "panel", hidden: true });
  const chips = h("div", { class: "row panel chips", role: "group", "aria-label": "Try this" });
  const two = h("section", { class: "panel", hidden: true, "aria-label": "Two words" });
  root.append(chips, bar, words, h("div", { class: "columns" }, mapPlace, list), two, thumbs, experts);
  replace(list, h("p", { class: "quiet" }, "Computing …"));
  const map = new Heatmap(mapPlace, { onRow: (row) => change({ token: String(row), direction: "to" }, { replace: true }) });
  let turn = 0;
  return {
    close: () => map.close(),
    update(session, state, before) {
      if (!session) return;
      const mine = ++turn;
      const none = session.shape.firstAttention(state.look) < 0;
      for (const panel of [chips, bar, words, mapPlace, thumbs]) panel.hidden = none;
      if (none) {
        replace(list, h("p", { class: "quiet" }, "All layers of this model are recurrent: they pass a state from token to token, and no token attends to another. “Follow a token” shows this state."));
        return;
      }
      drawHeadBar(bar, session, state, {});
      if (!chips.childElementCount || before?.model !== state.model) void suggestions(chips, session, state);
      // The map is shown first, then the words, then the overview.
      const mapped = showMap(map, session, state);
      const drawn = Promise.all([lookUp(session, state), mapped]).then(([found]) => {
        if (mine !== turn) return;
        drawWords(words, arcs, session, state, found);
        arcs.before(best);
        drawList(list, session, state, found);
        drawPair(two, session, state, sides(session, state.look), best, () => mine === turn).catch((error) => { if (mine === turn) replace(two, h("p", { class: "error", role: "alert" }, error.message)); });
      }, (error) => { if (mine === turn) replace(list, h("p", { class: "error", role: "alert" }, error.message)); });
      const free = drawn.then(onScreen);
      void drawThumbnails(thumbs, session, state, before, free);
      void free.then(() => {
        if (mine !== turn) return;
        void drawExperts(experts, session, state);
        foreseeHeads(session, state);
      });
    },
  };
}

/**
 * @typedef {object} Found
 * @property {number[]} heads the selected heads, or [-1] for their average
 * @property {Float32Array[]} weights by head, for the tokens of the other side
 * @property {Token[]} others
 * @property {number[]} first the weights of the first token, if it is left out
 */

/** A row without the first token, on which many heads rest; the other weights then add up to 1. @param {Float32Array} row @param {number} first */
function withoutFirst(row, first) {
  return row.map((weight, i) => (i === 0 || first >= 1 ? 0 : weight / (1 - first)));
}
/** @param {Session} session @param {State} state @returns {Promise<Found | null>} */
async function lookUp(session, state) {
  if (state.token === "") return null;
  const token = Number(state.token);
  const { rows, keys } = sides(session, state.look);
  const to = state.direction === "to";
  const size = to ? rows.length : keys.length;
  if (token >= size) return null;
  const span = `${token}-${token + 1}`;
  const map = await askMap({ run: session.run.run, look: state.look, layer: Number(state.layer), heads: state.heads, mean: state.mean ? 1 : undefined,
    ...(to ? { q: span } : { k: span }) }, rows.length * keys.length);
  const others = to ? keys : rows;
  const heads = state.mean ? [-1] : numbers(state.heads);
  const weights = heads.map((_, n) => map.weights.slice(n * others.length, (n + 1) * others.length));
  const first = state.sink && to ? weights.map((row) => row[0]) : [];
  return { heads, others, first, weights: first.length ? weights.map((row, n) => withoutFirst(row, first[n])) : weights };
}

/** @param {Heatmap} map @param {Session} session @param {State} state */
function showMap(map, session, state) {
  const { rows, keys } = sides(session, state.look);
  const { run } = session.run;
  const layer = Number(state.layer);
  const query = { run, look: state.look, layer, heads: state.heads, mean: state.mean ? 1 : undefined };
  return map.show({
    name: JSON.stringify({ ...query, sink: state.sink }), rows, keys,
    rowSpan: span(rows, Boolean(state.hide)), keySpan: state.sink ? [Math.max(1, span(keys, Boolean(state.hide))[0]), span(keys, Boolean(state.hide))[1]] : span(keys, Boolean(state.hide)),
    load: async (q, k, step) => {
      const map = await askMap({ ...query, q, k, step: step === 1 ? undefined : step }, rows.length * keys.length);
      return state.sink && step === 1 ? rescaled(map, await askMap({ ...query, q, k: "0-1" }, rows.length * keys.length)) : map;
    },
    sees: session.shape.mask(state.look, layer), heads: state.mean ? [-1] : numbers(state.heads),
  }, state.token !== "" && state.direction === "to" ? Number(state.token) : -1);
}

/** The weights of a map as fractions of what the first token leaves. @param {import("./api.js").WeightMap} map @param {import("./api.js").WeightMap} first */
function rescaled(map, first) {
  return { ...map, weights: map.weights.map((weight, i) => weight / Math.max(1 - first.weights[Math.floor(i / map.keys)], 1e-9)) };
}

/** Prefetches the other heads of the layer, so that switching heads is immediate. @param {Session} session @param {State} state */
function foreseeHeads(session, state) {
  const { rows, keys } = sides(session, state.look);
  const { heads } = session.shape.stack(state.look).attention;
  const queries = Array.from({ length: heads }, (_, head) => ({ run: session.run.run, look: state.look, layer: Number(state.layer), heads: String(head) }));
  foresee(queries, rows.length * keys.length).catch(() => {}); // a later request reports the error
}

/** The range without the special tokens at both ends. @param {Token[]} tokens @param {boolean} hide @returns {[number, number]} */
function span(tokens, hide) {
  let first = 0;
  let end = tokens.length;
  while (hide && first < end - 1 && tokens[first].special) ++first;
  while (hide && end > first + 1 && tokens[end - 1].special) --end;
  return [first, end];
}

/**
 * @param {HTMLElement} root @param {HTMLElement} arcs @param {Session} session
 * @param {State} state @param {Found | null} found
 */
function drawWords(root, arcs, session, state, found) {
  const { rows, keys } = sides(session, state.look);
  const to = state.direction === "to";
  const chosen = state.token === "" ? -1 : Number(state.token);
  const strongest = found ? strongestOf(found) : null;
  const across = state.look === "cross";
  const choosing = to || !across ? rows : keys;
  const lines = [{ tokens: choosing, chosen, weights: across ? null : strongest, clickable: true }];
  if (across && found) lines.push({ tokens: found.others, chosen: -1, weights: strongest, clickable: false });
  const name = [session.run.run, state.look, state.direction, state.hide, state.sink, lines.length].join("/");
  if (root.dataset.name !== name) {
    root.dataset.name = name;
    buildWords(root, arcs, state, lines);
  }
  root.querySelectorAll(".sentence").forEach((line, n, all) => paintTokens(line, lines[n], n === all.length - 1 && state.second !== "" ? Number(state.second) : -1));
  const choice = /** @type {HTMLSelectElement | null} */ (root.querySelector("[data-control=second]"));
  if (choice && choice.value !== state.second) choice.value = state.second;
  drawArcs(arcs, { rows, keys, state, found });
}

/** @typedef {{tokens: Token[], chosen: number, weights: Float32Array | null, clickable: boolean}} Line */

/** @param {HTMLElement} root @param {HTMLElement} arcs @param {State} state @param {Line[]} lines */
function buildWords(root, arcs, state, lines) {
  const { control, token } = /** @type {HTMLElement | null} */ (root.contains(document.activeElement) ? document.activeElement : null)?.dataset ?? {};
  const to = state.direction === "to";
  const across = state.look === "cross";
  replace(root,
    h("div", { class: "row" }, h("h2", {}, "Select a word"), h("div", { class: "grow" }),
      h("div", { class: "segments", role: "group", "aria-label": "Direction" },
        direction("to", "attends to", state), direction("from", "attended by", state)),
      h("label", {}, h("input", { type: "checkbox", checked: state.hide !== "", "data-control": "hide", onchange: (/** @type {Event} */ event) =>
        change({ hide: /** @type {HTMLInputElement} */ (event.target).checked ? "1" : "" }, { replace: true }) }), "hide special tokens"),
      h("label", { title: "Many heads put what they do not need on the first token; the others are shown as fractions of the rest" }, h("input", { type: "checkbox", checked: state.sink !== "", "data-control": "sink", onchange: (/** @type {Event} */ event) =>
        change({ sink: /** @type {HTMLInputElement} */ (event.target).checked ? "1" : "" }, { replace: true }) }), "leave the first token out")),
    lines.map((line, n) => [
      across && h("p", { class: "quiet small" }, (n === 0) === to ? `Target${n === 0 ? " (queries)" : ""}:` : `Source${n === 0 ? " (keys)" : ""}:`),
      sentence(line, state)]).flat(),
    secondWord(state, lines),
    arcs);
  const again = control !== undefined ? `[data-control="${control}"]` : token !== undefined ? `button[data-token="${token}"]` : "";
  if (again) /** @type {HTMLElement | null} */ (root.querySelector(again))?.focus({ preventScroll: true });
}

/** Selects the word with which the first one is compared. @param {State} state @param {Line[]} lines */
function secondWord(state, lines) {
  const others = lines[lines.length - 1].tokens;
  return h("label", { class: "small second" }, "Second word (or Shift-click one): ", h("select", { "data-control": "second", onchange: (/** @type {Event} */ event) => change({ second: /** @type {HTMLSelectElement} */ (event.target).value }, { replace: true }) },
    h("option", { value: "" }, "none"), others.slice(0, 600).map((token, i) => h("option", { value: i, selected: String(i) === state.second }, `${i}: ${shown(token.text)}`))));
}

/** @param {string} value @param {string} title @param {State} state */
function direction(value, title, state) {
  // In cross-attention, the other direction starts with the other text.
  return h("button", { "aria-pressed": String(state.direction === value), "data-control": value,
    onclick: () => change({ direction: value, ...(state.look === "cross" && state.direction !== value ? { token: "" } : {}) }, { replace: true }) }, title);
}

/** @param {Found} found */
function strongestOf(found) {
  const most = new Float32Array(found.others.length);
  for (const weights of found.weights) weights.forEach((w, i) => { most[i] = Math.max(most[i], w); });
  return most;
}

/** @param {Line} line @param {State} state */
function sentence({ tokens, clickable }, state) {
  return oneStop(h("div", { class: "sentence", dir: "auto", role: "group", "aria-label": clickable ? "Selectable tokens" : "Tokens of the other text" }, tokens.map((token, i) => {
    if (state.hide && token.special) return null;
    const text = token.special ? token.text : token.text.replace(/\n/g, "↵\n");
    return h("button", {
      class: token.special ? "special" : undefined, "data-token": i,
      onclick: (/** @type {MouseEvent} */ event) => {
        if (event.shiftKey) {
          change({ second: String(i) }, { replace: true });
          return;
        }
        change({ token: String(i), ...(clickable ? {} : { direction: state.direction === "to" ? "from" : "to" }) }, { replace: true });
        announce(`${token.text} selected`);
      },
    }, text === "" ? "∅" : text);
  })));
}

/** Updates the tokens in place when the head changes, since a text may have thousands. @param {Element} root @param {Line} line @param {number} second */
function paintTokens(root, { tokens, chosen, weights, clickable }, second) {
  for (const button of root.querySelectorAll("button")) {
    const i = Number(button.dataset.token);
    const weight = weights ? weights[i] : -1;
    const share = Math.sqrt(Math.max(weight, 0)); // the square root, as in the map
    const background = share > 0.02 ? tint("accent", share) : "";
    if (button.style.background !== background) button.style.background = background;
    put(button, "title", weight >= 0 ? `${figure(weight)} · token ${tokens[i].id}` : `token ${tokens[i].id}`);
    if (clickable) put(button, "aria-pressed", String(i === chosen));
    button.classList.toggle("second", second === i);
    if (chosen >= 0) put(button, "tabindex", i === chosen ? "0" : "-1");
  }
}

/**
 * @param {HTMLElement} root @param {Session} session @param {State} state
 * @param {Found | null} found
 */
function drawList(root, session, state, found) {
  if (!found) {
    replace(root, h("h2", {}, "Weights"), h("p", { class: "quiet" }, "Select a word above or a row of the map."));
    return;
  }
  const { rows, keys } = sides(session, state.look);
  const to = state.direction === "to";
  const token = (to ? rows : keys)[Number(state.token)];
  const strongest = strongestOf(found);
  const order = [...strongest.keys()].filter((i) => strongest[i] > 0 && !(state.hide && found.others[i].special))
    .sort((a, b) => strongest[b] - strongest[a] || a - b);
  const hidden = found.weights.map((weights) => weights.reduce((sum, w, i) => sum + (state.hide && found.others[i].special ? w : 0), 0));
  const open = root.dataset.all === "1";
  const listed = open ? order : order.slice(0, 14);
  replace(root,
    h("h2", {}, `“${shown(token.text)}” ${to ? "attends to" : "is attended by"}`),
    h("p", { class: "quiet small" }, `token ${state.token}, id ${token.id}; ${heads(found)}${to ? ". A row adds up to 1." : ". A column may have any sum."}`),
    h("div", { class: "bars", role: "list", "aria-label": "Weights in descending order" }, listed.map((i) => h("div", { class: "bar-row", role: "listitem" },
      h("span", { class: "name", dir: "auto", title: `token ${i}` }, shown(found.others[i].text)),
      h("span", { class: "track", "aria-hidden": "true" }, found.weights.map((weights, n) =>
        h("span", { class: "fill", style: { width: `${100 * weights[i]}%`, background: found.heads.length > 1 ? headColor(n) : "var(--accent)" } }))),
      h("span", { class: "number", "data-weight": i, title: found.weights.map((w) => String(w[i])).join("\n") },
        found.weights.length === 1 ? figure(found.weights[0][i]) : figure(strongest[i]))))),
    found.first.length > 0 && h("p", { class: "quiet small" }, `The first token is left out. Its weight was ${found.first.map((x) => figure(x)).join(", ")}.`),
    state.hide && to && h("p", { class: "quiet small" }, `Weight of the hidden tokens: ${hidden.map((x) => figure(x)).join(", ")}.`),
    order.length > 14 && h("button", { onclick: () => {
      root.dataset.all = open ? "" : "1";
      drawList(root, session, state, found);
    } }, open ? "Show fewer" : `Show all ${order.length}`));
}

/** @param {Found} found */
function heads(found) {
  if (found.heads[0] === -1) return "the average of the selected heads";
  return found.heads.length === 1 ? `head ${found.heads[0]}` : `heads ${found.heads.join(", ")}, by colour; the number is the largest weight`;
}

/** @param {HTMLElement} root @param {Session} session @param {State} state */
async function drawExperts(root, session, state) {
  const { experts } = session.shape.stack(state.look).ffn;
  root.hidden = experts.count === 0;
  if (root.hidden) return;
  const look = state.look === "cross" ? "self" : state.look;
  /** @type {[number, number][][]} */
  const routing = await ask("api/routing", { run: session.run.run, look, layer: state.layer });
  const tokens = look === "encoder" ? session.run.source : session.run.tokens;
  if (routing.length === 0) {
    replace(root, h("h2", {}, "Experts"), h("p", { class: "quiet" }, "This layer has one feed-forward network for all tokens."));
    return;
  }
  replace(root, h("h2", {}, "Experts"),
    h("p", { class: "quiet small" }, `In layer ${state.layer}, a router sends each token to ${experts.chosen} of ${experts.count} feed-forward networks${experts.shared > 0 ? `; ${experts.shared} more process every token` : ""}.`),
    h("div", { class: "wide" }, h("table", { class: "scores" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "token"), Array.from({ length: experts.count }, (_, e) => h("th", { scope: "col", class: "number" }, e)))),
      h("tbody", {}, routing.slice(0, 400).map((chosen, t) => h("tr", {},
        h("th", { scope: "row" }, shown(tokens[t].text)),
        Array.from({ length: experts.count }, (_, e) => {
          const weight = chosen.find(([expert]) => expert === e)?.[1];
          return weight === undefined ? h("td", {}) : h("td", { style: { background: color(weight), color: ink(weight) } }, figure(weight, 2));
        })))))));
}
