#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fovea/model/model.h"
#include "fovea/text/grammar.h"
#include "options/options.h"

namespace fovea::cli {

// The options that restrict the generated text to a grammar.
class GrammarOptions {
 public:
  void declare(OptionTable& table);
  // Returns the constraint of one request; empty without these options. Throws UsageError if
  // several are given, and the errors of fovea/text/grammar.h.
  text::Constraint constraint(const model::Model& model, int64_t most_tokens);

 private:
  std::string schema_, schema_file_, grammar_, grammar_file_, regex_;
  std::vector<std::string> choices_;
  std::shared_ptr<const text::JsonVocabulary> vocabulary_;  // made for the first constraint
};

}  // namespace fovea::cli
