#pragma once

#include <string>
#include <vector>

#include "fovea/generate.h"

namespace fovea::cli {

// The most likely tokens at one place of a generated text, each with the text that follows it.
struct Alternative {
  int32_t id = 0;
  float logprob = 0;
  Generation generation;  // the whole text, from its first token
};

// Generates a text, and a text for each of the `count` most likely tokens at its place `at`,
// counted from 1. Throws InvalidArgument if the text is shorter.
std::vector<Alternative> alternatives(const Model& model, const std::vector<int32_t>& prompt,
                                      const GenerateOptions& options, int64_t count, int64_t at,
                                      const TextSink& sink);

std::string alternatives_text(const Model& model, const std::vector<Alternative>& all);
std::string alternatives_json(const Model& model, const std::vector<Alternative>& all, int64_t at);

}  // namespace fovea::cli
