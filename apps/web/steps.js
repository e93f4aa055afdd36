// What each step of a computation means.

/**
 * What each step means: [section, title, formula (formula.js), description].
 * @type {Record<string, [string, string, string, string]>}
 */
export const MEANING = {
  embedding: ["Input", "Embedding", "x = E[id]", "The token's id selects one row of the embedding matrix: the vector that the model has learned for it. Nothing else about the token enters the model."],
  type: ["Input", "Sentence type", "x ← x + S_0", "Adds a learned vector that depends on the sentence, the first or the second, to which the token belongs."],
  position: ["Input", "Position", "x ← x + P_t", "Attention itself does not depend on order. This vector encodes the position of the token; it is added, not appended."],
  embedding_norm: ["Input", "Norm of the embedding", "x ← norm(x)", "This model normalises the sum before the first layer."],
  projection: ["Input", "Projection of the embedding", "x = W x + b", "The embeddings of this model have another width than its layers; a matrix maps them."],
  stream: ["Attention", "Residual stream", "x", "The sum of the embedding and the outputs of all earlier layers. The layer reads it and adds to it."],
  attention_norm: ["Attention", "Norm", "y = norm(x)", "Scales the vector to a common size, so that attention compares directions rather than lengths."],
  latent: ["Attention", "Latent", "c = norm(W_C y)", "One short vector from which the keys and values of all heads are computed. The cache stores it instead of them."],
  query: ["Attention", "Query of this head", "q = W_Q y", "What this token looks for. With rotary positions, the vector is rotated by an angle that grows with its position."],
  key: ["Attention", "Key of this head", "k = W_K y", "What this token offers: queries are compared with it."],
  value: ["Attention", "Value of this head", "v = W_V y", "What this token passes on to the tokens that attend to it."],
  scores: ["Attention", "Scores", "s = {q · k}/{√{d}}", "The dot product of the query with the key of every visible token. A high score is a good match."],
  weights: ["Attention", "Weights", "a_j = {exp(s_j)}/{Σ_i exp(s_i)}", "The softmax turns the scores into weights that add up to 1. The attention map shows these numbers."],
  sum: ["Attention", "Weighted sum", "z = Σ_j a_j v_j", "The average of the values, weighted by attention: the result of this head."],
  attention_output: ["Attention", "All heads together", "o = W_O [z_0; z_1; …]", "The concatenated results of all heads, multiplied by one more matrix to give the width of the model."],
  attention_output_norm: ["Attention", "Norm of the result", "o ← norm(o)", "This model normalises the output of attention."],
  attention_stream: ["Attention", "Add to the stream", "x ← x + o", "The result is added to the residual stream, which keeps its earlier contents. (In a post-norm model, the sum is normalised here.)"],
  recurrence_norm: ["Recurrence", "Norm", "y = norm(x)", "Scales the vector to a common size."],
  gates_input: ["Recurrence", "Gates: input part", "W_I y + b", "The contribution of this token to each gate."],
  gates_recurrent: ["Recurrence", "Gates: recurrent part", "W_H h + b", "The contribution of the state after the previous token. The sum of both parts determines what the state keeps and what is added to it."],
  state: ["Recurrence", "State", "h", "The state after this token: the only memory of earlier tokens. A recurrent layer has no attention weights."],
  recurrence_output: ["Recurrence", "Output", "o = W_O h", "The state, projected to the width of the model if the widths differ."],
  recurrence_output_norm: ["Recurrence", "Norm of the result", "o ← norm(o)", "This model normalises the output of the recurrence."],
  recurrence_stream: ["Recurrence", "Add to the stream", "x ← x + o", "The result is added to the residual stream, or replaces it in a model without residuals."],
  cross_norm: ["Cross-attention", "Norm", "y = norm(x)", "Scales the vector to a common size, as before self-attention."],
  cross_query: ["Cross-attention", "Query of this head", "q = W_Q y", "What the decoder's token looks for in the source."],
  cross_scores: ["Cross-attention", "Scores", "s = {q · k}/{√{d}}", "The dot products of the query with the keys of the encoder's output."],
  cross_weights: ["Cross-attention", "Weights", "a_j = {exp(s_j)}/{Σ_i exp(s_i)}", "The source tokens that this token attends to."],
  cross_sum: ["Cross-attention", "Weighted sum", "z = Σ_j a_j v_j", "The average of the values of the source tokens, weighted by attention."],
  cross_output: ["Cross-attention", "All heads together", "o = W_O [z_0; z_1; …]", "The concatenated results, projected to the width of the model."],
  cross_output_norm: ["Cross-attention", "Norm of the result", "o ← norm(o)", "This model normalises the output before it is added."],
  cross_stream: ["Cross-attention", "Add to the stream", "x ← x + o", "The result is added to the residual stream."],
  ffn_norm: ["Feed-forward", "Norm", "y = norm(x)", "Scales the vector to a common size again."],
  router: ["Feed-forward", "Router", "p = softmax(W_R y)", "The router's score of each expert for this token. (Some models use a sigmoid instead of the softmax.)"],
  experts: ["Feed-forward", "Chosen experts", "top_k(p)", "The experts that process this token, and the weight of each."],
  shared_experts: ["Feed-forward", "Shared experts", "s = FFN_S(y)", "The result of the experts that process every token. It is added to the weighted sum of the chosen ones."],
  ffn_gate: ["Feed-forward", "Gate", "g = f(W_G y)", "Each element scales one element of the hidden layer."],
  ffn_up: ["Feed-forward", "Up", "u = W_U y", "Projects into a wider space, in which each element detects a pattern."],
  ffn_activation: ["Feed-forward", "Activation", "h = f(u)", "Negative numbers become (nearly) zero: the only nonlinear step of the feed-forward network."],
  ffn_product: ["Feed-forward", "Gate times up", "h = g · u", "The product, element by element."],
  ffn_output: ["Feed-forward", "Down", "o = W_D h", "Projects back to the width of the model: the contributions of the active elements."],
  ffn_output_norm: ["Feed-forward", "Norm of the result", "o ← norm(o)", "This model normalises the output before it is added."],
  ffn_stream: ["Feed-forward", "Add to the stream", "x ← x + o", "The next layer reads this vector."],
  final_stream: ["Output", "After the last layer", "x", "The residual stream after all layers."],
  final_norm: ["Output", "Final norm", "y = norm(x)", "The last normalisation, before the head."],
  logits: ["Output", "Logits", "z = W y", "One number for each token of the vocabulary; the ten largest are shown."],
  probabilities: ["Output", "Probabilities", "p_j = {exp(z_j)}/{Σ_i exp(z_i)}", "The softmax of the logits: the prediction of the next token."],
};

/** @type {Record<string, string>} the axes of the tensors, by the names of steps; all others are [T, C] */
const AXES = {
  embedding: "V C", query: "T H D", key: "S G D", value: "S G D", sum: "T H D", scores: "H T S", weights: "H T S", latent: "T W",
  cross_query: "T H D", cross_sum: "T H D", cross_scores: "H T S", cross_weights: "H T S", state: "T W", gates_input: "T W", gates_recurrent: "T W",
  ffn_gate: "T F", ffn_up: "T F", ffn_activation: "T F", ffn_product: "T F", router: "T E", logits: "T V", probabilities: "T V",
};

/** A shape with the names of its axes. @param {string} name @param {number[]} shape */
export function axesOf(name, shape) {
  const axes = (AXES[name] ?? "T C").split(" ");
  return shape.length === axes.length ? `[${shape.map((size, i) => `${axes[i]} ${size.toLocaleString("en")}`).join(", ")}]` : `[${shape.join(", ")}]`;
}
