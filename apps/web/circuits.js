// What the parts of a model do: neurons, votes of heads, patches from another text, steering, circuits of a head, rotation.

import { drawAttribution } from "./attribution.js";
import { drawHeadCircuit, drawRotation } from "./head_circuit.js";
import { h, replace } from "./dom.js";
import { drawNeurons } from "./neurons.js";
import { drawPatching, drawSteering } from "./patching.js";
import { change } from "./state.js";

/** @typedef {(root: HTMLElement, session: import("./main.js").Session, state: import("./state.js").State, still: () => boolean) => Promise<void>} Draw */
/** @type {[string, string, Draw][]} */
const PARTS = [
  ["neurons", "Neurons", drawNeurons],
  ["attribution", "Votes for an answer", drawAttribution],
  ["patching", "Patching", drawPatching],
  ["steering", "Steering", drawSteering],
  ["head", "What a head reads and writes", drawHeadCircuit],
  ["rotation", "Rotary angles", drawRotation],
];

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function circuitsView(root) {
  const choice = h("div", { class: "row chips", role: "group", "aria-label": "Part", style: { "margin-bottom": "1rem" } });
  const body = h("div", {});
  root.append(choice, body);
  let turn = 0;
  let shownPart = "";
  return {
    update(session, state) {
      if (!session) return;
      const mine = ++turn;
      const [name, , draw] = PARTS.find(([each]) => each === state.part) ?? PARTS[0];
      replace(choice, PARTS.map(([each, title]) => h("button", { "aria-pressed": String(each === name), "data-part": each, onclick: () => change({ part: each }, { replace: true }) }, title)));
      if (shownPart !== name) replace(body, h("section", { class: "panel" }, h("p", { class: "quiet" }, "Computing …")));
      shownPart = name;
      draw(body, session, state, () => mine === turn).catch((error) => {
        if (mine === turn) replace(body, h("section", { class: "panel" }, h("p", { class: "error", role: "alert" }, error.message)));
      });
    },
  };
}
