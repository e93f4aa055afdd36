#pragma once

#include <string>
#include <vector>

#include "fovea/infer/generate.h"

namespace fovea::cli {

// The most likely tokens at one position of a generated text, each with the text that follows it.
struct Alternative {
  int32_t id = 0;
  float logprob = 0;
  infer::Generation generation;  // the whole text, from its first token
};

// Generates a text, and a text for each of the `count` most likely tokens at its position `at`,
// counted from 1. Throws InvalidArgument if the text is shorter.
std::vector<Alternative> alternatives(const model::Model& model, const std::vector<int32_t>& prompt,
                                      const infer::GenerateOptions& options, int64_t count,
                                      int64_t at, const infer::TextSink& sink);

std::string alternatives_text(const model::Model& model, const std::vector<Alternative>& all);
std::string alternatives_json(const model::Model& model, const std::vector<Alternative>& all,
                              int64_t at);

}  // namespace fovea::cli
