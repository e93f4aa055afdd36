#include "fovea/infer/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "embed/pooling.h"
#include "search/index_files.h"
#include "search/passage_model.h"
#include "search/spherical_k_means.h"
#include "search/word_matches.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Candidates of each of the two searches of a hybrid search, at least.
constexpr int64_t kHybridCandidates = 100;
// The constant of reciprocal rank fusion (Cormack et al. 2009).
constexpr double kFusion = 60;

// The query's vector, of the kind of the index.
struct QueryVector {
  std::vector<float> dense;
  std::vector<TermWeight> sparse;
  MultiVectors tokens;
};

QueryVector query_vector(const PassageModel& model, const std::string& query) {
  QueryVector vector;
  if (model.kind() == VectorKind::dense) {
    vector.dense = model.dense_vectors({query}, TextRole::query, {}).values;
    return vector;
  }
  if (model.kind() == VectorKind::multiple) {
    vector.tokens = model.token_model().embed({query}, TextRole::query);
    return vector;
  }
  const SparseVectors row = model.sparse_vectors({query}, TextRole::query, {});
  for (size_t i = 0; i < row.indices.size(); ++i)
    vector.sparse.push_back({row.indices[i], row.values[i]});
  return vector;
}

// Compares the query's vectors with those of all passages (ColBERT).
std::vector<ScoredPassage> by_token_vectors(const PassageTokenVectors& passages,
                                            const MultiVectorEmbedder& model,
                                            const MultiVectors& query, int64_t count) {
  const Tensor vectors = empty({query.starts.back(), query.width});  // [Q, D]
  std::ranges::copy(query.values, vectors.data_as<float>());
  const float divisor =
      model.averages() ? static_cast<float>(std::max<int64_t>(1, vectors.dim(0))) : 1;
  std::vector<ScoredPassage> all;
  for (const float sum : passages.sums(vectors)) all.push_back({std::ssize(all), sum / divisor});
  return best_of(std::move(all), count);
}

std::vector<ScoredPassage> by_vectors(const IndexFiles& files, const PassageModel& model,
                                      const QueryVector& query, int64_t count) {
  if (model.kind() == VectorKind::sparse) return files.sparse().best(query.sparse, count);
  if (model.kind() == VectorKind::multiple)
    return by_token_vectors(files.tokens(), model.token_model(), query.tokens, count);
  std::vector<ScoredPassage> found;
  for (const auto& [number, similarity] : files.graph().nearest(query.dense, count))
    found.push_back({number, similarity});
  return found;
}

// Adds up 1 / (60 + rank) over the lists that contain a passage.
std::vector<ScoredPassage> fused(const std::vector<std::vector<ScoredPassage>>& lists,
                                 int64_t count) {
  std::map<int64_t, double> scores;
  for (const auto& list : lists)
    for (size_t i = 0; i < list.size(); ++i)
      scores[list[i].number] += 1 / (kFusion + static_cast<double>(i + 1));
  std::vector<ScoredPassage> all;
  for (const auto& [number, score] : scores) all.push_back({number, static_cast<float>(score)});
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  all.resize(std::min(all.size(), static_cast<size_t>(count)));
  return all;
}

// All vectors of a dense index, of unit length.
Tensor unit_vectors(const IndexFiles& files) {
  const NoGradient off;
  const Tensor vectors = empty({std::ssize(files.passages), files.settings.width});
  for (int64_t i = 0; i < vectors.dim(0); ++i)
    std::ranges::copy(files.graph().vector(i), vectors.data_as<float>() + i * files.settings.width);
  return unit_length(vectors);
}

void refuse_kind(const PassageModel& model, const std::string& index, VectorKind kind,
                 const char* what) {
  if (model.kind() != kind) return;
  fail(ErrorKind::Unsupported, "{}: {}: the index has {}; expected one vector for each passage",
       index, what, kind == VectorKind::sparse ? "sparse vectors" : "a vector for each token");
}

}  // namespace

void visit(SearchOptions& o, OptionVisitor& v) {
  v.boolean({"hybrid", "also search by words (BM25), and combine the ranks of both searches"},
            o.hybrid);
}

void visit(ClusterOptions& o, OptionVisitor& v) {
  v.integer({"clusters", "number of groups"}, o.clusters, 1, 10'000);
  v.integer({"typical", "maximum passages that represent a group"}, o.typical, 1, 1000);
  v.seed({"seed", "seed of the first centroids"}, o.seed);
}

struct SearchIndex::Parts {
  IndexFiles files;
  PassageModel model;
  std::string path;
};

SearchIndex SearchIndex::open(const std::string& index, const std::string& model_folder) {
  const FloatMode mode;
  IndexFiles files = read_index(index);
  const std::string& folder = model_folder.empty() ? files.settings.model : model_folder;
  PassageModel model = PassageModel::open(folder);
  // A forged index can have any fingerprint; the width determines how many elements of a vector are
  // read.
  const IndexSettings& s = files.settings;
  check(s.fingerprint == model.fingerprint() && s.width == model.width() && s.kind == model.kind(),
        "{}: was built with another model than {}; expected the same model, or a new index", index,
        folder);
  return SearchIndex(std::make_shared<Parts>(Parts{std::move(files), std::move(model), index}));
}

const std::vector<std::string>& SearchIndex::warnings() const { return parts_->model.warnings(); }

std::vector<FoundPassage> SearchIndex::search(const std::string& query, int64_t count,
                                              const SearchOptions& options) const {
  const FloatMode mode;
  const IndexFiles& files = parts_->files;
  const QueryVector vector = query_vector(parts_->model, query);
  const int64_t candidates = options.hybrid ? std::max(count, kHybridCandidates) : count;
  // Searches that compare the query with all passages keep all similarities for those that only
  // the search by words finds.
  const bool dense = parts_->model.kind() == VectorKind::dense;
  std::vector<ScoredPassage> near =
      by_vectors(files, parts_->model, vector, options.hybrid && !dense ? passages() : candidates);
  std::map<int64_t, float> similarities;
  for (const auto& [number, similarity] : near) similarities[number] = similarity;
  const auto similarity_of = [&](int64_t number) {
    if (const auto known = similarities.find(number); known != similarities.end())
      return known->second;
    if (!dense) return 0.0f;  // the passage shares no element with the query
    return parts_->model.dense_model().similarity(vector.dense, files.graph().vector(number));
  };
  near.resize(std::min(near.size(), static_cast<size_t>(candidates)));
  const std::vector<ScoredPassage> best =
      options.hybrid ? fused({near, files.words.best(query, candidates)}, count) : near;
  std::vector<FoundPassage> found;
  for (const auto& [number, score] : best) {
    const IndexedPassage& p = files.passages[static_cast<size_t>(number)];
    found.push_back({p.file, p.line, p.last_line, p.text, score, similarity_of(number)});
  }
  return found;
}

std::vector<PassageCluster> SearchIndex::cluster(const ClusterOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  for (const VectorKind kind : {VectorKind::sparse, VectorKind::multiple})
    refuse_kind(parts_->model, parts_->path, kind, "clusters");
  const IndexFiles& files = parts_->files;
  check_field(options.clusters <= passages(), "clusters", "{}; expected at most {}, the passages",
              options.clusters, passages());
  const VectorClusters found = cluster_vectors(unit_vectors(files), options.clusters, options.seed);
  std::vector<std::vector<size_t>> members(static_cast<size_t>(options.clusters));
  for (size_t i = 0; i < found.of.size(); ++i)
    members[static_cast<size_t>(found.of[i])].push_back(i);
  std::vector<PassageCluster> clusters;
  for (std::vector<size_t>& numbers : members) {
    PassageCluster cluster{std::ssize(numbers), 0, {}};
    double sum = 0;
    for (const size_t i : numbers) sum += found.similarities[i];
    cluster.cohesion = static_cast<float>(sum / static_cast<double>(numbers.size()));
    std::stable_sort(numbers.begin(), numbers.end(), [&](size_t a, size_t b) {
      return found.similarities[a] > found.similarities[b];
    });
    numbers.resize(std::min(numbers.size(), static_cast<size_t>(options.typical)));
    for (const size_t i : numbers) {
      const IndexedPassage& p = files.passages[i];
      const float cosine = found.similarities[i];
      cluster.typical.push_back({p.file, p.line, p.last_line, p.text, cosine, cosine});
    }
    clusters.push_back(std::move(cluster));
  }
  std::stable_sort(clusters.begin(), clusters.end(),
                   [](const auto& a, const auto& b) { return a.passages > b.passages; });
  return clusters;
}

std::vector<WordMatch> SearchIndex::explain(const std::string& query,
                                            const FoundPassage& passage) const {
  const FloatMode mode;
  refuse_kind(parts_->model, parts_->path, VectorKind::sparse, "matching words");
  const auto words = [&](const std::string& text, TextRole role) {
    std::vector<SpanVector> tokens;
    for (const EmbeddedToken& token : parts_->model.embedded_tokens(text, role))
      tokens.push_back({token.begin, token.end, token.vector});
    return words_of(text, tokens);
  };
  const auto of_query = words(query, TextRole::query);
  const auto of_passage = words(passage.text, TextRole::document);
  std::vector<WordMatch> matches;
  for (const WordPair& pair : best_matches(of_query, of_passage)) {
    const SpanVector &q = of_query[pair.query], &p = of_passage[pair.passage];
    const auto lines_before = std::count(
        passage.text.begin(), passage.text.begin() + static_cast<std::ptrdiff_t>(p.begin), '\n');
    matches.push_back({query.substr(q.begin, q.end - q.begin),
                       passage.text.substr(p.begin, p.end - p.begin), passage.line + lines_before,
                       pair.similarity});
  }
  return matches;
}

const std::string& SearchIndex::folder() const { return parts_->files.settings.folder; }
int64_t SearchIndex::passages() const {
  return static_cast<int64_t>(parts_->files.passages.size());
}

}  // namespace fovea::infer
