// Sentences with tagged links between two words, written for this page: half of them choose a head, the others test it.

/** @typedef {{layer: number, head: number, row: Float32Array}} Row the weights of one query in one head */
/** @typedef {{from: number, to: Set<number>, rows: Row[]}} Example */
/** @typedef {[string, string, string]} Tagged a text, the word whose query is asked, and the word that it should attend to */
export const OFFSETS = 8; // farthest fixed offset with which a head is compared

/** @type {Record<string, {name: string, meaning: string, pairs: Tagged[]}>} */
export const TAGGED = {
  subject: { name: "verb to its subject", meaning: "from a verb to the noun that it agrees with, past a noun between them", pairs: [
    ["The keys near the cup are small.", "are", "keys"], ["The man near the horses likes a ring.", "likes", "man"],
    ["The dogs by the river want food.", "want", "dogs"], ["The teacher of the children knows a book.", "knows", "teacher"],
    ["The woman with the cats sees a hat.", "sees", "woman"], ["The birds in the tree sing a song.", "sing", "birds"],
    ["The king of the hills finds a coin.", "finds", "king"], ["The farmers near the house have an apple.", "have", "farmers"]] },
  antecedent: { name: "pronoun to its noun", meaning: "from a pronoun to the word that it stands for", pairs: [
    ["The animal did not cross the street because it was too tired.", "it", "animal"], ["Mary went to the store because she wanted a cup.", "she", "Mary"],
    ["John left the park because he was hungry.", "he", "John"], ["The dog sat by the river because it was sick.", "it", "dog"],
    ["Anna saw the school and she liked it.", "she", "Anna"], ["Peter lost the key and he found a coin.", "he", "Peter"],
    ["The children ran home because they were afraid.", "they", "children"], ["Emma took the letter because she knew the king.", "she", "Emma"]] },
  adjective: { name: "noun to its adjective", meaning: "from a noun to the adjective before it", pairs: [
    ["The old man sees a red ring.", "ring", "red"], ["A small dog likes the quiet garden.", "garden", "quiet"],
    ["The king wants a new and green hat.", "hat", "green"], ["She found a tall, cold house.", "house", "tall"],
    ["The happy child has a red apple.", "child", "happy"], ["They crossed the wide and dark river.", "river", "wide"],
    ["A tired, hungry horse stood there.", "horse", "tired"], ["He gave the small key to the old doctor.", "doctor", "old"]] },
  object: { name: "object to its verb", meaning: "from an object to its verb", pairs: [
    ["The man finds a small red coin.", "coin", "finds"], ["The woman wants the old book.", "book", "wants"],
    ["A farmer sees the tall horse.", "horse", "sees"], ["The doctor has a new letter.", "letter", "has"],
    ["The child likes the quiet dog.", "dog", "likes"], ["The queen knows a happy teacher.", "teacher", "knows"],
    ["Tom gave a small ring to Anna.", "ring", "gave"], ["Lucy found the green cup.", "cup", "found"]] },
  meaning: { name: "similar meaning", meaning: "between words of similar meaning", pairs: [
    ["The cat saw a dog.", "dog", "cat"], ["The king spoke to the queen.", "queen", "king"], ["The store is near the market.", "market", "store"],
    ["A man met a woman.", "woman", "man"], ["The road leads to the street.", "street", "road"], ["A horse stood beside the cow.", "cow", "horse"],
    ["The house is old, the school is new.", "school", "house"], ["He lost a coin and a ring.", "ring", "coin"]] },
  connective: { name: "connective to the first clause", meaning: "from because, but or when to the verb of the clause before", pairs: [
    ["Mary left because John wanted a book.", "because", "left"], ["The dog slept but the cat sat.", "but", "slept"],
    ["The king went home because he was old.", "because", "went"], ["The horse swam when the boat lay there.", "when", "swam"],
    ["Tom likes the hat but Anna wants a cup.", "but", "likes"], ["The child ran because it was cold.", "because", "ran"],
    ["The farmer sat when the fox came.", "when", "sat"], ["Paul knows the road but Max lost it.", "but", "knows"]] },
};

/** The tokens of a word or, as in "green:2", of its second occurrence. @param {import("./api.js").Token[]} tokens @param {string} name @returns {number[]} */
export function tokensOf(tokens, name) {
  const [word, nth = "1"] = name.toLowerCase().split(/:(?=\d+$)/);
  const parts = tokens.map((token) => (token.special ? "" : token.text.replace(/^##/, "").toLowerCase()));
  const literal = word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  const at = [...parts.join("").matchAll(new RegExp(`(?<!\\p{L})${literal}(?!\\p{L})`, "gu"))][Number(nth) - 1]?.index ?? -1;
  if (at < 0) return [...parts.keys()].filter((i) => parts[i].trim() === word).slice(Number(nth) - 1, Number(nth)); // tokens without spaces
  let begin = 0;
  return parts.flatMap((part, i) => {
    const end = begin + part.length;
    const inside = part.length > 0 && begin < at + word.length && end > at;
    begin = end;
    return inside ? [i] : [];
  });
}

/** The token of an address: its number, or the last one of a word, or "". @param {import("./api.js").Token[]} tokens @param {string} name */
export function tokenOf(tokens, name) {
  const at = /^\d*$/.test(name) ? name : String(tokensOf(tokens, name).at(-1) ?? "");
  return Number(at) < tokens.length ? at : "";
}

/** Whether a row's largest weight, apart from the first token and the token itself, is on the target. @param {Example} example @param {Float32Array} row */
function hits({ from, to }, row) {
  let best = -1;
  row.forEach((weight, key) => { if (key !== from && (key > 0 || to.has(0)) && weight > 0 && (best < 0 || weight > row[best])) best = key; });
  return to.has(best);
}

/** @param {Example[]} examples @param {(example: Example) => boolean} right */
const share = (examples, right) => examples.filter(right).length / Math.max(examples.length, 1);

/** The head of a tagged link, with its score on the half that did not choose it. @param {Example[]} examples @returns {{layer: number, head: number, score: number, least: number} | null} */
export function taggedHead(examples) {
  const [choosing, testing] = [examples.filter((_, i) => i % 2 === 0), examples.filter((_, i) => i % 2 === 1)];
  if (choosing.length < 2 || testing.length < 2) return null;
  const of = (/** @type {Example[]} */ some, /** @type {number} */ n) => share(some, (example) => hits(example, example.rows[n].row));
  const best = choosing[0].rows.map((_, n) => n).reduce((a, b) => (of(choosing, b) > of(choosing, a) ? b : a), 0);
  const fixed = (/** @type {Example[]} */ some, /** @type {number} */ offset) => share(some, ({ from, to }) => to.has(from - offset));
  const offsets = Array.from({ length: 2 * OFFSETS + 1 }, (_, i) => i - OFFSETS).filter(Boolean);
  const offset = offsets.reduce((a, b) => (fixed(choosing, b) > fixed(choosing, a) ? b : a), 1);
  const { layer, head } = choosing[0].rows[best];
  return { layer, head, score: of(testing, best), least: fixed(testing, offset) };
}
