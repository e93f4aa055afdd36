// The boxes of a model's picture, in the order of the computation, read from its Spec. Pure data: overview.js draws it.

/** @typedef {import("./model.js").Stack} Stack */
/**
 * @typedef {object} Box
 * @property {string} part the role of the box, a key of roles.js
 * @property {string} title
 * @property {string} detail
 * @property {[string, number | string][]} shape named axes of what leaves the box
 * @property {string} step the step of “Follow a token” that computes it
 * @property {"stream" | "branch" | "beside"} lane on the stream, on a branch that is added to it, or beside it without a sum
 */
/** @typedef {{boxes: Box[], add: boolean, cross?: boolean}} Sublayer the boxes of one branch, and whether the stream passes beside it */
/** @typedef {{layers: number[], name: string, sublayers: Sublayer[]}} Group layers of the same kind */
/** @typedef {{look: "self" | "encoder", title: string, input: Box[], groups: Group[], output: Box[]}} Drawn one stack */

const NORMS = /** @type {Record<string, string>} */ ({ layer: "Layer norm", rms: "RMS norm", dyt: "Dynamic tanh" });
const CELLS = /** @type {Record<string, string>} */ ({ rnn: "RNN", gru: "GRU", lstm: "LSTM" });

/** @param {any} spec @param {{T?: number | string, S?: number | string}} lengths tokens of the text and of the source @returns {Drawn[]} */
export function diagramOf(spec, { T = "T", S = "S" } = {}) {
  const both = Boolean(spec.encoder && spec.decoder);
  const stacks = [];
  if (spec.encoder) stacks.push(stackOf(spec, spec.encoder, both ? "encoder" : "self", both ? S : T, S, false, both));
  if (spec.decoder) stacks.push(stackOf(spec, spec.decoder, "self", T, S, both, both));
  return stacks;
}

/** @param {any} spec @param {any} stack @param {"self" | "encoder"} look @param {number | string} T @param {number | string} S @param {boolean} cross @param {boolean} both @returns {Drawn} */
function stackOf(spec, stack, look, T, S, cross, both) {
  const causal = Boolean(spec.decoder) && look === "self" && stack.causal !== false;
  const kinds = Array.from({ length: stack.layers }, (_, i) => sublayersOf(spec, stack, i, T, S, cross, causal));
  const last = look === "self" || !both;
  return {
    look, title: both ? (look === "encoder" ? "Encoder" : "Decoder") : spec.decoder ? "Decoder" : "Encoder",
    input: inputOf(spec, stack, look, T), groups: grouped(kinds),
    output: [...(stack.final_norm ? [stream("norm", NORMS[stack.norm.kind], "the last one", [["T", T], ["C", spec.width]], "final_norm")] : []), ...(last ? headOf(spec, T) : [])],
  };
}

/** @param {string} part @param {string} title @param {string} detail @param {Box["shape"]} shape @param {string} step @returns {Box} */
const stream = (part, title, detail, shape, step) => ({ part, title, detail, shape, step, lane: "stream" });
/** @param {string} part @param {string} title @param {string} detail @param {Box["shape"]} shape @param {string} step @returns {Box} */
const branch = (part, title, detail, shape, step) => ({ part, title, detail, shape, step, lane: "branch" });

/** @param {any} spec @param {any} stack @param {string} look @param {number | string} T @returns {Box[]} */
function inputOf(spec, stack, look, T) {
  const width = spec.embedding_width || spec.width;
  const vocabulary = look === "encoder" && spec.source_vocabulary ? spec.source_vocabulary : spec.vocabulary;
  /** @type {Box["shape"]} */
  const inner = [["T", T], ["C", width]];
  const boxes = [stream("embedding", "Embedding", `one row for each of ${vocabulary.toLocaleString("en")} tokens`, inner, "embedding")];
  if (spec.token_types > 0) boxes.push(branch("type", "Sentence type", `${spec.token_types} learned vectors`, inner, "type"));
  const { kind, bias, rotary } = stack.position;
  if (kind === "learned") boxes.push(branch("position", "Positions", "a learned vector for each", inner, "position"));
  if (kind === "sinusoidal") boxes.push(branch("position", "Positions", "sinusoids, not learned", inner, "position"));
  if (kind === "rotary") boxes.push({ part: "position", title: "Rotary positions", detail: `turn queries and keys in each layer, base ${rotary.theta.toLocaleString("en")}`, shape: [], step: "query", lane: "beside" });
  if (bias === "alibi") boxes.push({ part: "position", title: "ALiBi", detail: "scores fall with the distance, in each layer", shape: [], step: "scores", lane: "beside" });
  if (bias === "relative") boxes.push({ part: "position", title: "Relative bias", detail: "a learned number for each distance is added to the scores", shape: [], step: "scores", lane: "beside" });
  if (stack.embedding_norm) boxes.push(stream("norm", NORMS[stack.norm.kind], "of the embeddings", inner, "embedding_norm"));
  if (width !== spec.width) boxes.push(stream("projection", "Projection", `${width} to ${spec.width} numbers`, [["T", T], ["C", spec.width]], "projection"));
  return boxes;
}

/** @param {any} spec @param {any} stack @param {number} layer @param {number | string} T @param {number | string} S @param {boolean} cross @param {boolean} causal @returns {Sublayer[]} */
function sublayersOf(spec, stack, layer, T, S, cross, causal) {
  const { norm } = stack;
  const placement = stack.recurrent_pre_norm && !/^(attention|latent)$/.test(kindOf(stack, layer)) ? { input: true } : stack.placement;
  /** @type {Box["shape"]} */
  const wide = [["T", T], ["C", spec.width]];
  const add = stack.residual !== false;
  /** @param {string} name the walk's name of the sublayer @param {Box[]} middle @param {boolean} first @returns {Sublayer} */
  const around = (name, middle, first) => ({ add, boxes: [
    ...(placement.input && (first || stack.first_norm || layer > 0) ? [branch("norm", NORMS[norm.kind], "before", wide, `${name}_norm`)] : []),
    ...middle,
    ...(placement.output ? [branch("norm", NORMS[norm.kind], "of the result", wide, `${name}_output_norm`)] : []),
    ...(placement.sum ? [stream("norm", NORMS[norm.kind], "of the sum", wide, `${name}_stream`)] : [])] });
  const mixer = mixerOf(spec, stack, layer, T, causal);
  const feed = stack.ffn.present === false ? [] : [feedOf(spec, stack, layer, T)];
  if (stack.parallel && feed.length) return [around("attention", [mixer, ...feed], false)];
  const sublayers = [around(mixer.part === "recurrence" ? "recurrence" : "attention", [mixer], false)];
  if (cross) {
    const { heads, head_width: D } = stack.attention;
    sublayers.push({ ...around("cross", [branch("cross", "Cross-attention", `${heads} heads of ${D}; queries from here, keys and values from the encoder`, [["H", heads], ["T", T], ["S", S]], "cross_weights")], true), cross: true });
  }
  if (feed.length) sublayers.push(around("ffn", feed, true));
  return sublayers;
}

/** @param {any} stack @param {number} layer @returns {string} */
const kindOf = ({ mixers }, layer) => mixers[layer % mixers.length] ?? "attention";

/** @param {any} spec @param {any} stack @param {number} layer @param {number | string} T @param {boolean} causal */
function mixerOf(spec, stack, layer, T, causal) {
  const kind = kindOf(stack, layer);
  const { delta, state_space: state, convolution } = stack;
  if (kind === "convolution") return branch("recurrence", "Gated convolution", `over the last ${convolution.tokens} tokens`, [["T", T], ["C", spec.width]], "state");
  if (kind === "gated_delta") return statesOf("Gated delta rule", delta.heads, delta.key_width, delta.value_width, T);
  if (kind === "state_space") return statesOf("State space", state.heads, state.state_width, state.head_width, T);
  if (CELLS[kind]) return branch("recurrence", CELLS[kind], `a state of ${stack.recurrence.width || spec.width} numbers, passed from token to token`, [["T", T], ["W", stack.recurrence.width || spec.width]], "state");
  const { heads, kv_heads: shared, head_width: D, windows } = stack.attention;
  const window = windows.length ? windows[layer % windows.length] : 0;
  const parts = [`${heads} ${heads === 1 ? "head" : "heads"} of ${D}`];
  if (kind === "latent") parts.push(`keys and values from a latent of ${stack.latent.width}`);
  else if (shared < heads) parts.push(shared === 1 ? "one set of keys and values" : `${shared} sets of keys and values`);
  if (window > 0) parts.push(`window of ${window}`);
  parts.push(causal ? "earlier tokens only" : "all tokens");
  return branch("attention", kind === "latent" ? "Latent attention" : window > 0 ? "Attention, near tokens" : "Attention", parts.join("; "), [["H", heads], ["T", T], ["S", T]], "weights");
}

/** @param {string} title @param {number} H @param {number} keys @param {number} values @param {number | string} T */
const statesOf = (title, H, keys, values, T) => branch("recurrence", title, `${H} heads; each has a state of ${keys} × ${values} numbers`, [["H", H], ["T", T]], "state");

/** @param {any} spec @param {any} stack @param {number} layer @param {number | string} T */
function feedOf(spec, stack, layer, T) {
  const { activation, gated, width, experts } = stack.ffn;
  const hidden = width || 4 * spec.width;
  const name = `${gated ? "gated " : ""}${activation.replaceAll("_", " ")}`;
  if (experts.count > 0 && !experts.dense_layers.includes(layer))
    return branch("experts", "Experts", `${experts.chosen} of ${experts.count} for each token${experts.shared ? `, ${experts.shared} for all` : ""}; ${name}`, [["T", T], ["E", experts.count]], "experts");
  return branch("ffn", "Feed-forward", `${spec.width} to ${hidden.toLocaleString("en")} and back; ${name}`, [["T", T], ["F", hidden]], gated ? "ffn_product" : "ffn_activation");
}

/** @param {any} spec @param {number | string} T @returns {Box[]} */
function headOf(spec, T) {
  const { kind, tied, labels } = spec.head;
  if (kind === "language_model")
    return [stream("head", "Head", tied ? "the embedding matrix again" : "a matrix of its own", [["T", T], ["V", spec.vocabulary]], "logits"),
      stream("softmax", "Softmax", "probabilities of the tokens", [["T", T], ["V", spec.vocabulary]], "probabilities")];
  if (kind === "pooled") return [stream("pool", "Pooling", "one vector for the text", [["C", spec.head.projection || spec.width]], "final_stream")];
  return [stream("labels", "Head", `${labels} labels of the ${kind}`, [[kind === "token" ? "T" : "1", kind === "token" ? T : 1], ["N", labels]], "final_stream")];
}

/** Equal layers share a picture: runs of them, or turns of different layers. @param {Sublayer[][]} kinds @returns {Group[]} */
function grouped(kinds) {
  const names = kinds.map((kind) => JSON.stringify(kind.map((each) => each.boxes.map(({ title, detail, step }) => [title, detail, step]))));
  /** @type {number[][]} */
  const runs = [];
  names.forEach((name, i) => (i > 0 && name === names[i - 1] ? runs[runs.length - 1].push(i) : runs.push([i])));
  if (runs.length <= 3) return runs.map((layers) => ({ layers, name: called(layers), sublayers: kinds[layers[0]] }));
  /** @type {Map<string, number[]>} */
  const alike = new Map();
  names.forEach((name, i) => alike.set(name, [...(alike.get(name) ?? []), i]));
  return [...alike.values()].map((layers) => ({ layers, name: called(layers), sublayers: kinds[layers[0]] }));
}

/** @param {number[]} layers */
function called(layers) {
  if (layers.length === 1) return `layer ${layers[0]}`;
  const together = layers[layers.length - 1] - layers[0] === layers.length - 1;
  if (together) return `${layers.length} × layers ${layers[0]} to ${layers[layers.length - 1]}`;
  return `${layers.length} × layers ${layers.slice(0, 6).join(", ")}${layers.length > 6 ? ", …" : ""}`;
}
