#include "transformer/prompt_images.h"

#include <algorithm>

#include "base/error.h"
#include "base/sha256.h"

namespace fovea::model {
namespace {

std::string digest_of(const media::Image& image) {
  const std::string size = fmt::format("{} {} ", image.height, image.width);
  return sha256(
      size + std::string(reinterpret_cast<const char*>(image.pixels.data()), image.pixels.size()));
}

}  // namespace

PromptImages::PromptImages(std::vector<Part> parts, Encode encode)
    : parts_(std::move(parts)), encode_(std::move(encode)), vectors_(parts_.size()) {
  for (const Part& part : parts_) digests_.push_back(digest_of(part.pixels));
}

const Tensor& PromptImages::vectors(size_t part) const {
  const std::lock_guard lock(mutex_);
  Tensor& found = vectors_[part];
  if (!found) {
    found = encode_(parts_[part].pixels);
    check(found.dim(0) == parts_[part].count, "image: {} vectors; expected {}, as many as tokens",
          found.dim(0), parts_[part].count);
  }
  return found;
}

template <class Use>
void PromptImages::each_part(int64_t begin, int64_t count, Use&& use) const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const int64_t first = std::max(begin, parts_[i].first);
    const int64_t end = std::min(begin + count, parts_[i].first + parts_[i].count);
    if (first < end) use(i, first, end);
  }
}

void PromptImages::encode(int64_t begin, int64_t count) const {
  each_part(begin, count, [&](size_t part, int64_t, int64_t) { vectors(part); });
}

void PromptImages::add_vectors(int64_t begin, int64_t count, int64_t row, TokenVectors& to) const {
  each_part(begin, count, [&](size_t part, int64_t first, int64_t end) {
    const Tensor& all = vectors(part);
    const int64_t C = all.dim(1);
    const float* from = all.data_as<float>() + (first - parts_[part].first) * C;
    to.values.insert(to.values.end(), from, from + (end - first) * C);
    for (int64_t token = first; token < end; ++token)
      to.rows.push_back(static_cast<int32_t>(row + token - begin));
  });
}

PageContents PromptImages::page_contents() const {
  PageContents contents;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const int64_t last = (part.first + part.count - 1) / kPageTokens;
    for (int64_t page = part.first / kPageTokens; page <= last; ++page) {
      const int64_t before = std::max<int64_t>(0, page * kPageTokens - part.first);
      contents[static_cast<size_t>(page)] += fmt::format("{}+{} ", digests_[i], before);
    }
  }
  return contents;
}

}  // namespace fovea::model
