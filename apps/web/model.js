// The structure of a model, read from its Spec.

/** @typedef {"self" | "encoder" | "cross"} Look */
/**
 * @typedef {object} Stack
 * @property {number} layers
 * @property {string[]} mixers
 * @property {{heads: number, kv_heads: number, head_width: number, windows: number[], global: number}} attention
 * @property {{kind: string, bias: string, rotary: {theta: number}}} position
 * @property {{kind: string}} norm
 * @property {{input: boolean, output: boolean, sum: boolean}} placement
 * @property {{activation: string, gated: boolean, width: number, experts: {count: number, chosen: number, shared: number, dense_layers: number[]}}} ffn
 */

export class ModelShape {
  /** @param {{spec: any, parameters: number, tokenizer: boolean, chat?: boolean, images?: boolean}} answer */
  constructor(answer) {
    this.spec = answer.spec;
    this.parameters = answer.parameters;
    this.tokenizer = answer.tokenizer;
    this.chat = Boolean(answer.chat);
    this.images = Boolean(answer.images);
    this.both = Boolean(this.spec.encoder && this.spec.decoder);
    this.languageModel = this.spec.head.kind === "language_model";
  }

  /** @returns {Look[]} */
  looks() {
    return this.both ? ["encoder", "self", "cross"] : ["self"];
  }

  /** @param {string} look @returns {Stack} */
  stack(look) {
    if (look === "encoder") return this.spec.encoder;
    return this.spec.decoder ?? this.spec.encoder;
  }

  /** @param {string} look */
  causal(look) {
    return look === "self" && Boolean(this.spec.decoder);
  }

  /** Whether a layer has attention weights; recurrent layers have none. @param {string} look @param {number} layer */
  attends(look, layer) {
    return look === "cross" || ["attention", "latent"].includes(this.stack(look).mixers[layer] ?? "attention");
  }

  /** The first layer with attention weights, or -1. @param {string} look */
  firstAttention(look) {
    return Array.from({ length: this.stack(look).layers }, (_, i) => i).findIndex((layer) => this.attends(look, layer));
  }

  /** @param {string} look @param {number} layer */
  window(look, layer) {
    return look === "cross" ? 0 : this.stack(look).attention.windows[layer] ?? 0;
  }

  /** Returns a function that returns whether a key is visible to a query. @param {string} look @param {number} layer */
  mask(look, layer) {
    const causal = this.causal(look);
    const window = this.window(look, layer);
    const global = window > 0 ? this.stack(look).attention.global : 0;
    return (/** @type {number} */ query, /** @type {number} */ key) => {
      if (look === "cross") return true;
      if (causal && key > query) return false;
      return window === 0 || Math.abs(query - key) < window || key < global || query < global;
    };
  }

  /** The kind of the model as text. */
  kind() {
    if (this.both) return "encoder and decoder";
    return this.spec.decoder ? "decoder" : "encoder";
  }
}

/** @param {string} look @param {ModelShape} shape */
export function lookName(look, shape) {
  if (look === "encoder") return "Encoder self-attention";
  if (look === "cross") return "Cross-attention";
  return shape.both ? "Decoder self-attention" : "Self-attention";
}

/** The tokens of the queries and of the keys. @param {import("./main.js").Session} session @param {string} look */
export function sides(session, look) {
  const { tokens, source } = session.run;
  if (look === "encoder") return { rows: source, keys: source };
  return { rows: tokens, keys: look === "cross" ? source : tokens };
}
