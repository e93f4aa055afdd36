// Labels of texts and pairs of texts, and zero-shot classification by natural language inference.

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "fovea/core/excerpt.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

Tensor scores_from(const Tensor& logits, ScoreFunction function) {
  switch (function) {
    case ScoreFunction::softmax: return softmax(logits);
    case ScoreFunction::sigmoid: return activation(logits, Activation::sigmoid);
    case ScoreFunction::none: break;
  }
  return logits;
}

}  // namespace

Inference inference_of(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    std::string start = labels[i].substr(0, 6);
    for (char& c : start) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    // The other end of the list, as in transformers.
    if (start == "entail" && labels.size() > 1) return {i, i == 0 ? labels.size() - 1 : 0};
  }
  fail_field(ErrorKind::InvalidArgument, "labels",
             "the model has the labels {}; expected a model of natural language inference, with a "
             "label that begins with entail",
             excerpt(fmt::format("{}", fmt::join(labels, ", "))));
}

std::vector<std::string> hypotheses_of(const ClassifyOptions& options) {
  check_field(!options.labels.empty(), "labels", "none; expected at least one label");
  const size_t at = options.hypothesis.find("{}");
  check_field(at != std::string::npos, "hypothesis",
              "\"{}\"; expected a text with {{}} in the place of the label",
              excerpt(options.hypothesis));
  std::vector<std::string> hypotheses;
  for (const std::string& label : options.labels) {
    check_field(!label.empty(), "labels", "one is empty; expected a text");
    hypotheses.push_back(std::string(options.hypothesis).replace(at, 2, label));
  }
  return hypotheses;
}

std::vector<size_t> Classifications::order(int64_t text) const {
  std::vector<size_t> order(labels.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const float* x = row(text);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  return order;
}

std::vector<TokenizedText> read_inputs(const Classifier::Parts& parts,
                                       const std::vector<TextInput>& texts,
                                       const ClassifyOptions& options) {
  check_fields(options);
  parts.needs(ClassifierTask::texts, "labels of texts");
  std::vector<TokenizedText> tokens = tokenize_all(texts.size(), [&](size_t i) {
    check_not_stopped(options);
    const TextInput& input = texts[i];
    return input.pair ? parts.format.pair(parts.format.own_ids(input.text), *input.pair)
                      : parts.format.text(input.text);
  });
  check_lengths(tokens, parts.format.most(), options);
  return tokens;
}

Classifications classifications_of(const Classifier::Parts& parts,
                                   const std::vector<TokenizedText>& texts, const Tensor& logits,
                                   const ClassifyOptions& options) {
  Classifications result;
  result.count = std::ssize(texts);
  result.labels = parts.labels;
  for (const TokenizedText& text : texts) {
    result.tokens.push_back(std::ssize(text.ids));
    result.cut.push_back(text.cut);
  }
  if (texts.empty()) return result;
  const NoGradient no_gradient;
  result.scores = to_floats(options.raw ? logits : scores_from(logits, parts.function));
  for (int64_t i = 0; i < result.count; ++i)
    check_finite_scores(result.row(i), std::ssize(result.labels), static_cast<size_t>(i), options);
  return result;
}

Classifications Classifier::classify(const std::vector<TextInput>& texts,
                                     const ClassifyOptions& options) const {
  const FloatMode mode;
  const auto tokens = read_inputs(*parts_, texts, options);
  const Tensor logits =
      in_batches(tokens, std::ssize(parts_->labels), options.batch_tokens, [&](const auto& batch) {
        check_not_stopped(options);
        return parts_->logits(batch);
      });
  return classifications_of(*parts_, tokens, logits, options);
}

Classifications Classifier::classify_by(const std::vector<std::string>& texts,
                                        const ClassifyOptions& options) const {
  const FloatMode mode;
  const auto hypotheses = hypotheses_of(options);
  const Inference inference = inference_of(parts_->labels);
  // Of a pair with too many tokens, a text of at most half of them stays whole.
  const int64_t most = (parts_->format.most() - parts_->format.added_to_pair()) / 2;
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    const int64_t tokens = std::ssize(parts_->format.own_ids(hypotheses[i]));
    check_field(tokens <= most, "labels",
                "the hypothesis of \"{}\" has {} tokens; expected at most {}, half of the model's "
                "context",
                excerpt(options.labels[i]), tokens, most);
  }
  std::vector<TextInput> pairs;
  for (const std::string& text : texts)
    for (const std::string& hypothesis : hypotheses) pairs.push_back({text, hypothesis});
  const size_t count = hypotheses.size();
  ClassifyOptions inner = options;
  inner.raw = true;
  inner.name_of_text = [&](size_t pair) { return name_of_text(options, pair / count); };
  const Classifications logits = classify(pairs, inner);
  Classifications result;
  result.count = std::ssize(texts);
  result.labels = options.labels;
  const bool alone = options.multi_label || count == 1;
  std::vector<float> entailment(count);
  for (size_t text = 0; text < texts.size(); ++text) {
    int64_t tokens = 0, cut = 0;
    for (size_t label = 0; label < count; ++label) {
      const auto pair = static_cast<int64_t>(text * count + label);
      tokens += logits.tokens[static_cast<size_t>(pair)];
      cut = std::max(cut, logits.cut[static_cast<size_t>(pair)]);
      const float* x = logits.row(pair);
      entailment[label] = x[inference.entailment];
      const float both[] = {x[inference.contradiction], x[inference.entailment]};
      if (alone) result.scores.push_back(static_cast<float>(softmax_of(both, 2)[1]));
    }
    if (!alone)
      for (const double score : softmax_of(entailment.data(), std::ssize(entailment)))
        result.scores.push_back(static_cast<float>(score));
    result.tokens.push_back(tokens);
    result.cut.push_back(cut);
  }
  return result;
}

}  // namespace fovea::infer
