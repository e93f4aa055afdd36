// Sentences with tagged links between two words, written for this page: half of them choose a head, the others test it.

/** @typedef {[string, string, string]} Tagged a text, the word whose query is asked, and the word that it should attend to; #2 is the second occurrence */
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
