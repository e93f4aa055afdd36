#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "fovea/text/json_grammar.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "grammar/key_scanner.h"

namespace fovea::text {

// Tokens sorted by their bytes, so that checking all of them reads common prefixes only once.
struct JsonVocabulary::Tokens {
  int64_t size = 0;
  std::vector<int32_t> ends;
  Grammar::Bytes usable;  // bytes that have their own token; the grammar uses only these
  std::vector<int32_t> ids;
  std::vector<std::string> bytes;
  std::vector<uint32_t> shared;  // length of the common prefix with the previous token
  std::vector<int32_t> ranks;    // by id: index in this order; -1 = special or without bytes
  std::vector<size_t> quoting;   // indices in this order of the tokens with a quotation mark

  // Returns the bytes of a token; empty for a special token.
  std::string_view bytes_of(int32_t id) const;
};

// Restricts the tokens of a text, from a position on, to the words of a grammar and the end of the
// text.
class GrammarConstraint {
 public:
  // `name`: of what describes the grammar, for errors. `of_json`: objects must not repeat a key.
  // Throws InvalidArgument if the vocabulary cannot represent a word.
  GrammarConstraint(std::shared_ptr<const JsonVocabulary> vocabulary, SchemaGrammar grammar,
                    const char* name, bool of_json);

  // Restricts the logits of the token after `head` and the tokens `generated`, of which at most
  // `most` may follow; -1 = no limit. A limit that is too small for the shortest word is ignored.
  void restrict(const std::string& head, std::span<const int32_t> generated, int64_t most,
                std::span<float> logits);
  // Returns whether `head` is the beginning of a word.
  bool begins(std::string_view head);

 private:
  struct Track {  // the state after a head and the tokens of a generation
    std::string head;
    std::vector<int32_t> generated;
    int32_t state;
    int64_t need = 0;  // bytes to the end of the shortest word, after the head
    KeyScanner keys = {};
  };
  struct Allowed {  // the tokens that are allowed in a state
    std::vector<bool> ids;
    int64_t most_need = 0;  // the largest `need` after one of these tokens
  };

  void forbid_repeated_keys(const Track& track, float* logits, int64_t vocabulary) const;
  void forget();
  int64_t need_with_end(int32_t state) const { return automaton_.need(state) + 1; }
  int32_t read(int32_t state, std::string_view bytes);
  const Track& track_of(const std::string& head, std::span<const int32_t> generated);
  const Track& advance(Track& track, std::span<const int32_t> generated);
  const Allowed& allowed(int32_t state, int64_t left);
  Allowed walk(int32_t state, int64_t most_need);

  std::shared_ptr<const JsonVocabulary> vocabulary_;
  const JsonVocabulary::Tokens& tokens_;
  SchemaGrammar grammar_;
  bool of_json_;
  GrammarAutomaton automaton_;
  std::vector<Track> tracks_;
  std::unordered_map<int32_t, Allowed> masks_;
  Allowed hurried_;
};

}  // namespace fovea::text
