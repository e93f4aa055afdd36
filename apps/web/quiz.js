// Questions of increasing difficulty; an explanation follows each answer.

import { announce, h, replace } from "./dom.js";
import { questions } from "./quiz_questions.js";
import { change } from "./state.js";

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function quizView(root) {
  const card = h("section", { class: "panel", "aria-label": "Question" });
  root.append(card);
  /** @type {Map<number, number>} */
  const given = new Map();
  return {
    update(_, state) {
      draw(card, Math.min(Math.max(Number(state.question) || 0, 0), questions.length), given);
    },
  };
}

/** @param {HTMLElement} root @param {number} number @param {Map<number, number>} given */
function draw(root, number, given) {
  const right = [...given].filter(([i, choice]) => questions[i].answer === choice).length;
  if (number >= questions.length) {
    replace(root, h("h2", {}, `${right} of ${questions.length} correct at the first attempt`),
      h("p", {}, right === questions.length ? "All answers are correct." : "Try the numbers of the questions in the playgrounds."),
      h("button", { class: "primary", onclick: () => { given.clear(); change({ question: "0" }, { replace: true }); } }, "Start again"));
    return;
  }
  const question = questions[number];
  const choice = given.get(number);
  const answered = choice !== undefined;
  replace(root,
    h("p", { class: "quiet small" }, `Question ${number + 1} of ${questions.length} · ${right} correct so far`),
    h("h2", { style: { "max-width": "52rem", "margin-bottom": "1rem" } }, question.ask),
    h("div", { role: "group", "aria-label": "Answers", style: { "max-width": "40rem" } }, question.choices.map((text, i) => h("button", {
      class: `choice${answered && i === question.answer ? " right-answer" : ""}${answered && i === choice && i !== question.answer ? " wrong-answer" : ""}`, "aria-pressed": String(i === choice), "data-choice": i, disabled: answered && i !== choice && i !== question.answer,
      onclick: () => {
        if (answered) return;
        given.set(number, i);
        announce(i === question.answer ? "Right." : "Wrong.");
        draw(root, number, given);
        /** @type {HTMLElement | null} */ (root.querySelector("[data-next]"))?.focus();
      } }, `${answered && i === question.answer ? "✓ " : answered && i === choice ? "✗ " : ""}${text}`))),
    answered && h("p", { id: "why", style: { "margin-top": "1rem" } }, h("b", {}, choice === question.answer ? "Right. " : "Wrong. "), question.why, " ", question.view && h("a", { href: `#/${question.view}`, "data-see": true }, "See it")),
    h("div", { class: "row" }, h("button", { disabled: number === 0, onclick: () => change({ question: String(number - 1) }, { replace: true }) }, "← back"),
      h("button", { class: answered ? "primary" : undefined, "data-next": true, onclick: () => change({ question: String(number + 1) }, { replace: true }) }, answered ? "next →" : "skip →")));
}
