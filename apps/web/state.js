// The state of the view is stored in the address, so that a view can be shared and the back button works.

import { captured } from "./api.js";

const DEFAULTS = {
  view: "sentence", model: "0", text: "The animal didn't cross the street because it was too tired.", target: "", ids: "", tids: "", second: "",
  look: "", layer: "0", heads: "0", mean: "", token: "", hide: "", muted: "", direction: "to",
  temperature: "1", k: "0", p: "1", position: "", step: "0", play: "attention", question: "0", other: "", sort: "induction", answer: "", result: "0", context: "", method: "integrated_gradients", sink: "", chapter: "", text2: "", word: "", embedded: "", part: "neurons", depth: "", strength: "2", one: "", two: "",
};
/** @typedef {typeof DEFAULTS} State */
export const defaultText = DEFAULTS.text;

/** @type {Set<(state: State, before: State) => void>} */
const listeners = new Set();
/** @type {State} */
let state = read();

/** @returns {State} */
function read() {
  const hash = captured && !location.hash ? captured.hash : location.hash;
  const parts = new URLSearchParams(hash.replace(/^#\/?/, ""));
  const found = { ...DEFAULTS };
  for (const key of /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))) found[key] = parts.get(key) ?? DEFAULTS[key];
  if (hash === "" || hash === "#") found.view = "home"; // an address without a view, such as that of a saved file, shows the attention
  return found;
}

/** @param {State} of */
export function hashOf(of) {
  const parts = new URLSearchParams();
  for (const key of /** @type {(keyof State)[]} */ (Object.keys(DEFAULTS))) if (of[key] !== DEFAULTS[key]) parts.set(key, of[key]);
  return `#${parts}`;
}

export function current() {
  return state;
}

/**
 * Adds an entry to the browser's history if the view changes, unless `replace` is set, as by sliders and similar controls.
 * @param {Partial<State>} changes @param {{replace?: boolean}} [options]
 */
export function change(changes, options = {}) {
  const before = state;
  state = { ...state, ...changes };
  const hash = hashOf(state);
  if (options.replace || state.view === before.view) history.replaceState(null, "", hash);
  else history.pushState(null, "", hash);
  tell(before);
}

/** @param {State} before */
function tell(before) {
  for (const listener of [...listeners]) listener(state, before);
}

/** @param {(state: State, before: State) => void} listener */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

addEventListener("hashchange", () => {
  const before = state;
  state = read();
  tell(before);
});
addEventListener("popstate", () => {
  const before = state;
  state = read();
  if (hashOf(before) !== hashOf(state)) tell(before);
});

/** The heads that are switched off: kind of attention, layer, head. @param {State} of */
export function mutedOf(of) {
  return of.muted === "" ? [] : of.muted.split(",").map((head) => {
    const [look, layer, number] = head.split(".");
    return [look, Number(layer), Number(number)];
  });
}

/** The request for the run of a state. A text that the model has continued is given by its ids. @param {State} of */
export function wantedRun(of) {
  const ids = of.ids === "" ? {} : { ids: numbers(of.ids) };
  const written = of.tids === "" ? {} : { target_ids: numbers(of.tids) };
  return { model: of.model, text: of.ids === "" ? of.text : "", target: of.tids === "" ? of.target : "", ...ids, ...written, muted: mutedOf(of) };
}

/** The numbers of a list such as "0,3". @param {string} text */
export function numbers(text) {
  return text === "" ? [] : text.split(",").map(Number);
}
