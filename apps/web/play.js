// Playgrounds: the calculations of the Transformer with a few numbers.

import { h, replace } from "./dom.js";
import { change } from "./state.js";
import { attentionPlay } from "./play_attention.js";
import { examplePlay } from "./play_example.js";
import { maskPlay } from "./play_masks.js";
import { normPlay } from "./play_norms.js";
import { headsPlay } from "./play_heads.js";
import { leakPlay, maskValuePlay } from "./play_mask_values.js";
import { ownPlay } from "./play_own.js";
import { alibiPlay, rotaryPlay, wavesPlay } from "./play_positions.js";
import { lookupPlay, orderPlay, recurrencePlay } from "./play_sequence.js";

/** @type {[string, string, (root: HTMLElement) => void][]} */
const grounds = [
  ["attention", "Scaled attention", attentionPlay], ["example", "Three tokens by hand", examplePlay], ["waves", "Sinusoidal waves", wavesPlay],
  ["rotary", "Rotary positions", rotaryPlay], ["alibi", "ALiBi", alibiPlay], ["norms", "Layer and batch norm", normPlay], ["masks", "Masks", maskPlay],
  ["recurrence", "Recurrence or attention", recurrencePlay], ["lookup", "Hard and soft look-up", lookupPlay], ["heads", "Split and join heads", headsPlay], ["order", "The order of words", orderPlay],
  ["leak", "A leaking mask", leakPlay], ["maskvalue", "−1e9 or −∞", maskValuePlay], ["own", "Your own Q, K, V", ownPlay],
];

/** @param {HTMLElement} root @returns {import("./main.js").View} */
export function playView(root) {
  const bar = h("div", { class: "row", role: "group", "aria-label": "Playgrounds", style: { "margin-bottom": "1.25rem" } });
  const ground = h("div");
  root.append(bar, ground);
  let shown = "";
  return {
    update(_, state) {
      const [name, , make] = grounds.find(([each]) => each === state.play) ?? grounds[0];
      replace(bar, grounds.map(([each, title]) => h("button", { "aria-pressed": String(each === name), "data-play": each, onclick: () => change({ play: each }, { replace: true }) }, title)));
      if (shown === name) return;
      shown = name;
      replace(ground);
      make(ground);
    },
  };
}
