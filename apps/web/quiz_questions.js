// The quiz, from easy to hard. `facts` are the numbers in a question and its explanation: a test compares them with the
// worked examples (example, quantity, index in its data, value as written here).

/**
 * @typedef {object} Question
 * @property {string} ask
 * @property {string[]} choices
 * @property {number} answer index of the correct choice
 * @property {string} why
 * @property {string} [view] the address of a view that shows the answer
 * @property {[string, string, number, number][]} [facts]
 */
/** @type {Question[]} */
export const questions = [
  { ask: "In self-attention, what do the weights of one query add up to?", choices: ["1", "The number of keys", "√d", "They need not add up to anything"], view: "view=sentence", answer: 0,
    why: "The softmax runs over the keys, so the weights in each row of the map add up to 1. If they do not, the softmax is applied to the wrong axis. A column may have any sum, since many tokens may attend to the same one.",
    facts: [["s000.attn3.weights.full", "row_sums", 0, 1]] },
  { ask: "A model is 512 wide and has 8 heads. How wide is a head?", choices: ["512", "64", "8", "4096"], view: "view=play&play=heads", answer: 1,
    why: "512 / 8 = 64. The concatenated heads are 512 wide again, so the output matrix is 512 × 512.", facts: [["s004.headdim.512", "d_k", 0, 64], ["s004.headdim.512", "concat", 0, 512]] },
  { ask: "With heads of width 64, by what are the scores divided?", choices: ["64", "16", "8", "Nothing"], view: "view=play&play=attention", answer: 2,
    why: "By √64 = 8. A dot product of 64 numbers of variance 1 has variance 64; divided by 8 it has variance 1 again.", facts: [["s000.scale.64", "sqrt", 0, 8]] },
  { ask: "How many parameters does multi-head attention have, compared with one head of full width?", choices: ["h times as many", "The same number", "√h times as many", "Fewer"], view: "view=play&play=heads", answer: 1,
    why: "Each of the 8 heads projects 512 numbers to 64: 8 × 512 × 64 = 262,144, as many as one projection from 512 to 512. The width is divided among the heads, not multiplied.", facts: [["s000.mha.cost", "per_projection", 0, 262144]] },
  { ask: "Scores 1, 0 and 0.5 go through a softmax. What is the first weight?", choices: ["0.667", "0.506", "0.333", "1"], view: "view=play&play=example", answer: 1,
    why: "exp gives 2.718, 1 and 1.649, together 5.367. 2.718 / 5.367 = 0.506. Dividing the scores themselves by their sum would give 0.667: that is not a softmax.", facts: [["s000.softmax.row0", "exp", 0, 2.718], ["s000.softmax.row0", "exp", 2, 1.649], ["s000.softmax.row0", "sum", 0, 5.367], ["s000.softmax.row0", "softmax", 0, 0.506]] },
  { ask: "What does softmax(1000, 1001, 1002) give?", choices: ["It overflows and has no result", "0, 0, 1", "0.090, 0.245, 0.665", "0.333 each"], view: "view=play&play=maskvalue", answer: 2,
    why: "Only differences matter: subtracting the largest score gives softmax(−2, −1, 0). A program that does not subtract it overflows.", facts: [["s003.softmax.1000", "softmax", 0, 0.090], ["s003.softmax.1000", "softmax", 1, 0.245], ["s003.softmax.1000", "softmax", 2, 0.665]] },
  { ask: "How many steps separate word 1 and word 50 in a recurrent network, and in one layer of self-attention?", choices: ["49 and 1", "50 and 50", "49 and 49", "1 and 49"], view: "view=play&play=recurrence", answer: 0,
    why: "A recurrent network passes on its state 49 times. In self-attention, word 50 attends to word 1 directly.", facts: [["s004.path50", "steps", 0, 49]] },
  { ask: "Three tokens, causal mask. What are the weights of the first token?", choices: ["1, 0, 0", "0.506, 0.186, 0.307", "0.333 each", "0, 0, 1"], view: "view=play&play=example", answer: 0,
    why: "It sees only itself, which gets all of the weight for any scores. The scores of later tokens are −∞ before the softmax, so their weights are 0.", facts: [["d.s000.attn3.causal", "weights", 0, 1], ["d.s000.attn3.causal", "weights", 1, 0], ["s000.attn3.weights.full", "weights", 1, 0.186], ["s000.attn3.weights.full", "weights", 2, 0.307]] },
  { ask: "A text grows from 1,000 to 100,000 tokens. How many times more pairs does full attention compare?", choices: ["100", "1,000", "10,000", "1,000,000"], view: "view=play&play=masks", answer: 2,
    why: "From 1,000,000 pairs to 10,000,000,000: the number of pairs is the length squared. A text that is 100 times longer has 10,000 times as many pairs.", facts: [["s001.pairs", "pairs_1k", 0, 1000000], ["s001.pairs", "pairs_100k", 0, 10000000000]] },
  { ask: "100 tokens, causal, with a window of 16. How many of the 10,000 pairs remain?", choices: ["5,050", "1,600", "1,480", "160"], view: "view=play&play=masks", answer: 2,
    why: "Each token sees 16 tokens, including itself, but the first 15 see fewer: 100 × 16 − (15 + 14 + … + 1) = 1,480. The causal mask alone leaves 5,050.", facts: [["d.window.pairs", "full", 0, 10000], ["d.window.pairs", "causal", 0, 5050], ["d.window.pairs", "causal_window", 0, 1480]] },
  { ask: "Logits 2, 1, 0.5 and −1 at temperature 0.5: what is the probability of the most likely token, which is 0.609 at temperature 1?", choices: ["0.304", "0.609", "0.842", "0.999"], view: "view=say", answer: 2,
    why: "Dividing by 0.5 doubles all differences, so the probability of the most likely token increases to 0.842. The temperature changes the confidence of the model, but not the order of the tokens.", facts: [["d.temperature", "probs", 4, 0.842], ["d.temperature", "probs", 8, 0.609]] },
  { ask: "The Jacobian of softmax(1, 2, 3) has the norm 0.389. What is its norm if the scores are ten times as large?", choices: ["3.9", "0.389", "0.039", "0.00009"], view: "view=play&play=attention", answer: 3,
    why: "The softmax is saturated: one key has nearly all of the weight, and the Jacobian nearly vanishes. The divisor √d prevents this.", facts: [["d.softmax.saturation.jacobian", "jacobian_fro", 0, 0.389], ["d.softmax.saturation.jacobian", "jacobian_fro", 1, 0.00009]] },
  { ask: "Layer norm of (1, 2, 3), with variance over all three: what is the last number?", choices: ["1", "1.2247", "0.8165", "1.5"], view: "view=play&play=norms", answer: 1,
    why: "Mean 2, variance 0.6667, standard deviation 0.8165; (3 − 2) / 0.8165 = 1.2247. Dividing the variance by n − 1 would give 1.", facts: [["s003.layernorm.123", "mean", 0, 2], ["s003.layernorm.123", "var", 0, 0.6667], ["s003.layernorm.123", "std", 0, 0.8165], ["s003.layernorm.123", "y", 2, 1.2247]] },
  { ask: "RMS norm of (1, 2, 3, 4): what is the first number, and why is it not negative as in layer norm?", choices: ["−1.3416; it is", "0.3651; no mean is subtracted", "0.25; the sum is 1", "0; the mean is 0"], view: "view=play&play=norms", answer: 1,
    why: "RMS norm only divides by the root mean square, √7.5. Layer norm first subtracts the mean 2.5 and gives −1.3416.", facts: [["d.rmsnorm.2x3x4", "y", 0, 0.3651], ["d.layernorm.2x3x4", "y", 0, -1.3416]] },
  { ask: "Sinusoidal positions, width 4: what is the vector of position 1?", choices: ["0, 1, 0, 1", "0.841, 0.540, 0.010, 1.000", "1, 1, 1, 1", "0.841, 0.010, 0.540, 1.000"], view: "view=play&play=waves", answer: 1,
    why: "sin 1, cos 1, sin 0.01, cos 0.01: the first pair has a wavelength of 6.28 positions, the second a wavelength 100 times longer. Position 0 is 0, 1, 0, 1.", facts: [["s003.pe.4x4", "pe", 4, 0.841], ["s003.pe.4x4", "pe", 5, 0.540], ["s003.pe.4x4", "pe", 6, 0.010], ["s003.pe.4x4", "pe", 7, 0.99995], ["s004.pe.wavelength", "first", 0, 6.28]] },
  { ask: "Eight heads with ALiBi. By how much does the first head reduce the score of a key at distance 10?", choices: ["0.5", "5", "10", "0.039"], view: "view=play&play=alibi", answer: 1,
    why: "The first slope of eight heads is 1/2, and 1/2 × 10 = 5. The last slope is 1/256: that head reduces the score by only 0.039.", facts: [["d.alibi.slopes", "slopes", 0, 0.5], ["d.alibi.slopes", "slopes", 7, 0.00390625]] },
  { ask: "Query (1, 0, 1), keys (1, 1, 0), (0, 1, 1) and (1, 0, 1), scaled by √3. What is the weight of the third key?", choices: ["0.264", "0.333", "0.471", "0.576"], view: "view=play&play=own", answer: 2,
    why: "Scores 1, 1 and 2; divided by √3: 0.577, 0.577, 1.155; softmax: 0.264, 0.264, 0.471. Without the divisor it would be 0.576.", facts: [["s004.attn2x3", "scores_scaled", 0, 0.577], ["s004.attn2x3", "scores_scaled", 2, 1.155], ["s004.attn2x3", "weights", 0, 0.264], ["s004.attn2x3", "weights", 2, 0.471], ["d.s004.divisor", "weights", 8, 0.576]] },
  { ask: "Why may a decoder keep the keys and values of earlier tokens instead of computing them again?", choices: ["They are small", "Because of the causal mask, later tokens cannot change them", "They are the same for all heads", "It may not; they change with every token"], view: "view=play&play=leak", answer: 1,
    why: "A token sees only itself and earlier tokens, so its residual stream never changes, and neither do its keys and values. The key-value cache stores them: each new token costs one row of attention." },
  { ask: "An encoder layer without positions reads “dog bites man” and “man bites dog”. How do the results for “dog” differ?", choices: ["They are equal", "They have opposite signs", "The first is larger", "They differ by a rotation"], view: "view=play&play=order", answer: 0,
    why: "Attention compares contents: the same words in another order give each word the same keys, weights and values, so the same result. Only positions make the order visible." },
  { ask: "Why is the vector of the position added to the embedding, and not concatenated?", choices: ["Concatenation has no gradient", "The width, and with it every matrix, stays the same, and a matrix can still tell the two apart", "Added vectors are normalised", "Positions are too small to be concatenated"], view: "view=play&play=waves", answer: 1,
    why: "Concatenated positions would make all matrices wider. In a space of hundreds of dimensions, training can keep the directions of positions and of contents apart, so that their sum loses little." },
  { ask: "Why does the sinusoidal encoding use a base as large as 10000?", choices: ["It is the length of the longest text", "It makes the vectors orthogonal", "The slowest wave is then longer than any usual text, and does not repeat within it", "It is the size of the vocabulary"], view: "view=play&play=waves", answer: 2,
    why: "The wavelengths run from 2π to about 10000 · 2π positions. Fast waves tell neighbours apart; the slow ones change so slowly that distant positions never look alike." },
];
