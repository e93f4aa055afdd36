#include "search/vector_graph.h"

#include <algorithm>
#include <cmath>

// Of hnswlib 0.6 under our warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <hnswlib/hnswlib.h>
#pragma GCC diagnostic pop

#include "base/error.h"
#include "base/files.h"
#include "base/memory_file.h"

namespace fovea {
namespace {

using Hnsw = hnswlib::HierarchicalNSW<float>;

// The library's own defaults: links of a vector, and how many candidates are looked at for them.
constexpr size_t kLinks = 16, kCandidates = 200;
// Of a search, far more than results are asked for: near misses of the walk are made up for.
constexpr size_t kSearchCandidates = 256;

std::unique_ptr<hnswlib::SpaceInterface<float>> space_of(Similarity similarity, int64_t width) {
  const auto size = static_cast<size_t>(width);
  switch (similarity) {
    case Similarity::cosine:
    case Similarity::dot: return std::make_unique<hnswlib::InnerProductSpace>(size);
    case Similarity::euclidean: return std::make_unique<hnswlib::L2Space>(size);
    case Similarity::manhattan: break;
  }
  fail(ErrorKind::Unsupported,
       "search: the model compares vectors by manhattan distance; expected cosine, dot or "
       "euclidean");
}

}  // namespace

struct VectorGraph::Graph {
  Similarity similarity;
  int64_t width;
  std::unique_ptr<hnswlib::SpaceInterface<float>> space;
  std::unique_ptr<Hnsw> links;
};

VectorGraph::VectorGraph(const Tensor& vectors, Similarity similarity)
    : graph_(std::make_unique<Graph>(
          Graph{similarity, vectors.dim(1), space_of(similarity, vectors.dim(1)), nullptr})) {
  const int64_t count = vectors.dim(0);
  check(count > 0, "search: no vectors; expected at least one");
  graph_->links =
      std::make_unique<Hnsw>(graph_->space.get(), static_cast<size_t>(count), kLinks, kCandidates);
  graph_->links->setEf(kSearchCandidates);
  // One after the other, for the links depend on the order.
  for (int64_t i = 0; i < count; ++i)
    graph_->links->addPoint(vectors.data_as<float>() + i * graph_->width, static_cast<size_t>(i));
}

VectorGraph::VectorGraph(const std::string& path, int64_t count, int64_t width,
                         Similarity similarity)
    : graph_(
          std::make_unique<Graph>(Graph{similarity, width, space_of(similarity, width), nullptr})) {
  try {
    graph_->links = std::make_unique<Hnsw>(graph_->space.get(), path);
    graph_->links->setEf(kSearchCandidates);
  } catch (const std::runtime_error& error) {
    fail(ErrorKind::BadFile, "{}: {}; expected a graph of {} vectors", path, error.what(), count);
  }
  const size_t found = graph_->links->cur_element_count;  // atomic in newer versions of hnswlib
  if (found != static_cast<size_t>(count) ||
      graph_->links->label_offset_ - graph_->links->offsetData_ != graph_->space->get_data_size())
    fail(ErrorKind::BadFile, "{}: a graph of {} vectors; expected {} of {} elements", path, found,
         count, width);
}

VectorGraph::~VectorGraph() = default;
VectorGraph::VectorGraph(VectorGraph&&) noexcept = default;

std::string VectorGraph::bytes() const {
  const MemoryFile file;
  graph_->links->saveIndex(file.path());
  return std::string(MappedFile(file.path()).bytes());
}

std::vector<float> VectorGraph::vector(int64_t number) const {
  return graph_->links->getDataByLabel<float>(static_cast<size_t>(number));
}

std::vector<VectorGraph::Neighbour> VectorGraph::nearest(const float* query, int64_t count) const {
  const auto most = static_cast<int64_t>(graph_->links->cur_element_count);
  auto found = graph_->links->searchKnn(query, static_cast<size_t>(std::min(count, most)));
  std::vector<Neighbour> neighbours;
  for (; !found.empty(); found.pop()) {
    const auto [distance, label] = found.top();
    const float similarity =
        graph_->similarity == Similarity::euclidean ? -std::sqrt(distance) : 1 - distance;
    neighbours.push_back({static_cast<int64_t>(label), similarity});
  }
  std::sort(neighbours.begin(), neighbours.end(), [](const auto& a, const auto& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.number < b.number;
  });
  return neighbours;
}

}  // namespace fovea
