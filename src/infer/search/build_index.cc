#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "fovea/infer/search.h"
#include "search/index_files.h"
#include "search/passage_model.h"
#include "search/passages.h"
#include "search/text_files.h"

namespace fovea::infer {
namespace {

constexpr int64_t kPassagesAtOnce = 256;  // number embedded between two calls of `progress`

PassageRules rules_for(const PassageModel& model, const SearchBuildOptions& options) {
  constexpr int64_t kMost = 256, kSpecial = 8;  // room for special tokens and a short prompt
  PassageRules rules;
  rules.most_tokens = options.passage_tokens > 0
                          ? options.passage_tokens
                          : std::max<int64_t>(1, std::min(kMost, model.max_tokens() - kSpecial));
  rules.overlap_tokens =
      options.overlap_tokens >= 0 ? options.overlap_tokens : rules.most_tokens / 8;
  return rules;
}

// The vectors of passages: one of the three.
struct PassageVectors {
  Tensor dense;                       // f32 [N, width]
  std::vector<SparseVectors> sparse;  // one row for each passage
  std::vector<Tensor> tokens;         // f32 [tokens, width] for each passage

  PassageVectors(const PassageModel& model, int64_t passages) {
    const auto count = static_cast<size_t>(passages);
    switch (model.kind()) {
      case VectorKind::dense: dense = empty({passages, model.width()}); break;
      case VectorKind::sparse: sparse.resize(count); break;
      case VectorKind::multiple: tokens.resize(count); break;
    }
  }
};

// The vectors of the existing index, by the texts of their passages, for reuse. Empty if the index
// is damaged or was built with a different model.
class KnownVectors {
 public:
  KnownVectors(const std::string& path, const std::string& fingerprint, const PassageModel& model) {
    if (!is_index(path)) return;
    try {
      index_ = std::make_unique<IndexFiles>(read_index(path));
    } catch (const Error&) {
      return;
    }
    const IndexSettings& s = index_->settings;
    if (s.fingerprint != fingerprint || s.width != model.width() || s.kind != model.kind()) return;
    if (s.kind == VectorKind::sparse) rows_ = index_->sparse().rows();
    for (size_t i = 0; i < index_->passages.size(); ++i)
      numbers_.emplace(index_->passages[i].text, static_cast<int64_t>(i));
  }
  // Copies the vector of a text to row `row`; returns false if there is none.
  bool lend(const std::string& text, int64_t row, PassageVectors& vectors) const {
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return false;
    const auto at = static_cast<size_t>(row);
    switch (index_->settings.kind) {
      case VectorKind::dense:
        std::ranges::copy(index_->graph().vector(found->second),
                          vectors.dense.data_as<float>() + row * vectors.dense.dim(1));
        break;
      case VectorKind::sparse: vectors.sparse[at] = row_of(rows_, found->second); break;
      case VectorKind::multiple: vectors.tokens[at] = index_->tokens().rows(found->second); break;
    }
    return true;
  }

  // Returns one row of the vectors.
  static SparseVectors row_of(const SparseVectors& all, int64_t row) {
    const auto begin = all.starts[static_cast<size_t>(row)],
               end = all.starts[static_cast<size_t>(row) + 1];
    SparseVectors one;
    one.count = 1;
    one.width = all.width;
    one.starts.push_back(end - begin);
    one.indices.assign(all.indices.begin() + begin, all.indices.begin() + end);
    one.values.assign(all.values.begin() + begin, all.values.begin() + end);
    return one;
  }

 private:
  std::unique_ptr<IndexFiles> index_;
  SparseVectors rows_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// Copies the rows of one text.
Tensor rows_of(const MultiVectors& all, int64_t text) {
  const ArrayView rows = all.rows(text);
  const Tensor x = empty({rows.shape[0], rows.shape[1]});
  std::ranges::copy(rows.elements<float>(), x.data_as<float>());
  return x;
}

// Computes the vectors of the passages with the numbers `chosen`. Returns how many tokens of each
// were truncated.
std::vector<int64_t> compute_vectors(const PassageModel& model,
                                     const std::vector<std::string>& texts,
                                     std::span<const size_t> chosen, const EmbedOptions& options,
                                     PassageVectors& vectors) {
  if (model.kind() == VectorKind::sparse) {
    const SparseVectors rows = model.sparse_vectors(texts, TextRole::document, options);
    for (size_t i = 0; i < chosen.size(); ++i)
      vectors.sparse[chosen[i]] = KnownVectors::row_of(rows, static_cast<int64_t>(i));
    return rows.cut;
  }
  if (model.kind() == VectorKind::multiple) {
    const MultiVectors rows = model.token_model().embed(texts, TextRole::document, options);
    for (size_t i = 0; i < chosen.size(); ++i)
      vectors.tokens[chosen[i]] = rows_of(rows, static_cast<int64_t>(i));
    return rows.cut;
  }
  const Embeddings rows = model.dense_vectors(texts, TextRole::document, options);
  for (size_t i = 0; i < chosen.size(); ++i)
    std::ranges::copy(
        rows.view().row<float>(static_cast<int64_t>(i)),
        vectors.dense.data_as<float>() + static_cast<int64_t>(chosen[i]) * rows.width);
  return rows.cut;
}

// Copies known vectors and computes the other vectors; counts these in the result.
PassageVectors vectors_of(const std::vector<IndexedPassage>& passages, const PassageModel& model,
                          const KnownVectors& known, const SearchBuildOptions& options,
                          SearchBuild& result) {
  PassageVectors vectors(model, std::ssize(passages));
  std::vector<size_t> fresh;
  for (size_t i = 0; i < passages.size(); ++i)
    if (!known.lend(passages[i].text, static_cast<int64_t>(i), vectors)) fresh.push_back(i);
  const auto count = static_cast<int64_t>(fresh.size());
  for (int64_t first = 0; first < count; first += kPassagesAtOnce) {
    if (options.progress && !options.progress(first, count))
      fail(ErrorKind::Failed, "search: interrupted; the index is unchanged");
    const int64_t size = std::min(kPassagesAtOnce, count - first);
    const auto chosen =
        std::span(fresh).subspan(static_cast<size_t>(first), static_cast<size_t>(size));
    EmbedOptions embed;
    embed.name_of_text = [&](size_t i) {
      const IndexedPassage& p = passages[chosen[i]];
      return fmt::format("{}: line {}", p.file, p.line);
    };
    std::vector<std::string> texts;
    for (const size_t i : chosen) texts.push_back(passages[i].text);
    const std::vector<int64_t> cut = compute_vectors(model, texts, chosen, embed, vectors);
    for (size_t i = 0; i < cut.size(); ++i)
      if (cut[i] > 0 && result.cut++ == 0) result.first_cut = embed.name_of_text(i);
  }
  result.embedded = count;
  return vectors;
}

SparseVectors joined(const std::vector<SparseVectors>& rows, int64_t width) {
  SparseVectors all;
  all.count = std::ssize(rows);
  all.width = width;
  for (const SparseVectors& row : rows) {
    all.indices.insert(all.indices.end(), row.indices.begin(), row.indices.end());
    all.values.insert(all.values.end(), row.values.begin(), row.values.end());
    all.starts.push_back(std::ssize(all.indices));
  }
  return all;
}

IndexedVectors indexed(const PassageVectors& vectors, const PassageModel& model) {
  switch (model.kind()) {
    case VectorKind::sparse: return PostingLists(joined(vectors.sparse, model.width()));
    case VectorKind::multiple: return PassageTokenVectors(vectors.tokens, model.width());
    case VectorKind::dense: break;
  }
  return VectorGraph(vectors.dense, model.similarity());
}

// Splits the text files of a folder into passages.
std::vector<IndexedPassage> passages_of(const std::string& folder, const PassageModel& model,
                                        const SearchBuildOptions& options, SearchBuild& result) {
  FoundTexts found = text_files(folder);
  result.skipped = std::move(found.skipped);
  result.links_out = std::move(found.links_out);
  std::vector<IndexedPassage> passages;
  for (const std::string& file : found.files) {
    ++result.files;
    const std::string text = read_text_file(folder, file);
    for (const PassageSpan& span : cut_passages(text, rules_for(model, options), model.tokenizer()))
      passages.push_back(
          {file, span.line, span.last_line, text.substr(span.begin, span.end - span.begin)});
  }
  if (passages.empty())
    fail(ErrorKind::BadFile, "{}: no text in {} files; expected a folder with text files", folder,
         result.files);
  result.passages = std::ssize(passages);
  return passages;
}

}  // namespace

void visit(SearchBuildOptions& o, OptionVisitor& v) {
  constexpr int64_t kMostTokens = 1 << 20;
  v.integer({"passage_tokens", "maximum tokens per passage; 0 = the model's limit, at most 256"},
            o.passage_tokens, 0, kMostTokens);
  v.integer({"overlap_tokens",
             "tokens shared by neighbouring passages of a long paragraph; -1 = an eighth of a "
             "passage"},
            o.overlap_tokens, -1, kMostTokens);
}

SearchBuild build_search_index(const std::string& folder, const std::string& model_folder,
                               const std::string& index, const SearchBuildOptions& options) {
  const FloatMode mode;
  check_fields(options);
  const PassageModel model = PassageModel::open(model_folder);
  const std::string fingerprint = model.fingerprint();
  const KnownVectors known(index, fingerprint, model);
  SearchBuild result;
  std::vector<IndexedPassage> passages = passages_of(folder, model, options, result);
  result.limit = model.max_tokens();
  const PassageVectors vectors = vectors_of(passages, model, known, options, result);
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  std::vector<std::string_view> texts;
  for (const IndexedPassage& passage : passages) texts.push_back(passage.text);
  WordIndex words(texts);
  const IndexSettings settings{absolute(folder), absolute(model_folder), fingerprint,
                               model.width(),    model.similarity(),     model.kind()};
  write_index(index, {settings, std::move(passages), indexed(vectors, model), std::move(words)});
  return result;
}

}  // namespace fovea::infer
