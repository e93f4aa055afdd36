#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cache/prefix_cache.h"
#include "fovea/media/image.h"
#include "tensor/tensor.h"

namespace fovea::model {

// Vectors that replace the embeddings of some tokens of a pass, and the rows of these tokens.
struct TokenVectors {
  std::vector<float> values;  // [rows, C]
  std::vector<int32_t> rows;
};

// The images of a prompt, as parts: whole images, or tiles of them. Each part has several equal
// tokens in a row, whose embeddings are replaced by vectors. They are computed from the pixels when
// a pass reads the first of these tokens. Safe to use from several threads.
class PromptImages {
 public:
  struct Part {
    int64_t first = 0, count = 0;  // its tokens in the prompt
    media::Image pixels;
    int64_t row = -1, column = -1;  // of a tile in its image; -1: the whole image
  };
  // Returns the vectors of a part, f32 [count, C] in host memory.
  using Encode = std::function<Tensor(const media::Image& pixels)>;

  PromptImages(std::vector<Part> parts, Encode encode);

  // Computes the vectors of the tokens [begin, begin + count) of the prompt, unless they are known.
  void encode(int64_t begin, int64_t count) const;
  // Adds these vectors. The first token is in row `row` of the pass.
  void add_vectors(int64_t begin, int64_t count, int64_t row, TokenVectors& to) const;
  // Returns what the keys of each page of the prompt depend on besides its tokens: SHA-256 of the
  // pixels of each part, and which of its tokens is the first one in the page.
  PageContents page_contents() const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  // Calls use(part, first, end) for the tokens [first, end) of each part in [begin, begin + count).
  template <class Use>
  void each_part(int64_t begin, int64_t count, Use&& use) const;
  const Tensor& vectors(size_t part) const;

  std::vector<Part> parts_;
  std::vector<std::string> digests_;
  Encode encode_;
  mutable std::mutex mutex_;  // protects vectors_
  mutable std::vector<Tensor> vectors_;
};

}  // namespace fovea::model
