// What each part of a model is for: a table made from the parts that its Spec has.

/** @type {Record<string, [string, string, string]>} part: what it does, the reason, what breaks without it */
export const ROLES = {
  embedding: ["turns each token's id into a vector", "numbers that can be compared and learned replace a name", "there is nothing to compute with"],
  type: ["adds a vector for the first or the second sentence", "pairs of sentences share one input", "the two sentences cannot be told apart"],
  position: ["tells the tokens' places", "attention compares contents only; without a causal mask it gives the same result in any order", "to an encoder, “dog bites man” is “man bites dog”"],
  projection: ["maps the embeddings to the width of the layers", "a large vocabulary needs a narrow table", "the widths do not match"],
  norm: ["scales each vector to a common size", "layers then see inputs of the same size, however deep the model is", "little in small models: six layers train as well"],
  attention: ["mixes the vectors of several tokens", "each word reads from the words that matter to it, at any distance, in one step", "each token is processed alone: the model knows frequent words, not sentences"],
  cross: ["reads from the encoder", "each generated token looks for the words of the source that it translates", "the decoder writes fluently about anything but the source"],
  recurrence: ["passes a state from token to token", "its memory does not grow with the text", "each token is processed alone"],
  residual: ["adds the result to the stream instead of replacing it", "gradients pass straight through, and a layer may leave a vector as it is", "each layer must carry everything; from four layers on it fails"],
  ffn: ["computes on each token alone", "its first matrix detects patterns, the second writes what follows from them", "only averages of values remain"],
  experts: ["chooses a few of many feed-forward networks for each token", "more parameters than are computed for one token", "one network must know everything"],
  head: ["compares the last vector with every token of the vocabulary", "the nearest tokens are the likely ones", "there is no prediction"],
  softmax: ["turns scores into probabilities that add up to 1", "all scores count, and a sum of 1 can be sampled from", "scores cannot be compared or sampled from"],
  pool: ["combines the vectors of all tokens", "texts of different lengths get vectors of one width", "texts cannot be compared"],
  labels: ["computes a score for each label", "the labels are the answer that is asked for", "there is no answer"],
};

/** The parts of a picture in the order of the computation, each once, with the residual sum after the first mixer. @param {import("./diagram.js").Drawn[]} stacks */
export function partsOf(stacks) {
  /** @type {Map<string, import("./diagram.js").Box[]>} */
  const found = new Map();
  const add = (/** @type {string} */ part, /** @type {import("./diagram.js").Box} */ box) => {
    const all = found.get(part) ?? [];
    if (!all.some((each) => each.title === box.title && each.detail === box.detail)) all.push(box);
    found.set(part, all);
  };
  for (const stack of stacks) {
    for (const box of stack.input) add(box.part, box);
    for (const group of stack.groups) for (const sublayer of group.sublayers) {
      for (const box of sublayer.boxes) add(box.part, box);
      const mixer = sublayer.boxes.find((box) => box.lane === "branch" && box.part !== "norm");
      if (sublayer.add && mixer) add("residual", { ...mixer, part: "residual", title: "Residual sum", detail: "around each sublayer", shape: [], step: `${mixer.part === "cross" ? "cross" : mixer.part === "recurrence" ? "recurrence" : mixer.part === "attention" ? "attention" : "ffn"}_stream` });
    }
    for (const box of stack.output) add(box.part, box);
  }
  return [...found].filter(([part]) => part in ROLES);
}
