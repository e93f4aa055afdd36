#include "generate/banned_texts.h"

#include <algorithm>
#include <limits>

namespace fovea::infer {

BannedTexts::BannedTexts(const std::vector<std::string>& texts, const text::Tokenizer& tokenizer) {
  for (int32_t id = 0; id < tokenizer.size(); ++id) tokens_.push_back(tokenizer.bytes_of(id));
  for (const std::string& bytes : texts) {
    Text& text = texts_.emplace_back();
    text.bytes = bytes;
    text.completing.resize(bytes.size());
    longest_ = std::max(longest_, bytes.size());
    for (size_t id = 0; id < tokens_.size(); ++id) {
      if (tokens_[id].find(bytes) != std::string::npos)
        text.completing[0].push_back(static_cast<int32_t>(id));
      for (size_t done = 1; done < bytes.size(); ++done)
        if (tokens_[id].starts_with(std::string_view(bytes).substr(done)))
          text.completing[done].push_back(static_cast<int32_t>(id));
    }
  }
}

void BannedTexts::forbid(std::span<const int32_t> written, std::span<float> logits) const {
  std::string tail;
  for (auto id = written.rbegin(); id != written.rend() && tail.size() < longest_; ++id)
    if (*id >= 0 && *id < std::ssize(tokens_)) tail.insert(0, tokens_[static_cast<size_t>(*id)]);
  for (const Text& text : texts_)
    for (size_t done = 0; done < text.bytes.size(); ++done) {
      if (!tail.ends_with(std::string_view(text.bytes).substr(0, done))) continue;
      for (const int32_t id : text.completing[done])
        if (id < std::ssize(logits))
          logits[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
}

}  // namespace fovea::infer
