#pragma once

// Finds the nearest of many vectors: a hierarchical navigable small-world graph (Malkov and
// Yashunin 2018, arXiv:1603.09320), by hnswlib.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "embed/modules.h"
#include "tensor/tensor.h"

namespace fovea::infer {

class VectorGraph {
 public:
  // Builds the graph of `vectors`, f32 [N, D] with N at least 1. For cosine similarity, the vectors
  // must have unit length. The same vectors give the same graph. Throws Unsupported for
  // Similarity::manhattan.
  VectorGraph(const Tensor& vectors, Similarity similarity);
  // Reads the result of bytes(); `path` is the file's name in errors. Checks every number, and
  // throws BadFile unless `bytes` is a graph of `count` vectors of `width` elements.
  VectorGraph(std::string_view bytes, const std::string& path, int64_t count, int64_t width,
              Similarity similarity);
  ~VectorGraph();
  VectorGraph(VectorGraph&&) noexcept;

  std::string bytes() const;                        // the contents of a file
  std::vector<float> vector(int64_t number) const;  // row `number` of `vectors`

  struct Neighbour {
    int64_t number;  // index of a row of `vectors`
    float similarity;
  };
  // Returns at most `count` neighbours, sorted by descending similarity, then by number, of a
  // search with `candidates`, or as many as `count`: the more, the nearer they are to the nearest.
  // Throws InvalidArgument if the query has a different width.
  std::vector<Neighbour> nearest(std::span<const float> query, int64_t count,
                                 int64_t candidates) const;

 private:
  struct Graph;
  std::unique_ptr<Graph> graph_;
};

}  // namespace fovea::infer
