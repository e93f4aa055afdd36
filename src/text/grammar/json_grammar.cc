#include "fovea/text/grammar.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/float_mode.h"
#include "grammar/grammar_constraint.h"
#include "grammar/syntax.h"

namespace fovea::text {

JsonVocabulary::JsonVocabulary(const Tokenizer& tokenizer, std::vector<int32_t> ends,
                               const std::vector<int32_t>& marks) {
  check(!ends.empty(), "the model has no end-of-text token; expected one, to end the text");
  auto tokens = std::make_unique<Tokens>();
  tokens->size = tokenizer.size();
  tokens->ends = std::move(ends);
  std::vector<std::pair<std::string, int32_t>> all;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    const auto among = [id](const std::vector<int32_t>& ids) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    const bool special = tokenizer.is_special(id);
    if (among(tokens->ends) || (special && !among(marks))) continue;
    std::string bytes = special ? std::string(tokenizer.text_of(id)) : tokenizer.bytes_of(id);
    if (bytes.size() == 1) tokens->usable.set(static_cast<uint8_t>(bytes[0]));
    if (!bytes.empty()) all.emplace_back(std::move(bytes), id);
  }
  std::sort(all.begin(), all.end());
  std::string_view before;
  for (auto& [bytes, id] : all) {
    const size_t most = std::min(bytes.size(), before.size());
    const auto differ = std::mismatch(
        bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(most), before.begin());
    tokens->shared.push_back(static_cast<uint32_t>(differ.first - bytes.begin()));
    tokens->ids.push_back(id);
    before = bytes;
  }
  tokens->ranks.assign(static_cast<size_t>(tokens->size), -1);
  for (auto& [bytes, id] : all) {
    tokens->ranks[static_cast<size_t>(id)] = static_cast<int32_t>(tokens->bytes.size());
    if (bytes.find('"') != std::string::npos) tokens->quoting.push_back(tokens->bytes.size());
    tokens->bytes.push_back(std::move(bytes));
  }
  tokens_ = std::move(tokens);
}

JsonVocabulary::~JsonVocabulary() = default;

namespace {

Constraint constraint_of(std::shared_ptr<const JsonVocabulary> vocabulary, SchemaGrammar grammar,
                         int64_t most_tokens, const char* name, bool of_json = false) {
  auto constraint =
      std::make_shared<GrammarConstraint>(std::move(vocabulary), std::move(grammar), name, of_json);
  return [constraint, most_tokens](std::span<const int32_t> generated, std::span<float> logits) {
    constraint->restrict("", generated, most_tokens, logits);
  };
}

}  // namespace

Constraint json_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                           std::string_view schema, int64_t most_tokens) {
  const FloatMode mode;
  SchemaGrammar grammar = schema_grammar(schema, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "schema", true);
}

Constraint gbnf_constraint(std::shared_ptr<const JsonVocabulary> vocabulary, std::string_view text,
                           int64_t most_tokens) {
  SchemaGrammar grammar = gbnf_grammar(text, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "grammar");
}

Constraint regex_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                            std::string_view regex, int64_t most_tokens) {
  SchemaGrammar grammar = regex_grammar(regex, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "regex");
}

Constraint choice_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                             const std::vector<std::string>& texts, int64_t most_tokens) {
  SchemaGrammar grammar = choice_grammar(texts, vocabulary->tokens().usable);
  return constraint_of(std::move(vocabulary), std::move(grammar), most_tokens, "choice");
}

}  // namespace fovea::text
