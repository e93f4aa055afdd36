// Results of the laboratory without each part. Written by tools/docs/write_measured.py.

/** @type {Record<string, [string, string, number, number, string][]>} command, metric, value with the part and without it, what is left out */
export const MEASURED = {
  position: [["fovea lab no-positions", "accuracy: which of two tokens comes first (tokens per sequence: 8)", 1.0, 0.4896, "without positions"]],
  norm: [["fovea lab norm --data bible.txt", "loss on held-out text, nats per character (learning rate: 0.016)", 2.029, 1.959, "without norms"]],
  attention: [["fovea lab recall", "accuracy of the recalled symbol, of 16 (distance in tokens: 48)", 1.0, 0.06576, "with an LSTM alone"], ["fovea lab score-variance", "variance of the scores of random queries and keys (d_k, width of keys: 256)", 0.9888, 253.1, "without the scale of the scores"], ["fovea lab leaking-mask --long", "training loss on random tokens, nats per token (steps: 2000)", 3.466, 4.573e-06, "without the causal mask"]],
  residual: [["fovea lab residuals --data bible.txt", "loss on held-out text, nats per character (layers: 8)", 2.233, 3.022, "without residual sums"]],
  ffn: [["fovea lab neurons", "accuracy of 128 learned facts (neurons switched off or edited, of 512: 64)", 1.0, 0.8724, "without the fact's own neurons instead of random ones"]],
  recurrence: [["fovea lab gradient-distance", "log10 of the gradient's norm, relative to distance 1 (distance in tokens: 128)", 0.122, -12.0, "with a recurrence instead of attention"]],
};
