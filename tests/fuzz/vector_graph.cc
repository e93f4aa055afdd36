// The input is the graph of an untrusted search index: any bytes are refused or can be searched.

#include <algorithm>
#include <cstring>

#include "fuzz.h"
#include "search/vector_graph.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  constexpr int64_t kMostVectors = 4096, kWidth = 4;
  uint64_t count = 0;  // taken from the file, since index.json can be forged as well
  if (size >= 2 * sizeof count) std::memcpy(&count, data + sizeof count, sizeof count);
  succeeds([&] {
    const auto vectors = static_cast<int64_t>(count % kMostVectors);
    const infer::VectorGraph graph(text_of(data, size), "graph.hnsw", vectors, kWidth,
                                   infer::Similarity::dot);
    const float query[kWidth] = {1, -1, 0.5f, 0};
    const auto found = graph.nearest(query, 10, 64);
    require(found.size() <= 10, "at most the requested number of vectors is found");
    for (const auto& [number, similarity] : found)
      require(number >= 0 && number < vectors, "a result is a vector of the graph");
    require(graph.vector(vectors - 1).size() == kWidth, "a vector has its width");
  });
  return 0;
}
