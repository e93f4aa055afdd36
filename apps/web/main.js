// The frame of the page: it selects model, text and view, and updates the view when they change.

import { ask, captured, forgetRuns, startRun } from "./api.js";
import { announce, h, replace } from "./dom.js";
import { ModelShape, sides } from "./model.js";
import { change, current, defaultText, hashOf, listen, wantedRun } from "./state.js";
import { savePanel } from "./export.js";
import { linksBetween, openingPlace, opensAtLink } from "./suggestions.js";
import { tokenOf } from "./tagged.js";

/** @typedef {import("./state.js").State} State */
/**
 * The model, the run and the shape that a view shows.
 * @typedef {object} Session
 * @property {import("./api.js").Run} run
 * @property {ModelShape} shape
 * @property {string} model
 */
/**
 * @typedef {object} View
 * @property {(session: Session | null, state: State, before: State | null) => void} update
 * @property {() => void} [close]
 */
/** @typedef {{model: string, name: string, training?: boolean, ready?: boolean, step?: number}} Known a model that can be inspected; not ready: a training run that has not saved a model yet */
/** @typedef {{name: string, title: string, alone?: boolean, load: () => Promise<(root: HTMLElement) => View>}} ViewKind `alone`: needs no run; the module is loaded when the view is first shown */

/** @type {ViewKind[]} */
const views = [
  { name: "home", title: "The model", load: () => import("./overview.js").then((m) => m.overviewView) },
  { name: "sentence", title: "Attention", load: () => import("./sentence.js").then((m) => m.sentenceView) },
  { name: "follow", title: "Follow a token", load: () => import("./follow.js").then((m) => m.followView) },
  { name: "say", title: "Predictions", load: () => import("./say.js").then((m) => m.sayView) },
  { name: "explain", title: "Contributions", load: () => import("./explain.js").then((m) => m.explainView) },
  { name: "heads", title: "Heads", load: () => import("./heads.js").then((m) => m.headsView) },
  { name: "circuits", title: "Inside", load: () => import("./circuits.js").then((m) => m.circuitsView) },
  { name: "twice", title: "Two texts", load: () => import("./twice.js").then((m) => m.twiceView) },
  { name: "compare", title: "Side by side", alone: true, load: () => import("./compare.js").then((m) => m.compareView) },
  { name: "learn", title: "Training", alone: true, load: () => import("./learn.js").then((m) => m.learnView) },
  { name: "play", title: "Playgrounds", alone: true, load: () => import("./play.js").then((m) => m.playView) },
  { name: "quiz", title: "Quiz", alone: true, load: () => import("./quiz.js").then((m) => m.quizView) },
  { name: "course", title: "Course", alone: true, load: () => import("./course.js").then((m) => m.courseView) },
];

const OTHERS = 2000; // milliseconds until the other views are loaded, which then work without the server

const top = /** @type {HTMLElement} */ (document.getElementById("top"));
const content = /** @type {HTMLElement} */ (document.getElementById("content"));

/** @type {Known[]} */
let models = [];
/** @type {View | null} */
let view = null;
let shownView = "";
/** @type {Session | null} */
let session = null;
let sessionName = "";
let asked = 0;

/** @param {State} state */
async function openSession(state) {
  const wanted = wantedRun(state);
  const name = JSON.stringify(wanted);
  if (name === sessionName && session) return session;
  const mine = ++asked;
  const [spec, run] = await Promise.all([ask("api/spec", { model: state.model }), startRun(wanted)]);
  if (mine !== asked) return null; // a newer request is running
  sessionName = name;
  session = { run, shape: new ModelShape(spec), model: state.model };
  return session;
}

/** Corrects values of the address that this model does not have. @param {State} state @param {Session} of */
function fitted(state, of) {
  const look = of.shape.looks().includes(/** @type {any} */ (state.look)) ? state.look : of.shape.both ? "cross" : "self";
  const stack = of.shape.stack(look);
  const chosen = Math.min(Math.max(Number(state.layer) || 0, 0), stack.layers - 1);
  const layers = Array.from({ length: stack.layers }, (_, i) => i).filter((i) => state.view === "follow" || of.shape.attends(look, i));
  const layer = String(layers.find((i) => i >= chosen) ?? layers.at(-1) ?? chosen);
  const heads = state.heads.split(",").filter((x) => x !== "" && Number(x) < stack.attention.heads).join(",") || "0";
  const { rows, keys } = sides(of, look);
  const [choosing, others] = look === "cross" && state.direction === "from" ? [keys, rows] : [rows, keys];
  const token = tokenOf(choosing, state.token) || String(tellingToken(choosing));
  return { look, layer, heads, token, second: tokenOf(others, state.second) };
}

const PATIENCE = 350; // milliseconds to look for a telling head before the first one is shown

/** The head to begin with, if the address has none: the strongest link. @param {State} state @param {Session} of */
async function opening(state, of) {
  if (state.view !== "sentence" || state.layer !== "0" || state.heads !== "0" || state.mean) return {};
  const { look, token, second } = fitted(state, of);
  if (/\D/.test(state.token) && second) {
    const [{ layer, head }] = await linksBetween(of, look, Number(token), Number(second));
    return { layer: String(layer), heads: String(head) };
  }
  if (state.token !== "" || (state.look !== "" && state.look !== "self") || !opensAtLink(of)) return {};
  const late = new Promise((resolve) => { setTimeout(() => resolve(null), PATIENCE); });
  return await Promise.race([openingPlace(of, look), late]) ?? {};
}

/** The token that is selected at first: the last word, which can attend to the most tokens. @param {import("./api.js").Token[]} tokens */
function tellingToken(tokens) {
  const word = tokens.findLastIndex((token) => !token.special && /[\p{L}\p{N}]/u.test(token.text));
  return word >= 0 ? word : tokens.length - 1;
}

/** @param {State} state @param {State | null} before */
async function show(state, before) {
  drawTop(state);
  const kind = views.find((each) => each.name === state.view) ?? views[0];
  if (shownView !== kind.name) {
    view?.close?.();
    view = null;
    replace(content, !kind.alone && h("p", { class: "quiet", id: "waiting" }, "Running the model …"));
    shownView = kind.name;
    document.title = `${kind.title} · fovea inspector`;
  }
  try {
    if (!view) {
      const create = await kind.load();
      if (shownView !== kind.name) return; // another view is shown by now
      before = null;
      const waiting = document.getElementById("waiting");
      view ??= create(content);
      if (waiting) content.prepend(waiting);
    }
    if (kind.alone) {
      view?.update(null, state, before);
      return;
    }
    top.classList.add("busy");
    const here = await openSession(state);
    if (!here || shownView !== kind.name) return;
    clearError();
    /** @type {Partial<State>} */
    const fit = { ...fitted(state, here), ...await opening(state, here) };
    if (shownView !== kind.name) return;
    const changed = Object.entries(fit).some(([key, value]) => state[/** @type {keyof typeof fit} */ (key)] !== value);
    if (changed) change(fit, { replace: true });
    else view?.update(here, state, before);
    document.getElementById("waiting")?.remove();
  } catch (error) {
    document.getElementById("waiting")?.remove();
    if (!await refers(state.model)) showError(error instanceof Error ? error.message : String(error));
  } finally {
    top.classList.remove("busy");
  }
}

/** Refers to the page for models that read audio or images instead of text. Returns false for others. @param {string} model */
async function refers(model) {
  const answer = await ask("api/spec", { model }).catch(() => null);
  const kind = answer?.spec.input?.kind;
  if (kind !== "audio" && kind !== "image") return false;
  const [what, page, text] = kind === "audio" ? ["audio", "speech", "See the spectrogram of an audio file, and where each word came from"] : ["images", "images", "See what it looks at in an image"];
  replace(content, h("p", { id: page }, `This model reads ${what}. `, h("a", { href: `${page}.html?model=${encodeURIComponent(model)}` }, text)));
  return true;
}

/** @param {string} message */
function showError(message) {
  clearError();
  content.prepend(h("p", { class: "error", role: "alert", id: "error" }, message));
}
function clearError() {
  document.getElementById("error")?.remove();
}

/** @type {HTMLTextAreaElement} */
let textBox;
/** @type {HTMLTextAreaElement} */
let targetBox;

function buildTop() {
  const tabs = h("nav", { "aria-label": "Views" }, views.filter((each) => !captured || kept(each.name)).map((each) =>
    h("a", { href: `#/view=${each.name}`, "data-view": each.name, onclick: (/** @type {MouseEvent} */ event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // opens a new tab or window
      event.preventDefault();
      change({ view: each.name });
      content.focus();
    } }, each.title)));
  textBox = h("textarea", { id: "text", rows: "1", spellcheck: "false", dir: "auto", "aria-label": "Text that the model reads",
    onkeydown: enterSends, oninput: grow, onpaste: refuseLong });
  targetBox = h("textarea", { id: "target", rows: "1", spellcheck: "false", dir: "auto", oninput: grow, onkeydown: enterSends, onpaste: refuseLong,
    "aria-label": "Text of the decoder; if empty, the model generates it", placeholder: "generated by the model" });
  const go = h("button", { class: "primary", onclick: send }, "Inspect");
  replace(top,
    h("div", { class: "bar" },
      h("h1", {}, eye(), "fovea ", h("span", { class: "quiet" }, "inspector")),
      h("div", { id: "model" }), h("a", { id: "to-images", hidden: true }, "Images"), h("div", { class: "grow" }), savePanel(), themeButton()),
    tabs,
    h("form", { class: "ask", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); send(); } },
      textBox, h("span", { class: "both quiet", "aria-hidden": "true" }, "→"), targetBox, captured ? null : go),
    h("div", { class: "banner", role: "status", hidden: true }));
}

/** Names what differs from the model itself, in every view. @param {State} state */
function drawBanner(state) {
  const banner = /** @type {HTMLElement} */ (top.querySelector(".banner"));
  const muted = state.muted.split(",").filter(Boolean).map((each) => each.replace(/^self\./, ""));
  banner.hidden = muted.length === 0;
  if (muted.length) replace(banner, `Switched off: ${muted.length === 1 ? "head" : "heads"} ${muted.slice(0, 12).join(", ")}${muted.length > 12 ? ` and ${muted.length - 12} more` : ""}. `,
    h("button", { class: "small", onclick: () => change({ muted: "" }, { replace: true }) }, "Switch all on"));
}

/** Whether a saved file holds what a view shows. @param {string} name */
function kept(name) {
  const needed = /** @type {Record<string, string>} */ ({ follow: "api/walk", say: "api/logits", explain: "api/explain", heads: "api/scores", course: "api/none", circuits: "api/neurons", twice: "api/vectors", compare: "api/generation", learn: "api/training" })[name];
  return needed === undefined || name === current().view || Object.keys(captured?.responses ?? {}).some((each) => each.startsWith(needed));
}

function eye() {
  const space = "http://www.w3.org/2000/svg";
  const drawing = document.createElementNS(space, "svg");
  drawing.setAttribute("viewBox", "0 0 24 24");
  drawing.setAttribute("aria-hidden", "true");
  drawing.setAttribute("class", "eye");
  for (const [tag, attributes] of /** @type {[string, Record<string, string>][]} */ ([
    ["path", { d: "M2 12c3-5 6.5-7 10-7s7 2 10 7c-3 5-6.5 7-10 7s-7-2-10-7z", class: "lid" }],
    ["circle", { cx: "12", cy: "12", r: "4.2", class: "iris" }], ["circle", { cx: "12", cy: "12", r: "1.6", class: "pit" }]])) {
    const part = document.createElementNS(space, tag);
    for (const [key, value] of Object.entries(attributes)) part.setAttribute(key, value);
    drawing.append(part);
  }
  return drawing;
}

/** @param {KeyboardEvent} event */
function enterSends(event) {
  if (event.key !== "Enter" || event.shiftKey) return;
  event.preventDefault();
  send();
}

function grow() {
  for (const box of [textBox, targetBox]) {
    box.style.height = "auto";
    box.style.height = `${Math.min(box.scrollHeight + 2, 160)}px`;
  }
}

// Maximum characters of a text, which must fit into an address. The server refuses texts of more than 2^18 bytes.
const MOST = 200000;

/** Whether a text is too long; shows an error if it is. @param {string} text */
function tooLong(text) {
  if (text.length <= MOST) return false;
  showError(`The text has ${text.length.toLocaleString("en")} characters; expected at most ${MOST.toLocaleString("en")}.`);
  return true;
}

/** Refuses a long text before it is inserted: a megabyte in a text box blocks the browser. @param {ClipboardEvent} event */
function refuseLong(event) {
  if (tooLong(event.clipboardData?.getData("text") ?? "")) event.preventDefault();
}

function send() {
  if (tooLong(textBox.value)) return;
  change({ text: textBox.value, target: targetBox.value, ids: "", tids: "", token: "", second: "", position: "", result: "0", one: "", two: "", layer: current().view === "sentence" ? current().layer : "0" });
  announce("Reading the text.");
}

function themeButton() {
  const order = ["", "light", "dark"];
  const names = { "": "as the system", light: "light", dark: "dark" };
  let theme = localStorageOr("");
  const apply = () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = theme === "dark" ? "☾" : theme === "light" ? "☀" : "◐";
    button.setAttribute("aria-label", `Colours: ${names[/** @type {keyof typeof names} */ (theme)]}`);
  };
  const button = h("button", { class: "icon", onclick: () => {
    theme = order[(order.indexOf(theme) + 1) % order.length];
    try {
      localStorage.setItem("theme", theme);
    } catch { /* a file on the disk has no storage in some browsers */ }
    apply();
    window.dispatchEvent(new Event("theme"));
  } });
  apply();
  return button;
}

/** @param {string} otherwise */
function localStorageOr(otherwise) {
  try {
    return localStorage.getItem("theme") ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** @param {State} state */
function drawTop(state) {
  for (const tab of top.querySelectorAll("nav a")) {
    const name = /** @type {HTMLElement} */ (tab).dataset.view ?? "";
    tab.setAttribute("href", hashOf({ ...state, view: name }).replace("#", "#/")); // the slash: no anchor of this page
    if (name !== state.view) tab.removeAttribute("aria-current");
    else if (!tab.hasAttribute("aria-current")) {
      tab.setAttribute("aria-current", "page");
      tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }
  drawBanner(state);
  if (document.activeElement !== textBox) textBox.value = state.text;
  if (document.activeElement !== targetBox) targetBox.value = state.target;
  const needed = !views.find((each) => each.name === state.view)?.alone;
  /** @type {HTMLElement} */ (top.querySelector("form")).hidden = !needed;
  const box = /** @type {HTMLElement} */ (document.getElementById("model"));
  if (models.length > 1) {
    replace(box, h("select", { "aria-label": "Model", onchange: (/** @type {Event} */ event) =>
      change({ model: /** @type {HTMLSelectElement} */ (event.target).value, muted: "" }) },
      models.map((each) => h("option", { value: each.model, selected: each.model === state.model }, each.name))));
  } else {
    replace(box, h("span", { class: "quiet" }, models[0]?.name ?? ""));
  }
  grow();
}

/** Updates the parts that depend on the model only. */
async function meetModel() {
  const state = current();
  if (models.find((each) => each.model === state.model)?.ready === false) return; // a training run that has just started
  const spec = new ModelShape(await ask("api/spec", { model: state.model }));
  top.classList.toggle("two", spec.both);
  const link = /** @type {HTMLAnchorElement} */ (document.getElementById("to-images"));
  link.hidden = !spec.images || Boolean(captured);
  link.href = `images.html?model=${encodeURIComponent(state.model)}`;
  if (!spec.tokenizer && state.text === defaultText) change({ text: "1 2 3 4 5 6 7 8" }, { replace: true });
}

async function start() {
  document.body.classList.toggle("embedded", current().embedded !== "");
  buildTop();
  models = await ask("api/models");
  await meetModel();
  listen((now, before) => void show(now, before));
  window.addEventListener("models", (event) => {
    ({ detail: models } = /** @type {CustomEvent<Known[]>} */ (event));
    void meetModel().then(() => drawTop(current()), () => {});
  });
  window.addEventListener("forgotten", () => {
    forgetRuns();
    sessionName = "";
    void show(current(), null);
  });
  await show(current(), null);
  if (!captured) setTimeout(() => views.forEach((each) => void each.load().catch(() => {})), OTHERS);
}

start().catch((error) => showError(String(error.message ?? error)));
