// Explanations of what a classifier finds in a text: entities, answers and masked words.

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "base/float_mode.h"
#include "explain/explained.h"
#include "explain/token_outputs.h"
#include "fovea/core/excerpt.h"
#include "inspect/token_texts.h"
#include "tensor/host_values.h"

namespace fovea::study {
namespace {

// What the explanations of all results of a call have in common.
struct ResultExplainer {
  const infer::Classifier::Parts& parts;
  const ExactModel exact;
  const ExplainSettings chosen, others;  // with and without attributions; see ExplainOptions::only

  ResultExplainer(const infer::Classifier& classifier, const ExplainOptions& options)
      : parts(classifier.parts()),
        exact(exact_copy(parts.transformer)),
        chosen(options, &classifier.tokenizer(), *exact),
        others(without_methods(chosen)) {}

  static ExplainSettings without_methods(ExplainSettings settings) {
    settings.methods.clear();
    return settings;
  }
  bool is_chosen(size_t number) const {
    return chosen.options.only < 0 || static_cast<size_t>(chosen.options.only) == number;
  }
  // Return the settings and the target of the result with this number.
  const ExplainSettings& settings_of(size_t number) const {
    return is_chosen(number) ? chosen : others;
  }
  std::string target_of(size_t number) const {
    return is_chosen(number) ? chosen.options.target : "";
  }
  const text::Tokenizer* tokenizer() const { return chosen.tokenizer; }

  // Returns a text whose output is about the tokens [begin, end).
  ExplainedText about(const infer::TokenizedText& tokens, int64_t begin, int64_t end) const {
    ExplainedText text = explained_text(tokens, tokenizer(), 0);
    text.positions.resize(static_cast<size_t>(end - begin));
    std::iota(text.positions.begin(), text.positions.end(), begin);
    return text;
  }

  // `number`: that of the result among those of its text.
  Explanation of_mask(const infer::TokenizedText& tokens, int64_t position, size_t number) const;
  Explanation of_entity(const ExplainedText& text, const std::string& label, size_t number) const;
  Explanation of_answer(const ExplainedText& text, const std::string& answer, size_t number) const;
};

Explanation ResultExplainer::of_mask(const infer::TokenizedText& tokens, int64_t position,
                                     size_t number) const {
  const ExplainedText text = about(tokens, position, position + 1);
  const std::vector<NextToken> likely = likely_at(parts, *exact, text);
  const std::string target = target_of(number);
  const int32_t id =
      target.empty() ? likely.front().id : token_named(target, tokenizer(), exact->spec.vocabulary);
  Explanation result = explained(mask_output(parts, exact, text, id), text, settings_of(number));
  result.target = display_tokens(tokenizer(), {id})[0].text;
  result.value_name = "log-probability";
  for (const NextToken& token : likely)
    result.outputs.push_back(
        {display_tokens(tokenizer(), {token.id})[0].text, token.probability, token.id});
  return result;
}

// Returns for each token the most probable of the labels that `name` names, with or without a
// prefix.   probabilities [tokens, labels]
std::vector<int32_t> labels_of_tokens(const Tensor& probabilities, const std::string& name,
                                      const std::vector<std::string>& labels) {
  const std::vector<infer::Tag> tags = infer::tags_of(labels);
  std::vector<int32_t> named;
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == name || tags[i].name == name) named.push_back(static_cast<int32_t>(i));
  if (named.empty()) label_named(labels, name);  // throws
  std::vector<int32_t> chosen;
  const HostValues<float> all(probabilities);
  for (int64_t token = 0; token < probabilities.dim(0); ++token) {
    const float* const p = all.row(token).data();
    chosen.push_back(*std::max_element(named.begin(), named.end(),
                                       [p](int32_t a, int32_t b) { return p[a] < p[b]; }));
  }
  return chosen;
}

Explanation ResultExplainer::of_entity(const ExplainedText& text, const std::string& label,
                                       size_t number) const {
  const Tensor probabilities = entity_probabilities(parts, *exact, text);
  const std::string target = target_of(number);
  const std::string& name = target.empty() ? label : target;
  Explanation result = explained(
      entity_output(parts, exact, text, labels_of_tokens(probabilities, name, parts.labels)), text,
      settings_of(number));
  result.target = name;
  result.value_name = "logit";
  const int64_t tokens = probabilities.dim(0), count = probabilities.dim(1);
  const HostValues<float> all(probabilities);
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t token = 0; token < tokens; ++token) sum += double{all[token * count + i]};
    result.outputs.push_back(
        {parts.labels[static_cast<size_t>(i)], sum / static_cast<double>(tokens)});
  }
  std::stable_sort(result.outputs.begin(), result.outputs.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  return result;
}

Explanation ResultExplainer::of_answer(const ExplainedText& text, const std::string& answer,
                                       size_t number) const {
  Explanation result = explained(span_output(parts, exact, text), text, settings_of(number));
  result.target = answer;
  result.value_name = "logit";
  return result;
}

std::vector<Explanation> explain_masks(const ResultExplainer& explainer, const std::string& text,
                                       const infer::ClassifyOptions& options, size_t index) {
  const infer::TokenizedText tokens = infer::masked_text(explainer.parts, text, options, index);
  infer::check_lengths({tokens}, explainer.parts.format.most(), options);
  std::vector<Explanation> results;
  for (const int64_t position : infer::mask_positions(tokens, explainer.parts.mask.value()))
    results.push_back(explainer.of_mask(tokens, position, results.size()));
  return results;
}

std::vector<std::vector<Explanation>> explain_answers(const ResultExplainer& explainer,
                                                      const std::vector<infer::TextInput>& texts,
                                                      const infer::ClassifyOptions& options) {
  check_field(explainer.chosen.options.target.empty(), "target",
              "\"{}\"; expected none: what is explained is each answer that is found",
              excerpt(explainer.chosen.options.target));
  std::vector<infer::Question> questions;
  for (const infer::TextInput& text : texts)
    questions.push_back({text.text, text.pair.value_or("")});
  const auto read = infer::read_answers(explainer.parts, questions, options);
  std::vector<std::vector<Explanation>> results;
  for (const auto& answers : read.texts) {
    auto& list = results.emplace_back();
    for (const auto& one : answers) {
      infer::check_not_stopped(options);
      list.push_back(
          explainer.of_answer(explainer.about(read.windows[one.window], one.begin, one.end),
                              one.result.text, list.size()));
    }
  }
  return results;
}

std::vector<std::vector<Explanation>> explain_entities(const ResultExplainer& explainer,
                                                       const std::vector<std::string>& texts,
                                                       const infer::ClassifyOptions& options) {
  const auto read = infer::read_entities(explainer.parts, texts, options);
  std::vector<std::vector<Explanation>> results;
  for (const auto& entities : read.texts) {
    auto& list = results.emplace_back();
    for (const auto& one : entities) {
      infer::check_not_stopped(options);
      list.push_back(
          explainer.of_entity(explainer.about(read.windows[one.window], one.begin, one.end),
                              one.result.label, list.size()));
    }
  }
  return results;
}

}  // namespace

std::vector<std::vector<Explanation>> explain_results(
    const infer::Classifier& classifier, const std::vector<infer::TextInput>& texts,
    const ExplainOptions& options, const infer::ClassifyOptions& classify_options) {
  const FloatMode mode;
  check_fields(options);
  check_fields(classify_options);
  const infer::ClassifierTask task = classifier.task();
  if (task == infer::ClassifierTask::texts) {
    std::vector<std::vector<Explanation>> results;
    for (Explanation& one : explain(classifier, texts, options, classify_options))
      results.push_back({std::move(one)});
    return results;
  }
  const ResultExplainer explainer(classifier, options);
  if (task == infer::ClassifierTask::answers)
    return explain_answers(explainer, texts, classify_options);
  const std::vector<std::string> single = single_texts(texts, classify_options);
  if (task == infer::ClassifierTask::words)
    return explain_entities(explainer, single, classify_options);
  std::vector<std::vector<Explanation>> results;
  for (size_t i = 0; i < single.size(); ++i) {
    infer::check_not_stopped(classify_options);
    results.push_back(explain_masks(explainer, single[i], classify_options, i));
  }
  return results;
}

}  // namespace fovea::study
