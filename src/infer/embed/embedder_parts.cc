#include "embed/embedder_parts.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "embed/batching.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

// Returns the number of tokens of a prompt before a text, including the special tokens before the
// prompt.
int64_t prompt_tokens(const TextFormat& format, const std::string& prompt) {
  if (prompt.empty() || format.reads_messages()) return 0;
  return static_cast<int64_t>(format.text(prompt).ids.size()) - format.trailing();
}

bool ends_normalised(const SentenceModules& modules) {
  return !modules.after.empty() && std::holds_alternative<NormalizeModule>(modules.after.back());
}

}  // namespace

std::string name_of(const EmbedOptions& options, size_t text) {
  return options.name_of_text ? options.name_of_text(text) : fmt::format("text {}", text + 1);
}

void check_whole(const std::vector<TokenizedText>& texts, int64_t most,
                 const EmbedOptions& options) {
  for (size_t i = 0; i < texts.size(); ++i) {
    const TokenizedText& text = texts[i];
    if (text.cut > 0)
      fail(ErrorKind::InvalidArgument, "{}: has {} tokens; expected at most {}",
           name_of(options, i), static_cast<int64_t>(text.ids.size()) + text.cut, most);
  }
}

void check_wanted(const std::function<bool()>& stop) {
  if (stop && stop()) fail(ErrorKind::Failed, "texts: cancelled by the caller");
}

std::string prompt_of(const NamedPrompts& model, const EmbedOptions& options) {
  if (options.prompt) return *options.prompt;
  const std::string& name =
      options.prompt_name.empty() ? model.default_prompt : options.prompt_name;
  if (name.empty()) return "";
  const auto found = model.prompts.find(name);
  if (found == model.prompts.end()) {
    std::vector<std::string> names;
    for (const auto& [known, prompt] : model.prompts) names.push_back(known);
    fail_field(ErrorKind::InvalidArgument, "prompt_name", "the model has no prompt {}; expected {}",
               name, names.empty() ? "no name" : fmt::format("one of {}", fmt::join(names, ", ")));
  }
  return found->second;
}

EmbedInput read_texts(const SentenceModel& model, const std::vector<std::string>& texts,
                      const EmbedOptions& options) {
  const int64_t width = model.modules.width;
  check_fields(options);
  check_field(options.dimensions <= width, "dimensions", "{}; expected 1 to {}, the model's width",
              options.dimensions, width);
  const bool whole = options.dimensions == 0 || options.dimensions == width;
  check_field(!whole || !ends_normalised(model.modules) || options.normalise.value_or(true),
              "normalise", "false, but the model itself normalises its vectors; expected true");
  const std::string prompt = prompt_of(model.modules, options);
  EmbedInput input;
  input.texts = tokenize_all(texts.size(), [&](size_t i) {
    check_wanted(options.stop);
    return model.format.text(prompt, texts[i]);
  });
  if (!options.truncate) check_whole(input.texts, model.format.most(), options);
  input.prompt = prompt_tokens(model.format, prompt);
  input.result.count = std::ssize(texts);
  input.result.width = options.dimensions > 0 ? options.dimensions : width;
  for (const TokenizedText& text : input.texts) {
    input.result.tokens.push_back(std::ssize(text.ids));
    input.result.cut.push_back(text.cut);
  }
  return input;
}

void check_finite(const Tensor& vectors, const EmbedOptions& options) {
  const int64_t width = vectors.dim(1);
  const HostValues<float> values(vectors);
  for (int64_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i]))
      fail(ErrorKind::Failed,
           "{}: its vector is not finite (element {}); expected a model with finite weights",
           name_of(options, static_cast<size_t>(i / width)), i % width);
}

Tensor finished(const Tensor& x, const SentenceModules& modules, const EmbedOptions& options) {
  const int64_t B = x.dim(0), C = x.dim(1);
  const int64_t D = options.dimensions > 0 ? options.dimensions : C;
  const bool normalised = ends_normalised(modules), wanted = options.normalise.value_or(normalised);
  Tensor y = x;
  if (D < C) {
    y = empty({B, D});
    for (int64_t b = 0; b < B; ++b) copy_elements(y, b * D, x, b * C, D);
  }
  return wanted && (D < C || !normalised) ? unit_length(y) : y;
}

std::vector<TokenizedText> read_pairs(const CrossEncoder& model,
                                      const std::vector<std::string>& queries,
                                      const std::vector<std::string>& texts,
                                      const RerankOptions& options) {
  check_fields(options);
  check(queries.size() == 1 || queries.size() == texts.size(),
        "queries: {}; expected 1 or {}, one for each text", queries.size(), texts.size());
  const std::string prompt = model.prompts.prompts.contains(model.prompts.default_prompt)
                                 ? model.prompts.prompts.at(model.prompts.default_prompt)
                                 : "";
  std::vector<std::vector<int32_t>> query_ids;  // of equal queries in a row only once
  std::vector<size_t> query_of;
  for (size_t i = 0; i < queries.size(); ++i) {
    if (model.format.reads_messages()) break;
    if (i == 0 || queries[i] != queries[i - 1])
      query_ids.push_back(model.format.own_ids(prompt + queries[i]));
    query_of.push_back(query_ids.size() - 1);
  }
  std::vector<TokenizedText> pairs = tokenize_all(texts.size(), [&](size_t i) {
    check_wanted(options.stop);
    const size_t query = queries.size() == 1 ? 0 : i;
    return model.format.reads_messages() ? model.format.pair(prompt, queries[query], texts[i])
                                         : model.format.pair(query_ids[query_of[query]], texts[i]);
  });
  for (size_t i = 0; i < pairs.size() && !options.truncate; ++i)
    check(pairs[i].cut == 0, "text {}: has {} tokens with the query; expected at most {}", i + 1,
          std::ssize(pairs[i].ids) + pairs[i].cut, model.format.most());
  return pairs;
}

std::vector<float> scores_of(const Tensor& logits, const CrossEncoder& model,
                             const RerankOptions& options) {
  const std::vector<float> scores =
      to_floats(options.raw || !model.activation ? logits : activation(logits, *model.activation));
  for (size_t i = 0; i < scores.size(); ++i)
    if (!std::isfinite(scores[i]))
      fail(ErrorKind::Failed,
           "text {}: its score is not finite; expected a model with finite weights", i + 1);
  return scores;
}

}  // namespace fovea::infer
