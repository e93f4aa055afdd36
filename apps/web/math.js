// The arithmetic of the playgrounds, in double; tests compare it with the worked examples.

/** @typedef {number[][]} Matrix */

/** @param {Matrix} a @param {Matrix} b the product a bᵀ: rows of a with rows of b */
export function timesTransposed(a, b) {
  return a.map((x) => b.map((y) => dot(x, y)));
}

/** @param {Matrix} a @param {Matrix} b */
export function times(a, b) {
  return a.map((row) => b[0].map((_, j) => row.reduce((sum, x, i) => sum + (x === 0 ? 0 : x * b[i][j]), 0)));
}

/** @param {number[]} a @param {number[]} b */
export function dot(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

/** Subtracts the largest score first to avoid overflow. −∞ gives 0. @param {number[]} scores */
export function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0);
  const exps = scores.map((x) => Math.exp(x - most));
  const sum = exps.reduce((a, b) => a + b, 0);
  return exps.map((x) => x / sum);
}

/**
 * Vaswani et al. 2017, eq. 1. @param {Matrix} q @param {Matrix} k @param {Matrix} v @param {number} divisor
 * @param {(query: number, key: number) => boolean} [sees]
 */
export function attention(q, k, v, divisor, sees = () => true) {
  const scores = timesTransposed(q, k);
  const scaled = scores.map((row) => row.map((x) => x / divisor));
  const weights = scaled.map((row, i) => softmax(row.map((x, j) => (sees(i, j) ? x : -Infinity))));
  return { scores, scaled, weights, output: times(weights, v) };
}

/** The Frobenius norm of the Jacobian of the softmax: at most this fraction of a gradient passes. @param {number[]} p */
export function gradientThrough(p) {
  let squares = 0;
  for (let i = 0; i < p.length; ++i) for (let j = 0; j < p.length; ++j) squares += ((i === j ? p[i] : 0) - p[i] * p[j]) ** 2;
  return Math.sqrt(squares);
}

/** The entropy in nats. @param {number[]} p */
export function entropy(p) {
  return -p.reduce((sum, x) => sum + (x > 0 ? x * Math.log(x) : 0), 0);
}

/** Vaswani et al. 2017, 3.5. @param {number} position @param {number} dimension @param {number} width */
export function wave(position, dimension, width) {
  const angle = position / 10000 ** ((dimension - (dimension % 2)) / width);
  return dimension % 2 === 0 ? Math.sin(angle) : Math.cos(angle);
}

/** The wavelength in positions. @param {number} dimension @param {number} width */
export function wavelength(dimension, width) {
  return 2 * Math.PI * 10000 ** ((dimension - (dimension % 2)) / width);
}

/** Press et al. 2022. @param {number} head @param {number} heads */
export function alibiSlope(head, heads) {
  const power = 2 ** Math.floor(Math.log2(heads));
  return head < power ? 2 ** ((-8 / power) * (head + 1)) : 2 ** ((-4 / power) * (2 * (head - power) + 1));
}

/** Su et al. 2021, pairs (2i, 2i + 1). @param {number[]} x @param {number} position @param {number} base */
export function rotated(x, position, base) {
  const y = [...x];
  for (let i = 0; i + 1 < x.length; i += 2) {
    const angle = position * base ** (-i / x.length);
    y[i] = x[i] * Math.cos(angle) - x[i + 1] * Math.sin(angle);
    y[i + 1] = x[i + 1] * Math.cos(angle) + x[i] * Math.sin(angle);
  }
  return y;
}

/** (x − mean) / √(variance + ε) of one row. @param {number[]} x @param {number} [epsilon] */
export function layerNorm(x, epsilon = 1e-5) {
  const mean = x.reduce((a, b) => a + b, 0) / x.length;
  const variance = x.reduce((sum, each) => sum + (each - mean) ** 2, 0) / x.length;
  return x.map((each) => (each - mean) / Math.sqrt(variance + epsilon));
}

/** x / √(mean of squares + ε). @param {number[]} x @param {number} [epsilon] */
export function rmsNorm(x, epsilon = 1e-5) {
  const square = x.reduce((sum, each) => sum + each * each, 0) / x.length;
  return x.map((each) => each / Math.sqrt(square + epsilon));
}

/** Normalises the columns, as batch norm does in training. @param {Matrix} x @param {number} [epsilon] */
export function batchNorm(x, epsilon = 1e-5) {
  const columns = x[0].map((_, j) => layerNorm(x.map((row) => row[j]), epsilon));
  return x.map((row, i) => row.map((_, j) => columns[j][i]));
}

/** Pseudo-random numbers of mean 0 and variance 1, seeded by a text. @param {string} text @param {number} count */
export function randomOf(text, count) {
  let state = 2166136261;
  for (const letter of text) state = Math.imul(state ^ /** @type {number} */ (letter.codePointAt(0)), 16777619) >>> 0;
  const next = () => { // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
  };
  return Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(next())) * Math.cos(2 * Math.PI * next()));
}

const bits = new DataView(new ArrayBuffer(4));
/** Rounds to bfloat16, the upper half of a float32: to the nearest, ties to even. @param {number} x */
export function bf16(x) {
  if (!Number.isFinite(x)) return x;
  bits.setFloat32(0, x);
  const all = bits.getUint32(0);
  bits.setUint32(0, ((all + 0x7fff + ((all >>> 16) & 1)) & 0xffff0000) >>> 0);
  return bits.getFloat32(0);
}

/** A softmax as a program without a special case computes it, every result rounded. @param {number[]} scores @param {(x: number) => number} round */
export function plainSoftmax(scores, round) {
  const most = Math.max(...scores);
  const exps = scores.map((x) => round(Math.exp(round(x - most)))); // −∞ − −∞ is not a number
  const sum = exps.reduce((a, b) => round(a + b), 0);
  return exps.map((x) => round(x / sum));
}

/**
 * Vaswani et al. 2017, table 1: of one layer, multiplications, steps that wait for one another, and the longest path between two tokens.
 * @param {number} n tokens @param {number} d width
 */
export function layerCosts(n, d) {
  return { attention: { multiplications: n * n * d, steps: 1, path: 1 }, recurrence: { multiplications: n * d * d, steps: n, path: n - 1 } };
}
