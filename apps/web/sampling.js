// Temperature, top k and top p in the order of `fovea generate`.

/**
 * @param {Float32Array} logits @param {number} temperature @param {number} topK 0: all @param {number} topP 1: all
 * @param {number} count number of the most likely tokens to return
 * @returns {{order: Int32Array, probabilities: Float64Array, kept: number}} the most likely tokens, their sampling
 *   probabilities (0 beyond `kept`), and the number of tokens that remain
 */
export function filtered(logits, temperature, topK, topP, count) {
  const order = Int32Array.from(logits.keys());
  const many = Math.min(logits.length, Math.max(count, topK));
  // Only the top of a large vocabulary is sorted, unless top p may need more.
  if (topP < 1 || many * 8 > logits.length) order.sort((a, b) => logits[b] - logits[a] || a - b);
  else selectTop(order, logits, many);
  const most = logits[order[0]];
  const weight = (/** @type {number} */ id) => Math.exp((logits[id] - most) / temperature);
  let kept = topK > 0 ? Math.min(topK, logits.length) : logits.length;
  let total = 0;
  for (let i = 0; i < kept; ++i) total += weight(order[i]);
  if (topP < 1) {
    let sum = 0;
    let i = 0;
    while (i < kept && sum < topP * total) sum += weight(order[i++]);
    kept = i;
    total = sum;
  }
  const listed = order.slice(0, Math.min(count, logits.length));
  return { order: listed, probabilities: Float64Array.from(listed, (id, i) => (i < kept ? weight(id) / total : 0)), kept };
}

/** Moves the ids of the `many` largest logits to the front, in descending order. @param {Int32Array} order @param {Float32Array} logits @param {number} many */
function selectTop(order, logits, many) {
  const threshold = Float32Array.from(logits).sort()[logits.length - many];
  const top = [...order].filter((id) => logits[id] >= threshold).sort((a, b) => logits[b] - logits[a] || a - b);
  const others = [...order].filter((id) => logits[id] < threshold);
  order.set([...top, ...others]);
}
