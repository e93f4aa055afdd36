// The course: chapters of docs/course beside live views, with questions, and a tour of the page.

import { ask, askBytes, captured, startRun } from "./api.js";
import { announce, figure, h, replace } from "./dom.js";
import { markdown } from "./markdown.js";
import { filtered } from "./sampling.js";
import { change } from "./state.js";
import { wordOf } from "./suggestions.js";

/** @type {[string, string][]} files of docs/course and their titles */
export const CHAPTERS = [
  ["01-recurrence", "Why not recurrence"], ["02-tokens", "Tokens and vectors"], ["03-attention", "Attention by hand"], ["04-roles", "Query, key, value"],
  ["05-heads", "Heads"], ["06-positions", "Positions"], ["07-masks", "Masks"], ["08-sublayers", "Residual, norm, feed-forward"],
  ["09-stack", "The whole model"], ["10-training", "Training"], ["11-writing", "Writing"], ["12-cost", "What it costs"], ["13-aligned", "How it is aligned"], ["14-states", "States instead of keys"],
  ["reading", "Reading and questions"],
];
/** @type {[string, string, string][]} the tour: name, address, what to see there */
const TOUR = [
  ["The model", "view=home", "The whole model in one picture. Let the sentence flow, then click a box."],
  ["Attention", "view=sentence", "Click a word: arcs, numbers and the map show what it attends to."],
  ["Two words", "view=sentence&text=red cat green dog tall horse red cat green dog tall&token=green:2&second=dog", "All heads ranked by the link between two words, and the product of query and key."],
  ["Follow a token", "view=follow&step=query", "Each step of one token, with the numbers of this model."],
  ["Predictions", "view=say&text=Mary went to the store because", "What comes next. Click a bar to append it."],
  ["Heads", "view=heads", "Which heads have a role, and what breaks when they are switched off."],
  ["Playgrounds", "view=play&play=own", "The same calculations with a few numbers, which you can change."],
  ["Quiz", "view=quiz", "Questions from easy to hard."],
];

/** Chapters that were answered, kept in the browser. @returns {Set<string>} */
function progress() {
  try {
    return new Set(JSON.parse(localStorage.getItem("fovea course") ?? "[]"));
  } catch {
    return new Set(); // no storage, or storage of something else
  }
}

/** @param {string} chapter */
function done(chapter) {
  try {
    localStorage.setItem("fovea course", JSON.stringify([...progress().add(chapter)]));
  } catch { /* the progress is then lost at the end of the visit */ }
}

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function courseView(root) {
  const list = h("nav", { class: "panel chapters", "aria-label": "Chapters" });
  const text = h("article", { class: "panel prose" });
  root.append(h("div", { class: "course" }, list, text));
  let shown = "";
  return {
    update(_, state) {
      const known = CHAPTERS.findIndex(([name]) => name === state.chapter);
      const at = state.chapter === "tour" ? -1 : Math.max(known, 0);
      drawList(list, at);
      const name = at < 0 ? "tour" : CHAPTERS[at][0];
      if (name === shown) return;
      const first = shown === ""; // the page is then at its top
      shown = name;
      if (at < 0) {
        replace(text, ...tour());
        return;
      }
      replace(text, h("p", { class: "quiet" }, "Opening the chapter …"));
      fetch(`${name}.md`).then(async (response) => {
        if (!response.ok) throw new Error("The chapter is missing.");
        const source = await response.text();
        if (shown !== name) return;
        replace(text, ...markdown(source, (language, block) => blockOf(language, block, name, state.model, () => drawList(list, at))), steps(at));
        if (!first) text.scrollIntoView({ block: "nearest" });
        announce(CHAPTERS[at][1]);
      }).catch((error) => replace(text, h("p", { class: "error", role: "alert" }, captured ? "A saved file does not contain the course." : error.message)));
    },
  };
}

/** @param {HTMLElement} root @param {number} at */
function drawList(root, at) {
  const answered = progress();
  const count = CHAPTERS.filter(([name]) => answered.has(name)).length;
  const item = (/** @type {string} */ name, /** @type {string} */ title, /** @type {boolean} */ here) => h("li", {}, h("button", { "aria-current": here ? "page" : undefined, "data-chapter": name, onclick: () => change({ chapter: name }, { replace: true }) },
    title, answered.has(name) && h("span", { class: "answered", title: "answered" }, " ✓")));
  replace(root, h("h2", {}, "Course"), h("p", { class: "quiet small" }, `${count} of ${CHAPTERS.length - 1} questions answered`),
    h("ol", {}, CHAPTERS.map(([name, title], i) => item(name, title, i === at))), h("ul", {}, item("tour", `A tour of the page: ${TOUR.length} stops`, at < 0)));
}

/** @param {number} at */
function steps(at) {
  const go = (/** @type {number} */ to, /** @type {string} */ word) => CHAPTERS[to] && h("button", { class: to > at ? "primary" : undefined, "data-go": to, onclick: () => change({ chapter: CHAPTERS[to][0] }, { replace: true }) }, word.replace("?", CHAPTERS[to][1]));
  return h("div", { class: "row", style: { "margin-top": "1.2rem" } }, go(at - 1, "← ?"), go(at + 1, "? →"));
}

/** @returns {Node[]} */
function tour() {
  return [h("h2", {}, "A tour of the page"), h("ol", { class: "tour" }, TOUR.map(([name, address, words]) => h("li", {}, h("a", { href: `#/${address.replaceAll(" ", "+")}` }, name), ` — ${words}`)))];
}

/** @param {string} language @param {string} text @param {string} chapter @param {string} model @param {() => void} answered @returns {Node | null} */
function blockOf(language, text, chapter, model, answered) {
  if (language === "view") return liveView(text);
  if (language === "question") return question(text, chapter, model, answered);
  if (language === "sh") return h("pre", { class: "formula command", tabindex: "0", "aria-label": "Command" }, text);
  return h("pre", { class: language === "text" ? "formula output" : "formula", tabindex: "0" }, text);
}

/** A view of this page beside the text. @param {string} text its address and, in a second line, its title */
function liveView(text) {
  const [address, title] = text.split("\n");
  const hash = `${address.trim().replaceAll(" ", "+")}`;
  return h("figure", { class: "live" }, h("iframe", { src: `./?embedded#${hash}&embedded=1`, title: title ?? "A view of the model", loading: "lazy" }),
    h("figcaption", { class: "small" }, title ?? "", " ", h("a", { href: `#/${hash}` }, "Open this view")));
}

/** @param {string} text the question, and in its last line the kind of its answer @param {string} chapter @param {string} model @param {() => void} answered */
function question(text, chapter, model, answered) {
  const lines = text.trim().split("\n");
  const kind = /** @type {string} */ (lines.pop()).replace(/^answer: /, "");
  const verdict = h("p", { role: "status" });
  const input = h("input", { type: "text", "aria-label": "Your answer", "data-answer-of": chapter });
  const check = async () => {
    const wanted = await answerOf(kind, model);
    const typed = input.value.trim().replace("−", "-").replace(",", ".");
    if (typeof wanted.values[0] === "number" && !/\d/.test(typed)) {
      verdict.textContent = "Write a number in digits.";
      return;
    }
    const right = wanted.values.some((each) => (typeof each === "number" ? Math.abs(Number(typed) - each) <= 6e-4 * Math.max(1, Math.abs(each)) : typed.toLowerCase() === each.toLowerCase()));
    verdict.textContent = right ? `✓ Right: ${wanted.words}.` : "✗ Not yet. Look again, or try another view.";
    if (!right) return;
    done(chapter);
    answered();
  };
  return h("form", { class: "question", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    check().catch((error) => { verdict.textContent = error.message; });
  } }, h("h3", {}, "Your turn"), h("p", {}, lines.join(" ")), h("div", { class: "row" }, input, h("button", { class: "primary" }, "Check")), verdict);
}

/** The right answers, computed from the model itself where they depend on it. @param {string} kind @param {string} model @returns {Promise<{values: (string | number)[], words: string}>} */
export async function answerOf(kind, model) {
  const [first, ...others] = kind.split(" ");
  const rest = others.join(" ");
  if (first === "number") return { values: [Number(rest)], words: rest };
  if (first === "word") return { values: rest.split("|"), words: rest.split("|")[0] };
  if (first === "next") {
    const run = await startRun({ model, text: rest, target: "", muted: [] });
    const logits = new Float32Array(await askBytes("api/logits", { run: run.run, position: run.tokens.length - 1 }));
    const [token] = await ask("api/texts", { model, ids: filtered(logits, 1, 0, 1, 1).order[0] });
    return { values: [wordOf(token)], words: `“${wordOf(token)}”` };
  }
  // head SCORE [TEXT]: the head with the highest score of this kind
  const [score, ...words] = others;
  let best = { head: "", value: -1 };
  const better = (/** @type {number} */ layer, /** @type {number} */ head, /** @type {number} */ value) => { if (value > best.value) best = { head: `${layer}.${head}`, value }; };
  if (score === "induction") {
    const scores = await ask("api/induction", { model });
    scores.forEach((/** @type {number[]} */ heads, /** @type {number} */ layer) => heads.forEach((value, head) => better(layer, head, value)));
  } else {
    const [{ spec }, run] = await Promise.all([ask("api/spec", { model }), startRun({ model, text: words.join(" "), target: "", muted: [] })]);
    for (let layer = 0; layer < (spec.decoder ?? spec.encoder).layers; ++layer) {
      const heads = await ask("api/scores", { run: run.run, look: "self", layer });
      heads.forEach((/** @type {Record<string, number>} */ scores, /** @type {number} */ head) => better(layer, head, scores[score]));
    }
  }
  return { values: [best.head], words: `head ${best.head}, with ${figure(best.value)}` };
}
