#pragma once

// The explanation of one text, for every kind of output.

#include <optional>
#include <string>
#include <vector>

#include "explain/output.h"
#include "fovea/study/explain.h"

namespace fovea::study {

// The token of the baseline; no id = a vector of zeros.
struct BaselineToken {
  std::string name;
  std::optional<int32_t> id;
};

// What the explanations of a call have in common.
struct ExplainSettings {
  const ExplainOptions& options;
  const text::Tokenizer* tokenizer;
  BaselineToken baseline;
  std::vector<AttributionMethod> methods;

  // `known`: null = the model has no tokenizer. Throws InvalidArgument if the tokenizer has no such
  // baseline, and Unsupported if the method does not fit the model.
  ExplainSettings(const ExplainOptions& given, const text::Tokenizer* known,
                  const model::Transformer& model);
};

// Returns the explanation of one text, without the names of its outputs.
Explanation explained(const ExplainedOutput& output, const ExplainedText& text,
                      const ExplainSettings& settings);

// Special tokens are not the text's own, except the unknown token, which stands for a part of the
// text, and neither are the first `prompt` tokens.
ExplainedText explained_text(infer::TokenizedText tokens, const text::Tokenizer* tokenizer,
                             int64_t prompt);

// Returns texts that are no pairs. Throws InvalidArgument, naming the text, if one is a pair.
std::vector<std::string> single_texts(const std::vector<infer::TextInput>& texts,
                                      const infer::ClassifyOptions& options);

// Returns the index of a label. Throws a FieldError of "target" if no label has this name.
size_t label_named(const std::vector<std::string>& labels, const std::string& name);

}  // namespace fovea::study
