#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fovea/infer/generate.h"

namespace fovea::python {

struct GenerationRequest {
  infer::GenerateOptions options;  // without the constraint of the grammar
  std::optional<model::Model> draft;
  // The kind of a grammar (schema, gbnf or regex) and its text.
  std::optional<std::pair<std::string, std::string>> grammar;
  std::vector<std::string> choices;  // one of which is generated; empty = any text
  // What a function of Python has thrown; the library reports it as an error of its own.
  std::shared_ptr<std::exception_ptr> thrown = std::make_shared<std::exception_ptr>();

  // Returns the options of one request: the constraint of a grammar is for one only.
  infer::GenerateOptions options_for(const model::Model& model) const;
  // Returns work(), or throws what a function of Python has thrown meanwhile.
  template <class Work>
  auto rethrowing(const Work& work) const {
    try {
      return work();
    } catch (...) {
      if (*thrown) std::rethrow_exception(*thrown);
      throw;
    }
  }
};

// Returns the model's defaults, changed by keyword arguments: the fields of GenerateOptions, and
// draft, logits, logit_bias, keep_special, schema, gbnf, regex and choices. Without a seed, it is
// random.
GenerationRequest generation_request(const model::Model& model, const nanobind::kwargs& given);

using PromptText = std::variant<std::string, std::vector<int32_t>>;  // or token ids
infer::ImagePrompt prompt_of(const model::Model& model, const PromptText& prompt,
                             const std::vector<media::Image>& images, bool parse_special);

}  // namespace fovea::python
