#include "generate/generation_builder.h"

#include <algorithm>

namespace fovea::infer {

GenerationBuilder::GenerationBuilder(const text::Tokenizer* tokenizer,
                                     const GenerateOptions& options, const GenerationRules& rules,
                                     int64_t limit)
    : options_(options), rules_(rules), limit_(limit), watch_(stops(rules, options)) {
  const bool keeps_some = !options.kept_special.empty();
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, !options.keep_special && !keeps_some);
  if (keeps_some && !options.keep_special) skipping_ = tokenizer;
}

bool GenerationBuilder::skips(int32_t id) const {
  const std::vector<int32_t>& kept = options_.kept_special;
  return skipping_ != nullptr && skipping_->is_special(id) &&
         std::find(kept.begin(), kept.end(), id) == kept.end();
}

std::string GenerationBuilder::emit(std::string sure) {
  result_.text += sure;
  return sure;
}

std::string GenerationBuilder::add(int32_t id, const TokenLogprob* logprob) {
  if (ends(rules_, options_, id)) {
    result_.end_id = id;
    const bool is_stop = std::find(options_.stop_ids.begin(), options_.stop_ids.end(), id) !=
                         options_.stop_ids.end();
    return finish(is_stop ? FinishReason::stop : FinishReason::end);
  }
  result_.ids.push_back(id);
  if (logprob != nullptr) result_.logprobs.push_back(*logprob);
  std::string sure = decoder_ && !skips(id) ? emit(watch_.add(decoder_->add(id))) : "";
  if (watch_.stopped()) {
    result_.finish = FinishReason::stop;
    result_.stop = watch_.found();
  } else if (at_limit()) {
    sure += finish(FinishReason::length);
  }
  return sure;
}

std::string GenerationBuilder::finish(FinishReason why) {
  result_.finish = why;
  if (!decoder_ || watch_.stopped()) return {};
  std::string sure = watch_.add(decoder_->finish());
  if (watch_.stopped()) {
    result_.finish = FinishReason::stop;
    result_.stop = watch_.found();
  } else {
    sure += watch_.finish();
  }
  return emit(std::move(sure));
}

const char* name_of(FinishReason reason) {
  switch (reason) {
    case FinishReason::none: return "";
    case FinishReason::length: return "length";
    case FinishReason::end: return "end";
    case FinishReason::stop: return "stop";
    case FinishReason::cancelled: break;
  }
  return "cancelled";
}

}  // namespace fovea::infer
