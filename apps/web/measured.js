// What breaks without each part, as measured by `fovea lab run`. Written by tools/write_measured.py from lab/results.

/** @type {Record<string, [string, string, string, number, number, string][]>} part: experiment, metric, place, value with the part, value without it, what it is without */
export const MEASURED = {
  position: [["no-positions", "accuracy: which of two tokens comes first", "tokens per sequence: 8", 1.0, 0.48958333333333326, "without positions"]],
  attention: [["recall", "accuracy of the recalled symbol, of 16", "distance in tokens: 48", 1.0, 0.06575520833333333, "with an LSTM alone"], ["score-variance", "variance of the scores of random queries and keys", "d_k, width of keys: 256", 0.9888012442919949, 253.1331185387507, "without the scale of the scores"], ["leaking-mask", "training loss on random tokens, nats per token", "steps: 400", 3.4669472354073676, 3.172060519857432, "without the causal mask"]],
  residual: [["residuals", "loss on held-out text, nats per character", "layers: 8", 2.232862545284964, 3.0219924226209214, "without residual sums"]],
  ffn: [["neurons", "accuracy of 128 learned facts", "neurons switched off or edited, of 512: 64", 1.0, 0.8723958333333333, "without the fact's own neurons instead of random ones"]],
  recurrence: [["gradient-distance", "log10 of the gradient's norm, relative to distance 1", "distance in tokens: 128", 0.12202077291327762, -12.0, "with a recurrence instead of attention"]],
};
