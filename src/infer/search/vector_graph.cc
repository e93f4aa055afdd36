#include "search/vector_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#ifdef __SANITIZE_ADDRESS__
// While building a graph, hnswlib's prefetch reads the link after the end of a full list: inside
// the block that malloc returned, but outside the requested size.
#define NO_MANUAL_VECTORIZATION
#endif
// hnswlib 0.6 triggers these warnings.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#include <hnswlib/hnswlib.h>
#pragma GCC diagnostic pop

#include "base/error.h"
#include "base/files.h"
#include "base/memory_file.h"

namespace fovea::infer {
namespace {

using Hnsw = hnswlib::HierarchicalNSW<float>;

// The defaults of hnswlib: links per vector, and candidates that are examined to choose them.
constexpr size_t kLinks = 16, kCandidates = 200;

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

using Link = hnswlib::tableint;
using Label = hnswlib::labeltype;
using Count = hnswlib::linklistsizeint;

// The format of hnswlib's saveIndex(): a header; for each vector its links, its elements and its
// label; then for each vector its links on the upper levels, from level 1. hnswlib's own reader
// does not check the data, so this class does before use: every list has at most the length that
// hnswlib writes, and every link leads to a vector that is on the link's level.
class GraphFile {
 public:
  GraphFile(std::string_view bytes, const std::string& path, int64_t count, int64_t width)
      : bytes_(bytes), path_(path), count_(static_cast<uint64_t>(count)) {
    expect(count > 0 && count_ < std::numeric_limits<Link>::max() && width > 0 &&
               static_cast<uint64_t>(width) <= bytes.size() / sizeof(float),
           "is too short");
    vector_bytes_ = static_cast<uint64_t>(width) * sizeof(float);
    element_ = kLists0 + vector_bytes_ + sizeof(Label);
    expect(bytes.size() >= kHead && (bytes.size() - kHead) / element_ >= count_, "is too short");
    check_head();
    find_levels();
    check_elements();
    check_upper_lists();
  }

  // Copies the graph to `links`, which must be empty and have capacity for the vectors.
  void copy_to(Hnsw& links) const {
    std::memcpy(links.data_level0_memory_, bytes_.data() + kHead, count_ * element_);
    links.maxlevel_ = static_cast<int>(top_level_);
    links.enterpoint_node_ = entry_;
    for (uint64_t i = 0; i < count_; ++i) {
      const size_t size = levels_[i] * kList;
      char* const lists = size > 0 ? static_cast<char*>(std::malloc(size)) : nullptr;
      if (size > 0 && lists == nullptr) throw std::bad_alloc();
      if (size > 0) std::memcpy(lists, bytes_.data() + upper_[i], size);
      links.linkLists_[i] = lists;
      links.element_levels_[i] = static_cast<int>(levels_[i]);
      links.cur_element_count = i + 1;  // the destructor frees the lists of this number of vectors
    }
  }

 private:
  static constexpr size_t kList = sizeof(Count) + kLinks * sizeof(Link);
  static constexpr size_t kLists0 = sizeof(Count) + 2 * kLinks * sizeof(Link);
  static constexpr size_t kHead = 10 * sizeof(size_t) + sizeof(int) + sizeof(Link) + sizeof(double);

  void expect(bool holds, const char* wrong) const {
    if (holds) return;
    fail(ErrorKind::BadFile, "{}: {}; expected a graph of {} vectors (build the index again)",
         path_, wrong, count_);
  }
  template <class T>
  T at(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  template <class T>
  T next(uint64_t& offset) const {
    offset += sizeof(T);
    return at<T>(offset - sizeof(T));
  }

  void check_head() {
    uint64_t offset = 0;
    const auto same = [&](uint64_t expected) {
      expect(next<size_t>(offset) == expected, "its header is invalid");
    };
    for (const uint64_t expected :
         {uint64_t{0}, count_, count_, element_, kLists0 + vector_bytes_, uint64_t{kLists0}})
      same(expected);
    const auto top = next<int>(offset);
    entry_ = next<Link>(offset);
    expect(top >= 0 && entry_ < count_, "its entry point is not a vector");
    top_level_ = static_cast<uint64_t>(top);
    for (const uint64_t expected : {kLinks, 2 * kLinks, kLinks}) same(expected);
    next<double>(offset);  // used only to choose the levels of new vectors
    same(kCandidates);
  }

  void find_levels() {
    uint64_t offset = kHead + count_ * element_;
    for (uint64_t i = 0; i < count_; ++i) {
      expect(bytes_.size() - offset >= sizeof(Count), "is too short");
      const uint64_t size = next<Count>(offset);
      expect(size % kList == 0 && size / kList <= top_level_ && size <= bytes_.size() - offset,
             "a vector's level is wrong");
      levels_.push_back(static_cast<uint32_t>(size / kList));
      upper_.push_back(offset);
      offset += size;
    }
    expect(offset == bytes_.size(), "is too long");
    expect(levels_[entry_] == top_level_, "its entry point is not on the highest level");
  }

  void check_list(uint64_t offset, size_t most, uint64_t level) const {
    const auto links = next<Count>(offset);  // its upper half marks deleted vectors and must be 0
    expect(links <= most, "a vector has too many links");
    for (Count i = 0; i < links; ++i) {
      const Link link = next<Link>(offset);
      expect(link < count_ && levels_[link] >= level, "a link is invalid");
    }
  }

  void check_elements() const {
    for (uint64_t i = 0; i < count_; ++i) {
      const uint64_t offset = kHead + i * element_;
      check_list(offset, 2 * kLinks, 0);
      constexpr uint32_t kExponent = 0x7F800000;  // exponent bits of infinities and NaN
      bool finite = true;
      for (uint64_t x = 0; x < vector_bytes_; x += sizeof(float))
        finite &= (at<uint32_t>(offset + kLists0 + x) & kExponent) != kExponent;
      expect(finite, "an element is not finite");
      expect(at<Label>(offset + kLists0 + vector_bytes_) == i, "a vector has a wrong label");
    }
  }

  void check_upper_lists() const {
    for (uint64_t i = 0; i < count_; ++i) {
      for (uint64_t level = 1; level <= levels_[i]; ++level)
        check_list(upper_[i] + (level - 1) * kList, kLinks, level);
    }
  }

  std::string_view bytes_;
  const std::string& path_;
  uint64_t count_, vector_bytes_ = 0, element_ = 0, top_level_ = 0;
  Link entry_ = 0;
  std::vector<uint32_t> levels_;  // highest level of each vector
  std::vector<uint64_t> upper_;   // offset of each vector's links on upper levels
};

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
  // Adds the vectors sequentially, since the links depend on their order.
  for (int64_t i = 0; i < count; ++i)
    graph_->links->addPoint(vectors.data_as<float>() + i * graph_->width, static_cast<size_t>(i));
}

VectorGraph::VectorGraph(std::string_view bytes, const std::string& path, int64_t count,
                         int64_t width, Similarity similarity)
    : graph_(
          std::make_unique<Graph>(Graph{similarity, width, space_of(similarity, width), nullptr})) {
  const GraphFile file(bytes, path, count, width);
  graph_->links =
      std::make_unique<Hnsw>(graph_->space.get(), static_cast<size_t>(count), kLinks, kCandidates);
  file.copy_to(*graph_->links);
}

VectorGraph::~VectorGraph() = default;
VectorGraph::VectorGraph(VectorGraph&&) noexcept = default;

std::string VectorGraph::bytes() const {
  const MemoryFile file;
  graph_->links->saveIndex(file.path());
  return std::string(MappedFile(file.path()).bytes());
}

std::vector<float> VectorGraph::vector(int64_t number) const {
  const char* const data =
      graph_->links->getDataByInternalId(static_cast<hnswlib::tableint>(number));
  std::vector<float> vector(static_cast<size_t>(graph_->width));
  std::memcpy(vector.data(), data, vector.size() * sizeof(float));
  return vector;
}

std::vector<VectorGraph::Neighbour> VectorGraph::nearest(std::span<const float> query,
                                                         int64_t count, int64_t candidates) const {
  check(std::ssize(query) == graph_->width, "search: a vector of {} elements; expected {}",
        query.size(), graph_->width);
  const auto most = static_cast<int64_t>(graph_->links->cur_element_count);
  // hnswlib uses as many candidates as it returns, if these are more than its setting.
  auto found = graph_->links->searchKnn(
      query.data(), static_cast<size_t>(std::min(std::max(count, candidates), most)));
  std::vector<Neighbour> neighbours;
  for (; !found.empty(); found.pop()) {
    const auto [distance, label] = found.top();
    const float similarity =
        graph_->similarity == Similarity::euclidean ? -std::sqrt(distance) : 1 - distance;
    // Products of large numbers may give NaN, which has no order.
    const float worst = -std::numeric_limits<float>::infinity();
    neighbours.push_back(
        {static_cast<int64_t>(label), std::isnan(similarity) ? worst : similarity});
  }
  std::sort(neighbours.begin(), neighbours.end(), [](const auto& a, const auto& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.number < b.number;
  });
  neighbours.resize(std::min(neighbours.size(), static_cast<size_t>(count)));
  return neighbours;
}

}  // namespace fovea::infer
