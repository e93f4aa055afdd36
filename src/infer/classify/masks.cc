// The most probable tokens for mask tokens.

#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "base/float_mode.h"
#include "classify/classifier_parts.h"
#include "embed/head_states.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"
#include "tokenizer/state/encode.h"

namespace fovea::infer {
namespace {

constexpr int64_t kUsualCandidates = 5;  // as in transformers

// Returns the tokens of a text in which mask tokens are special tokens, and the names of other
// special tokens are plain text.
std::vector<int32_t> ids_with_masks(const text::Tokenizer& tokenizer, const std::string& text,
                                    int32_t mask) {
  std::string guarded = tokenizer.guarded(text);
  const std::string_view name = tokenizer.text_of(mask);
  for (size_t at = 0; (at = guarded.find(text::kGuard, at)) != guarded.npos;) {
    // A token may include the spaces before it.
    const size_t begin = guarded.find_first_not_of(" \t\n", at + text::kGuard.size());
    if (begin != guarded.npos && std::string_view(guarded).substr(begin).starts_with(name))
      guarded.erase(at, text::kGuard.size());
    else
      at += text::kGuard.size();
  }
  return tokenizer.encode(guarded, text::SpecialTokens::guarded);
}

// Returns the candidates by the probabilities [V] of one mask.
MaskCandidates candidates_of(const Classifier::Parts& parts, const TokenizedText& text,
                             int64_t position, bool only, const float* probabilities,
                             const ClassifyOptions& options) {
  const text::Tokenizer& tokenizer = parts.format.tokenizer();
  // A model may have rows for which the tokenizer has no tokens.
  const int64_t known = std::min<int64_t>(tokenizer.size(), parts.transformer.spec.vocabulary);
  const int64_t top = std::min(options.top > 0 ? options.top : kUsualCandidates, known);
  std::vector<int32_t> order(static_cast<size_t>(known));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + top, order.end(), [&](int32_t a, int32_t b) {
    return probabilities[a] != probabilities[b] ? probabilities[a] > probabilities[b] : a < b;
  });
  order.resize(static_cast<size_t>(top));
  MaskCandidates candidates;
  std::vector<int32_t> ids = text.ids;
  for (const int32_t id : order) {
    ids[static_cast<size_t>(position)] = id;
    // The names of other masks remain visible.
    candidates.push_back(
        {id, probabilities[id], tokenizer.decode({id}), tokenizer.decode(ids, only)});
  }
  return candidates;
}

// Masks whose probabilities [masks, V] are in memory at once.
constexpr size_t kMasksAtOnce = 16;

// Returns the candidates for all masks of a text, from its states [1, T, C].
std::vector<MaskCandidates> fill_text(const Classifier::Parts& parts, const TokenizedText& text,
                                      const Tensor& states, size_t index,
                                      const ClassifyOptions& options) {
  const int64_t C = parts.transformer.spec.width;
  const std::vector<int64_t> positions = mask_positions(text, parts.mask.value());
  std::vector<MaskCandidates> filled;
  for (size_t begin = 0; begin < positions.size(); begin += kMasksAtOnce) {
    const size_t count = std::min(kMasksAtOnce, positions.size() - begin);
    const Tensor chosen = empty({static_cast<int64_t>(count), C});
    for (size_t i = 0; i < count; ++i)
      copy_elements(chosen, static_cast<int64_t>(i) * C, states, positions[begin + i] * C, C);
    const HostValues<float> scores(softmax(parts.transformer.logits(chosen)));
    check_finite_scores(scores.all().data(), scores.size(), index, options);
    for (size_t i = 0; i < count; ++i)
      filled.push_back(candidates_of(parts, text, positions[begin + i], positions.size() == 1,
                                     scores.row(static_cast<int64_t>(i)).data(), options));
  }
  return filled;
}

}  // namespace

TokenizedText masked_text(const Classifier::Parts& parts, const std::string& text,
                          const ClassifyOptions& options, size_t index) {
  check_not_stopped(options);
  const std::vector<int32_t> own =
      ids_with_masks(parts.format.tokenizer(), text, parts.mask.value());
  const auto masks = [&](const std::vector<int32_t>& ids) {
    return std::count(ids.begin(), ids.end(), parts.mask.value());
  };
  const std::string_view name = parts.format.tokenizer().text_of(parts.mask.value());
  check(masks(own) > 0, "{}: has no mask token; expected {} in the text",
        name_of_text(options, index), name);
  TokenizedText result = parts.format.truncated(own);
  check(masks(result.ids) == masks(own),
        "{}: has a mask token outside the {} tokens that are kept; expected all of them in the "
        "model's context",
        name_of_text(options, index), own.size() - static_cast<size_t>(result.cut));
  return result;
}

std::vector<int64_t> mask_positions(const TokenizedText& text, int32_t mask) {
  std::vector<int64_t> positions;
  for (size_t i = 0; i < text.ids.size(); ++i)
    if (text.ids[i] == mask) positions.push_back(static_cast<int64_t>(i));
  return positions;
}

std::vector<std::vector<MaskCandidates>> Classifier::fill_masks(
    const std::vector<std::string>& texts, const ClassifyOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  parts_->needs(ClassifierTask::masks, "tokens of a mask");
  const std::vector<TokenizedText> tokens = tokenize_all(
      texts.size(), [&](size_t i) { return masked_text(*parts_, texts[i], options, i); });
  check_lengths(tokens, parts_->format.most(), options);
  std::vector<std::vector<MaskCandidates>> filled(texts.size());
  each_batch(tokens, options.batch_tokens, [&](const TokenBatch& batch, const auto& chosen) {
    check_not_stopped(options);
    const Tensor states = head_states(parts_->transformer, batch, parts_->start, DType::f32);
    for (size_t b = 0; b < chosen.size(); ++b)
      filled[chosen[b]] = fill_text(
          *parts_, tokens[chosen[b]],
          states.rows(static_cast<int64_t>(b), static_cast<int64_t>(b) + 1), chosen[b], options);
  });
  return filled;
}

}  // namespace fovea::infer
