#include "vision/retrieval.h"

#include <algorithm>

#include "base/threads.h"

namespace fovea::infer {

void RetrievalVectors::add(const Tensor& more_images, const Tensor& more_texts) {
  const std::vector<float> x = to_floats(more_images), y = to_floats(more_texts);
  count += more_images.dim(0);
  width = more_images.dim(1);
  images.insert(images.end(), x.begin(), x.end());
  texts.insert(texts.end(), y.begin(), y.end());
}

namespace {

// Returns for each row the number of others that are at least as close to it as its own. These are
// all with an equal text.
std::vector<int64_t> ranks_of(const std::vector<float>& from, const std::vector<float>& to,
                              const RetrievalVectors& all, const std::vector<std::string>& texts) {
  std::vector<int64_t> ranks(static_cast<size_t>(all.count));
  parallel_tasks(all.count, [&](int64_t i) {
    const auto cosine = [&](int64_t j) {
      double sum = 0;
      for (int64_t c = 0; c < all.width; ++c)
        sum += double{from[static_cast<size_t>(i * all.width + c)]} *
               double{to[static_cast<size_t>(j * all.width + c)]};
      return sum;
    };
    const std::string& text = texts[static_cast<size_t>(i)];
    double own = cosine(i);
    for (int64_t j = 0; j < all.count; ++j)
      if (texts[static_cast<size_t>(j)] == text) own = std::max(own, cosine(j));
    for (int64_t j = 0; j < all.count; ++j)
      if (texts[static_cast<size_t>(j)] != text && cosine(j) >= own)
        ++ranks[static_cast<size_t>(i)];
  });
  return ranks;
}

}  // namespace

Predictions retrieval_of(const RetrievalVectors& vectors, const std::vector<std::string>& texts) {
  Predictions found;
  found.text_ranks = ranks_of(vectors.images, vectors.texts, vectors, texts);
  found.image_ranks = ranks_of(vectors.texts, vectors.images, vectors, texts);
  found.labels = vectors.count;
  return found;
}

}  // namespace fovea::infer
