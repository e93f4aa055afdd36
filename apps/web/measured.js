// What breaks without each part, as measured by `fovea lab run`. Written by tools/write_measured.py from lab/results.

/** @type {Record<string, [string, string, string, number, number, string][]>} part: experiment, metric, place, value with the part, value without it, what it is without */
export const MEASURED = {
  position: [["no-positions", "accuracy: which of two tokens comes first", "tokens per sequence: 8", 1.0, 0.4896, "without positions"]],
  norm: [["norm", "loss on held-out text, nats per character", "learning rate: 0.016", 2.029, 1.959, "without norms"]],
  attention: [["recall", "accuracy of the recalled symbol, of 16", "distance in tokens: 48", 1.0, 0.06576, "with an LSTM alone"], ["score-variance", "variance of the scores of random queries and keys", "d_k, width of keys: 256", 0.9888, 253.1, "without the scale of the scores"], ["leaking-mask", "training loss on random tokens, nats per token", "steps: 2000", 3.466, 4.573e-06, "without the causal mask"]],
  residual: [["residuals", "loss on held-out text, nats per character", "layers: 8", 2.233, 3.022, "without residual sums"]],
  ffn: [["neurons", "accuracy of 128 learned facts", "neurons switched off or edited, of 512: 64", 1.0, 0.8724, "without the fact's own neurons instead of random ones"]],
  recurrence: [["gradient-distance", "log10 of the gradient's norm, relative to distance 1", "distance in tokens: 128", 0.122, -12.0, "with a recurrence instead of attention"]],
};
