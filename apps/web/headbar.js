// The selection of layer, head and kind of attention, which several views share.

import { headColor } from "./colors.js";
import { h, replace } from "./dom.js";
import { lookName } from "./model.js";
import { change, numbers } from "./state.js";

/**
 * @param {HTMLElement} root @param {import("./main.js").Session} session @param {import("./state.js").State} state
 * @param {{looks?: boolean, several?: boolean}} options `several`: allows several selected heads
 */
export function drawHeadBar(root, session, state, options) {
  const { shape } = session;
  const stack = shape.stack(state.look);
  const layer = Number(state.layer);
  const looks = shape.looks().filter((look) => options.looks !== false || look !== "cross");
  const focus = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.control;
  const slider = h("input", {
    type: "range", min: "0", max: String(stack.layers - 1), value: String(layer), "data-control": "layer",
    "aria-label": "Layer", oninput: (/** @type {Event} */ event) =>
      change({ layer: /** @type {HTMLInputElement} */ (event.target).value }, { replace: true }) });
  slider.value = String(layer);
  replace(root,
    looks.length > 1 && h("div", { class: "segments", role: "group", "aria-label": "Kind of attention" }, looks.map((look) =>
      h("button", { "aria-pressed": String(look === state.look), "data-control": look,
        onclick: () => change({ look, token: "" }) }, lookName(look, shape)))),
    h("label", {}, h("span", {}, "Layer ", h("output", { class: "mono" }, `${layer}`), h("span", { class: "quiet" }, ` of ${stack.layers}`)), slider),
    headButtons(session, state, options.several !== false),
    shape.window(state.look, layer) > 0 && h("span", { class: "quiet small" }, `window of ${shape.window(state.look, layer)} tokens`),
    stack.attention.kv_heads < stack.attention.heads && h("span", { class: "quiet small" }, `${stack.attention.heads} heads share ${stack.attention.kv_heads === 1 ? "one set" : `${stack.attention.kv_heads} sets`} of keys and values (boxes)`));
  if (focus) /** @type {HTMLElement | null} */ (root.querySelector(`[data-control="${focus}"]`))?.focus();
}

/** @param {import("./main.js").Session} session @param {import("./state.js").State} state @param {boolean} several */
function headButtons(session, state, several) {
  const { attention } = session.shape.stack(state.look);
  const chosen = numbers(state.heads);
  const muted = new Set(state.muted.split(","));
  const each = attention.heads / attention.kv_heads;
  /** @type {HTMLElement[]} */
  const groups = [];
  for (let group = 0; group < attention.kv_heads; ++group) {
    const buttons = [];
    for (let head = group * each; head < (group + 1) * each; ++head) {
      const nth = chosen.indexOf(head);
      buttons.push(h("button", {
        "aria-pressed": nth >= 0 ? "true" : "false", "aria-label": `Head ${head}`, "data-control": `head${head}`,
        class: muted.has(`${state.look}.${state.layer}.${head}`) ? "muted" : undefined,
        style: { "--head": chosen.length > 1 && !state.mean ? headColor(nth) : "var(--accent)", ...(nth >= 0 && !(chosen.length > 1 && !state.mean) ? { color: "var(--accent-ink)" } : {}) },
        title: several ? "Shift-click adds or removes this head. Double-click selects only this head." : "",
        onclick: (/** @type {MouseEvent} */ event) => choose(event, head, chosen, several),
        ondblclick: () => change({ heads: String(head), mean: "" }, { replace: true }),
      }, head));
    }
    groups.push(each > 1
      ? h("span", { class: "group", role: "group", "aria-label": `Heads that share keys and values ${group}`, title: `These heads share key-value head ${group}` }, buttons)
      : h("span", { class: "alone" }, buttons));
  }
  const all = Array.from({ length: attention.heads }, (_, i) => i).join(",");
  return h("div", { class: "heads", role: "group", "aria-label": "Heads" }, h("span", {}, attention.heads > 1 ? "Heads" : "Head"), groups,
    several && attention.heads > 1 && h("button", { "data-control": "all", onclick: () => change({ heads: all }, { replace: true }) }, "all"),
    several && attention.heads > 1 && h("button", { "data-control": "mean", "aria-pressed": state.mean ? "true" : "false",
      onclick: () => change({ mean: state.mean ? "" : "1", heads: state.mean ? String(chosen[0]) : chosen.length > 1 ? state.heads : all }, { replace: true }) }, "average"));
}

/** @param {MouseEvent} event @param {number} head @param {number[]} chosen @param {boolean} several */
function choose(event, head, chosen, several) {
  const more = several && (event.shiftKey || event.ctrlKey || event.metaKey);
  let heads = [head];
  if (more) heads = chosen.includes(head) ? chosen.filter((each) => each !== head) : [...chosen, head];
  change({ heads: (heads.length ? heads : [head]).join(","), ...(more ? {} : { mean: "" }) }, { replace: true });
}
