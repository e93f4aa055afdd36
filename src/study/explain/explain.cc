#include "fovea/study/explain.h"

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "explain/explained.h"
#include "explain/outputs.h"
#include "fovea/core/excerpt.h"
#include "inspect/token_texts.h"
#include "open/model_parts.h"

namespace fovea::study {
namespace {

// Returns a text that the model reads with a hypothesis, whose tokens are not the text's own.
ExplainedText text_with_hypothesis(const infer::Classifier::Parts& parts, const std::string& text,
                                   const std::string& hypothesis) {
  const infer::TextFormat& format = parts.format;
  ExplainedText pair =
      explained_text(format.pair(format.own_ids(text), hypothesis), &format.tokenizer(), 0);
  const int64_t after = format.added_to_pair() - format.before_second();
  const int64_t second = pair.length() - after - std::ssize(format.own_ids(hypothesis));
  std::fill(pair.own.begin() + std::max<int64_t>(second, 0), pair.own.end(), uint8_t{0});
  return pair;
}

std::vector<int32_t> ids_to_read(const model::Model& model, const InspectInput& input) {
  std::vector<int32_t> ids = input.ids;
  if (ids.empty())
    for (const InspectedToken& token : tokenized(model, input.text, input.special_tokens))
      ids.push_back(token.id);
  const model::Spec& spec = model.spec();
  check(!ids.empty(), "text: no tokens; expected at least one");
  check(std::ssize(ids) <= spec.context,
        "text: {} tokens; expected at most {}, the model's context", ids.size(), spec.context);
  for (const int32_t id : ids)
    check(id >= 0 && id < spec.vocabulary, "ids: {}; expected 0 to {}", id, spec.vocabulary - 1);
  return ids;
}

Explanation explain_next_token(const model::Model& model, const InspectInput& input,
                               const ExplainOptions& options) {
  const auto exact = exact_copy(model::parts_of(model).transformer);
  const text::Tokenizer* tokenizer = model.has_tokenizer() ? &model.tokenizer() : nullptr;
  const ExplainSettings settings(options, tokenizer, *exact);
  const ExplainedText text = explained_text({ids_to_read(model, input), {}, 0}, tokenizer, 0);
  const std::vector<NextToken> likely = likely_tokens(*exact, text.tokens);
  const int32_t id = options.target.empty()
                         ? likely.front().id
                         : token_named(options.target, tokenizer, model.spec().vocabulary);
  Explanation result = explained(token_output(exact, id), text, settings);
  result.target = display_tokens(tokenizer, {id})[0].text;
  result.value_name = "log-probability";
  for (const NextToken& token : likely)
    result.outputs.push_back(
        {display_tokens(tokenizer, {token.id})[0].text, token.probability, token.id});
  return result;
}

}  // namespace

std::vector<Explanation> explain(const infer::Classifier& classifier,
                                 const std::vector<infer::TextInput>& texts,
                                 const ExplainOptions& options,
                                 const infer::ClassifyOptions& classify_options) {
  const FloatMode mode;
  check_fields(options);
  const infer::Classifier::Parts& parts = classifier.parts();
  const bool candidates = !classify_options.labels.empty();
  const auto tokens = infer::read_inputs(parts, texts, classify_options);
  const infer::Classifications labels =
      candidates ? classifier.classify_by(single_texts(texts, classify_options), classify_options)
                 : classifier.classify(texts, classify_options);
  const auto exact = exact_copy(parts.transformer);
  const ExplainSettings settings(options, &classifier.tokenizer(), *exact);
  std::vector<Explanation> results;
  for (size_t i = 0; i < texts.size(); ++i) {
    infer::check_not_stopped(classify_options);
    const auto text = static_cast<int64_t>(i);
    const std::vector<size_t> order = labels.order(text);
    const size_t label =
        options.target.empty() ? order.front() : label_named(labels.labels, options.target);
    const size_t logit = candidates ? infer::inference_of(parts.labels).entailment : label;
    Explanation& result = results.emplace_back(
        explained(label_output(parts, exact, static_cast<int64_t>(logit)),
                  candidates ? text_with_hypothesis(parts, texts[i].text,
                                                    infer::hypotheses_of(classify_options)[label])
                             : explained_text(tokens[i], settings.tokenizer, 0),
                  settings));
    result.target = labels.labels[label];
    result.value_name = "logit";
    for (const size_t one : order)
      result.outputs.push_back({labels.labels[one], double{labels.row(text)[one]}});
  }
  return results;
}

std::vector<Explanation> explain(const infer::Embedder& embedder,
                                 const std::vector<std::string>& texts, const std::string& other,
                                 const ExplainOptions& options,
                                 const infer::EmbedOptions& embed_options) {
  const FloatMode mode;
  check_fields(options);
  check_field(options.target.empty(), "target",
              "\"{}\"; expected none: what is explained is the similarity to the other text",
              excerpt(options.target));
  const infer::SentenceModel& model = embedder.parts().model;
  const infer::EmbedInput input = infer::read_texts(model, texts, embed_options);
  const auto exact = exact_copy(model.transformer);
  const ExplainSettings settings(options, &embedder.tokenizer(), *exact);
  const ExplainedOutput output = similarity_output(model, exact, other, embed_options);
  std::vector<Explanation> results;
  for (size_t i = 0; i < texts.size(); ++i) {
    check(
        !input.texts[i].ids.empty(), "{}: has no tokens; expected a text",
        embed_options.name_of_text ? embed_options.name_of_text(i) : fmt::format("text {}", i + 1));
    Explanation& result = results.emplace_back(explained(
        output, explained_text(input.texts[i], settings.tokenizer, input.prompt), settings));
    result.target = other;
    result.value_name = embedder.similarity_name();
  }
  return results;
}

std::vector<Explanation> explain(const model::Model& model, const InspectInput& input,
                                 const ExplainOptions& options,
                                 const infer::ClassifyOptions& classify_options) {
  const FloatMode mode;
  check_fields(options);
  const model::Spec& spec = model.spec();
  if (!spec.encoder && spec.head.kind == model::HeadKind::language_model)
    return {explain_next_token(model, input, options)};
  const infer::Classifier classifier = infer::Classifier::of(model);
  check(input.ids.empty(), "ids: the model is a classifier; expected a text");
  infer::TextInput text{input.text, {}};
  if (classifier.task() == infer::ClassifierTask::answers) {
    check(!input.target.empty(),
          "target: empty; expected the text that has the answer to the question");
    text.pair = input.target;
  }
  return explain_results(classifier, {text}, options, classify_options)[0];
}

}  // namespace fovea::study
