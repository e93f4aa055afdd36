#include "fovea/search.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "embed/sentence_model.h"
#include "fovea/embed.h"
#include "search/index_files.h"
#include "search/passages.h"
#include "search/text_files.h"
#include "search/word_matches.h"

namespace fovea {
namespace {

constexpr int64_t kPassagesAtOnce = 256;  // number embedded between two calls of `progress`

// Returns the options for queries or for passages, with the first of the named prompts that the
// model has. The names are those of sentence-transformers.
EmbedOptions options_for(const Embedder& embedder, std::initializer_list<const char*> names) {
  EmbedOptions options;
  if (embedder.similarity_name() == "cosine") options.normalise = true;
  for (const char* name : names) {
    if (!embedder.prompts().contains(name)) continue;
    options.prompt_name = name;
    break;
  }
  return options;
}
EmbedOptions options_for_query(const Embedder& embedder) {
  return options_for(embedder, {"query"});
}
EmbedOptions options_for_passages(const Embedder& embedder) {
  return options_for(embedder, {"document", "passage", "corpus"});
}

Similarity similarity_of(const Embedder& embedder) {
  for (const Similarity s : {Similarity::dot, Similarity::euclidean, Similarity::manhattan})
    if (embedder.similarity_name() == name_of(s)) return s;
  return Similarity::cosine;
}

std::string fingerprint_of(const Embedder& embedder) { return hash_text(embedder.fingerprint()); }

PassageRules rules_for(const Embedder& embedder, const SearchBuildOptions& options) {
  constexpr int64_t kMost = 256, kSpecial = 8;  // room for special tokens and a short prompt
  PassageRules rules;
  rules.most_tokens = options.passage_tokens > 0
                          ? options.passage_tokens
                          : std::max<int64_t>(1, std::min(kMost, embedder.max_tokens() - kSpecial));
  rules.overlap_tokens =
      options.overlap_tokens >= 0 ? options.overlap_tokens : rules.most_tokens / 8;
  return rules;
}

// The vectors of the existing index, by the texts of their passages, for reuse. Empty if the index
// is damaged or was built with a different model.
class KnownVectors {
 public:
  KnownVectors(const std::string& path, const std::string& fingerprint, int64_t width) {
    if (!is_index(path)) return;
    try {
      index_ = std::make_unique<IndexFiles>(read_index(path));
    } catch (const Error&) {
      return;
    }
    if (index_->settings.fingerprint != fingerprint || index_->settings.width != width) return;
    for (size_t i = 0; i < index_->passages.size(); ++i)
      numbers_.emplace(index_->passages[i].text, static_cast<int64_t>(i));
  }
  // Copies the vector of a text; returns false if there is none.
  bool lend(const std::string& text, float* vector) const {
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return false;
    std::ranges::copy(index_->graph.vector(found->second), vector);
    return true;
  }

 private:
  std::unique_ptr<IndexFiles> index_;
  std::unordered_map<std::string, int64_t> numbers_;
};

// Copies known vectors and computes the other vectors; counts these in the result.
void fill_vectors(const std::vector<IndexedPassage>& passages, const Embedder& embedder,
                  const KnownVectors& known, const SearchBuildOptions& options, float* vectors,
                  SearchBuild& result) {
  const int64_t width = embedder.width();
  std::vector<size_t> fresh;
  for (size_t i = 0; i < passages.size(); ++i)
    if (!known.lend(passages[i].text, vectors + static_cast<int64_t>(i) * width))
      fresh.push_back(i);
  const auto count = static_cast<int64_t>(fresh.size());
  for (int64_t first = 0; first < count; first += kPassagesAtOnce) {
    if (options.progress && !options.progress(first, count))
      fail(ErrorKind::Failed, "search: interrupted; the index is unchanged");
    const int64_t next = std::min(first + kPassagesAtOnce, count);
    EmbedOptions embed = options_for_passages(embedder);
    const auto passage = [&](int64_t i) { return fresh[static_cast<size_t>(first + i)]; };
    embed.name_of_text = [&](size_t i) {
      const IndexedPassage& p = passages[passage(static_cast<int64_t>(i))];
      return fmt::format("{}: line {}", p.file, p.line);
    };
    std::vector<std::string> texts;
    for (int64_t i = 0; i < next - first; ++i) texts.push_back(passages[passage(i)].text);
    const Embeddings embeddings = embedder.embed(texts, embed);
    const ArrayView rows = embeddings.view();
    for (int64_t i = 0; i < next - first; ++i) {
      std::ranges::copy(rows.row<float>(i), vectors + static_cast<int64_t>(passage(i)) * width);
      const bool cut = embeddings.cut[static_cast<size_t>(i)] > 0;
      if (cut && result.cut++ == 0) result.first_cut = embed.name_of_text(static_cast<size_t>(i));
    }
  }
  result.embedded = count;
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

SearchBuild build_search_index(const std::string& folder, const std::string& model,
                               const std::string& index, const SearchBuildOptions& options) {
  const FloatMode mode;
  check_fields(options);
  const Embedder embedder = Embedder::open(model);
  const std::string fingerprint = fingerprint_of(embedder);
  const KnownVectors known(index, fingerprint, embedder.width());
  SearchBuild result;
  std::vector<IndexedPassage> passages;
  FoundTexts found = text_files(folder);
  result.skipped = std::move(found.skipped);
  result.links_out = std::move(found.links_out);
  for (const std::string& file : found.files) {
    ++result.files;
    const std::string text = read_text_file(folder, file);
    for (const PassageSpan& span :
         cut_passages(text, rules_for(embedder, options), embedder.tokenizer()))
      passages.push_back(
          {file, span.line, span.last_line, text.substr(span.begin, span.end - span.begin)});
  }
  if (passages.empty())
    fail(ErrorKind::BadFile, "{}: no text in {} files; expected a folder with text files", folder,
         result.files);
  result.passages = static_cast<int64_t>(passages.size());
  const Tensor vectors = empty({result.passages, embedder.width()});
  result.limit = embedder.max_tokens();
  fill_vectors(passages, embedder, known, options, vectors.data_as<float>(), result);
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal().string();
  };
  const Similarity similarity = similarity_of(embedder);
  write_index(index,
              {{absolute(folder), absolute(model), fingerprint, embedder.width(), similarity},
               std::move(passages),
               VectorGraph(vectors, similarity)});
  return result;
}

struct SearchIndex::Parts {
  IndexFiles files;
  Embedder embedder;
};

SearchIndex SearchIndex::open(const std::string& index, const std::string& model) {
  const FloatMode mode;
  IndexFiles files = read_index(index);
  Embedder embedder = Embedder::open(model.empty() ? files.settings.model : model);
  // A forged index can have any fingerprint; the width determines how many elements of a vector are
  // read.
  check(files.settings.fingerprint == fingerprint_of(embedder) &&
            files.settings.width == embedder.width(),
        "{}: was built with another model than {}; expected the same model, or a new index", index,
        model.empty() ? files.settings.model : model);
  return SearchIndex(std::make_shared<Parts>(Parts{std::move(files), std::move(embedder)}));
}

const std::vector<std::string>& SearchIndex::warnings() const {
  return parts_->embedder.warnings();
}

std::vector<FoundPassage> SearchIndex::search(const std::string& query, int64_t count) const {
  const FloatMode mode;
  const Embeddings vector = parts_->embedder.embed({query}, options_for_query(parts_->embedder));
  std::vector<FoundPassage> found;
  for (const auto& [number, similarity] : parts_->files.graph.nearest(vector.values, count)) {
    const IndexedPassage& passage = parts_->files.passages[static_cast<size_t>(number)];
    found.push_back({passage.file, passage.line, passage.last_line, passage.text, similarity});
  }
  return found;
}

std::vector<WordMatch> SearchIndex::explain(const std::string& query,
                                            const FoundPassage& passage) const {
  const FloatMode mode;
  const auto words = [&](const std::string& text, const EmbedOptions& options) {
    std::vector<PlacedVector> tokens;
    for (const EmbeddedToken& token : parts_->embedder.embed_tokens(text, options))
      tokens.push_back({token.begin, token.end, token.vector});
    return words_of(text, tokens);
  };
  const auto of_query = words(query, options_for_query(parts_->embedder));
  const auto of_passage = words(passage.text, options_for_passages(parts_->embedder));
  std::vector<WordMatch> matches;
  for (const WordPair& pair : best_matches(of_query, of_passage)) {
    const PlacedVector &q = of_query[pair.query], &p = of_passage[pair.passage];
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

}  // namespace fovea
