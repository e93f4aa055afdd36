// What a head looks for and what it writes, and the rotary angles of a layer.

import { ask } from "./api.js";
import { wordChoice } from "./answers.js";
import { figure, h, replace, shown, svg } from "./dom.js";
import { formulaOf } from "./formula.js";
import { drawHeadBar } from "./headbar.js";
import { matrix } from "./matrix.js";
import { signed } from "./colors.js";

const LISTED = 5; // tokens of a list
const SHOWN = 16; // tokens in the tables, pairs of dimensions

/** @param {import("./state.js").State} state */
const stackOf = (state) => (state.look === "encoder" ? "encoder" : "self");

/** @type {import("./circuits.js").Draw} */
export async function drawHeadCircuit(root, session, state, still) {
  const look = stackOf(state);
  const [layer, head] = [Number(state.layer), Number(state.heads.split(",")[0])];
  /** @type {{scores: number[][], sought: [number, number][][], written: [number, number][][]}} */
  const found = await ask("api/circuit", { run: session.run.run, look, layer, head });
  const tokens = (look === "encoder" ? session.run.source : session.run.tokens).slice(0, found.scores.length);
  const positions = [...tokens.keys()].filter((i) => tokens.findIndex((token) => token.id === tokens[i].id) === i);
  const ids = [...new Set([...found.sought, ...found.written].flatMap((list) => list.slice(0, LISTED).map(([id]) => id)))];
  /** @type {import("./api.js").Token[]} */
  const texts = await ask("api/texts", { model: session.model, ids: ids.join(",") });
  if (!still()) return;
  const text = new Map(ids.map((id, i) => [id, shown(texts[i].text)]));
  const list = (/** @type {[number, number][] | undefined} */ each) => (each ?? []).slice(0, LISTED).flatMap(([id, value], i) => [i > 0 ? ", " : "", h("span", { title: String(value), "data-token": id }, `${text.get(id)} ${figure(value, 2)}`)]);
  const bar = h("div", { class: "row", style: { "margin-bottom": ".8rem" } });
  drawHeadBar(bar, session, { ...state, look }, { looks: false, several: false });
  const names = tokens.slice(0, SHOWN).map((token) => shown(token.text));
  replace(root, h("section", { class: "panel" }, bar, h("h2", {}, `Head ${layer}.${head}: what it looks for, and what it writes`),
    h("p", { class: "quiet small" }, "Two matrices describe a head, whatever the text: one compares tokens as query and key, the other turns the token that it reads into changes of the logits. Both act here on the bare embeddings, after the norm of the layer, without positions and earlier layers."),
    h("div", { class: "formula", tabindex: "0" }, formulaOf("looks = E W_Q W_K^T E^T")), h("div", { class: "formula", tabindex: "0" }, formulaOf("writes = E W_V W_O U")),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Tokens" }, h("table", { style: { "min-width": "40rem" } },
      h("thead", {}, h("tr", {}, ["token", "as a query, looks for", found.written.length > 0 && "if read, raises"].map((name) => name && h("th", { scope: "col" }, name)))),
      h("tbody", {}, positions.map((i) => h("tr", { "data-circuit": i }, h("th", { scope: "row" }, shown(tokens[i].text)), h("td", { class: "small" }, list(found.sought[i])), found.written.length > 0 && h("td", { class: "small" }, list(found.written[i])))))))),
  h("section", { class: "panel" }, h("h2", {}, "The tokens of this text with one another"), h("p", { class: "quiet small" }, "Scores of each token (row) as a query with each token (column) as a key, before the softmax."),
    matrix(`scores by embeddings${tokens.length > SHOWN ? ` (the first ${SHOWN} tokens)` : ""}`, found.scores.slice(0, SHOWN).map((row) => row.slice(0, SHOWN)), { rows: names, columns: names })));
}

/** @type {import("./circuits.js").Draw} */
export async function drawRotation(root, session, state, still) {
  const look = stackOf(state);
  const heading = [h("h2", {}, "Rotary angles"), h("p", { class: "quiet small" }, "Queries and keys are rotated before they are compared: each pair of dimensions by its own angle, which is proportional to the token's position. The score of two tokens then depends on their distance. Fast pairs tell near tokens apart, slow ones distant ones.")];
  if (session.shape.stack(look).position.kind !== "rotary") return replace(root, h("section", { class: "panel" }, heading, h("p", { class: "quiet" }, `The positions of this model are ${session.shape.stack(look).position.kind === "none" ? "not rotated: it has none that are added" : session.shape.stack(look).position.kind}, so that there are no angles. The playground “Positions” shows rotation with numbers of your own.`)));
  const tokens = look === "encoder" ? session.run.source : session.run.tokens;
  const token = Math.min(Number(state.token), tokens.length - 1);
  /** @type {{pairs: number, halves: boolean, cosines: number[], sines: number[]}} */
  const { pairs, halves, cosines, sines } = await ask("api/rotary", { run: session.run.run, look, layer: state.layer });
  if (!still()) return undefined;
  // The angle of the second token is the frequency, which is at most 1 radian.
  const frequencies = Array.from({ length: pairs }, (_, i) => (tokens.length > 1 ? Math.atan2(sines[pairs + i], cosines[pairs + i]) : 0));
  const every = Math.max(1, Math.ceil(pairs / SHOWN));
  const chosen = [...frequencies.keys()].filter((i) => i % every === 0);
  const dial = (/** @type {number} */ i) => {
    const [c, s] = [cosines[token * pairs + i], sines[token * pairs + i]];
    return svg("svg", { viewBox: "-12 -12 24 24", width: 44, height: 44, role: "img", "aria-label": `pair ${i}: ${figure(Math.atan2(s, c), 2)} radians` }, svg("circle", { r: 10, fill: "none", stroke: "var(--strong)" }), svg("line", { x1: 0, y1: 0, x2: 10 * c, y2: -10 * s, stroke: "var(--accent)", "stroke-width": 2 }));
  };
  const columns = [...tokens.keys()].slice(0, SHOWN);
  return replace(root, h("section", { class: "panel" }, heading, h("div", { class: "formula", tabindex: "0" }, formulaOf("φ = t · θ^{-2 i/d}")), wordChoice(tokens, token),
    h("p", {}, `Position ${token}: each hand is one pair of dimensions${every > 1 ? ` (every ${every}th of ${pairs})` : ""}, the fastest first.`),
    h("div", { class: "row", style: { gap: ".3rem" } }, chosen.map(dial))),
  h("section", { class: "panel" }, h("h2", {}, "Angle by pair and position"), h("p", { class: "quiet small" }, "Radians; the colour is the cosine: orange near a full turn, blue near half a turn."),
    h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Angles" }, h("table", { class: "grid-edit" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "dimensions"), h("th", { scope: "col" }, "one turn in"), columns.map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", {}, chosen.map((i) => h("tr", {}, h("th", { scope: "row" }, halves ? `${i}, ${i + pairs}` : `${2 * i}, ${2 * i + 1}`), h("td", {}, h("span", {}, frequencies[i] ? `${Number((2 * Math.PI / frequencies[i]).toPrecision(3)).toLocaleString("en")} tokens` : "–")),
        columns.map((t) => h("td", {}, h("span", { "data-angle": `${t}.${i}`, title: `cos ${cosines[t * pairs + i]}, sin ${sines[t * pairs + i]}`, style: { background: signed(cosines[t * pairs + i], 1) } }, figure(t * frequencies[i], 2)))))))))));
}
