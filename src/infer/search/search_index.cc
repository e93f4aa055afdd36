#include "fovea/infer/search.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "embed/pooling.h"
#include "search/dense_search.h"
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

using Selection = IndexContents::Selection;

// Compares the query's vectors with those of all passages (ColBERT).
std::vector<ScoredPassage> by_token_vectors(const IndexContents& index, const Selection& selection,
                                            const MultiVectorEmbedder& model,
                                            const MultiVectors& query, int64_t count) {
  const Tensor vectors = empty({query.starts.back(), query.width});  // [Q, D]
  std::ranges::copy(query.values, vectors.data_as<float>());
  const float divisor =
      model.averages() ? static_cast<float>(std::max<int64_t>(1, vectors.dim(0))) : 1;
  std::vector<ScoredPassage> found;
  for (int64_t p = 0; p < index.parts(); ++p) {
    std::vector<ScoredPassage> rows;
    for (const float sum : index.part(p).tokens().sums(vectors))
      rows.push_back({std::ssize(rows), sum / divisor});
    add_selected(selection.of(p), rows, found);
  }
  return best_of(std::move(found), count);
}

std::vector<ScoredPassage> by_vectors(const IndexContents& index, const Selection& selection,
                                      const PassageModel& model, const QueryVector& query,
                                      int64_t count, int64_t graph_candidates) {
  if (model.kind() == VectorKind::multiple)
    return by_token_vectors(index, selection, model.token_model(), query.tokens, count);
  if (model.kind() == VectorKind::dense) {
    if (graph_candidates > 0)
      return best_by_graphs(index, selection, query.dense, count, graph_candidates);
    return best_by_vectors(index, selection, query.dense, count);
  }
  std::vector<ScoredPassage> found;
  for (int64_t p = 0; p < index.parts(); ++p)
    add_selected(selection.of(p), index.part(p).sparse().matches(query.sparse), found);
  return best_of(std::move(found), count);
}

std::vector<ScoredPassage> by_words(const IndexContents& index, const Selection& selection,
                                    const std::string& query, int64_t count) {
  std::vector<WordPart> parts;
  for (int64_t p = 0; p < index.parts(); ++p)
    parts.push_back({&index.part(p).words(), index.all().of(p), selection.of(p)});
  return best_by_words(parts, query, count);
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

// The vectors of all different passages of a dense index, of unit length, and their numbers.
struct UnitVectors {
  std::vector<int32_t> numbers;
  Tensor rows;  // f32 [N, D]
};
UnitVectors unit_vectors(const IndexContents& index) {
  const NoGradient off;
  struct Row {
    int32_t number, part, row;
  };
  std::vector<Row> rows;
  for (int64_t p = 0; p < index.parts(); ++p) {
    const auto numbers = index.all().of(p);
    for (size_t row = 0; row < numbers.size(); ++row)
      if (numbers[row] >= 0)
        rows.push_back({numbers[row], static_cast<int32_t>(p), static_cast<int32_t>(row)});
  }
  std::ranges::sort(rows, {}, &Row::number);
  UnitVectors all;
  const int64_t width = index.settings().width;
  const Tensor vectors = empty({std::ssize(rows), width});
  for (const auto& [number, part, row] : rows) {
    std::ranges::copy(index.part(part).dense().vector(row),
                      vectors.data_as<float>() + std::ssize(all.numbers) * width);
    all.numbers.push_back(number);
  }
  all.rows = unit_length(vectors);
  return all;
}

FoundPassage found_passage(IndexedPassage p, float score, float similarity) {
  return {std::move(p.file),  p.line, p.last_line, std::move(p.text), score, similarity,
          std::move(p.fields)};
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
  v.texts({"where",
           "search only passages that fulfil this condition: file=PATTERN, date>=2026-01, or any "
           "field of the records in .jsonl files; with several, all of them"},
          o.where);
  v.integer({"graph_candidates",
             "candidates of a search in the graph of the index; 0 = compare the query with all "
             "passages"},
            o.graph_candidates, 0, 1'000'000);
}

void visit(ClusterOptions& o, OptionVisitor& v) {
  v.integer({"clusters", "number of groups"}, o.clusters, 1, 10'000);
  v.integer({"typical", "maximum passages that represent a group"}, o.typical, 1, 1000);
  v.seed({"seed", "seed of the first centroids"}, o.seed);
}

struct SearchIndex::Parts {
  IndexContents index;
  PassageModel model;
  std::string path;
};

SearchIndex SearchIndex::open(const std::string& path, const std::string& model_folder) {
  const FloatMode mode;
  IndexContents index(path);
  const IndexSettings& s = index.settings();
  const std::string& folder = model_folder.empty() ? s.model : model_folder;
  PassageModel model = PassageModel::open(folder, s.kind);
  // A forged index can have any fingerprint; the width determines how many elements of a vector are
  // read.
  check(s.fingerprint == model.fingerprint() && s.width == model.width() && s.kind == model.kind(),
        "{}: was built with another model than {}; expected the same model, or a new index", path,
        folder);
  return SearchIndex(std::make_shared<Parts>(Parts{std::move(index), std::move(model), path}));
}

const std::vector<std::string>& SearchIndex::warnings() const { return parts_->model.warnings(); }

std::vector<FoundPassage> SearchIndex::search(const std::string& query, int64_t count,
                                              const SearchOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  const IndexContents& index = parts_->index;
  const Conditions conditions(options.where);
  const Selection chosen = conditions.empty() ? Selection() : index.where(conditions);
  const Selection& selection = conditions.empty() ? index.all() : chosen;
  const QueryVector vector = query_vector(parts_->model, query);
  const int64_t candidates = options.hybrid ? std::max(count, kHybridCandidates) : count;
  // Searches for sparse vectors and those of tokens keep all similarities, for those that only the
  // search by words finds.
  const bool dense = parts_->model.kind() == VectorKind::dense;
  std::vector<ScoredPassage> near =
      by_vectors(index, selection, parts_->model, vector,
                 options.hybrid && !dense ? selection.count : candidates,
                 // The best of some passages may not be among the candidates.
                 conditions.empty() ? options.graph_candidates : 0);
  std::map<int64_t, float> similarities;
  for (const auto& [number, similarity] : near) similarities[number] = similarity;
  const auto similarity_of = [&](int64_t number) {
    if (const auto known = similarities.find(number); known != similarities.end())
      return known->second;
    if (!dense) return 0.0f;  // the passage shares no element with the query
    const auto [p, passage] = index.location(number);
    return DenseSearch(vector.dense, index.settings().similarity, {})
        .similarity(index.part(p).dense(), index.part(p).table().row(passage));
  };
  near.resize(std::min(near.size(), static_cast<size_t>(candidates)));
  const std::vector<ScoredPassage> best =
      options.hybrid ? fused({near, by_words(index, selection, query, candidates)}, count) : near;
  std::vector<FoundPassage> found;
  for (const auto& [number, score] : best)
    found.push_back(found_passage(index.passage(number), score, similarity_of(number)));
  return found;
}

std::vector<PassageCluster> SearchIndex::cluster(const ClusterOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  for (const VectorKind kind : {VectorKind::sparse, VectorKind::multiple})
    refuse_kind(parts_->model, parts_->path, kind, "clusters");
  const IndexContents& index = parts_->index;
  check_field(options.clusters <= passages(), "clusters", "{}; expected at most {}, the passages",
              options.clusters, passages());
  const UnitVectors vectors = unit_vectors(index);
  const VectorClusters found = cluster_vectors(vectors.rows, options.clusters, options.seed);
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
      const float cosine = found.similarities[i];
      cluster.typical.push_back(found_passage(index.passage(vectors.numbers[i]), cosine, cosine));
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

const std::string& SearchIndex::folder() const { return parts_->index.settings().folder; }
int64_t SearchIndex::passages() const { return parts_->index.all().count; }

}  // namespace fovea::infer
