#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "fovea/infer/search.h"
#include "parallel/gather_json.h"
#include "search/index_files.h"
#include "search/passage_model.h"
#include "search/passages.h"
#include "search/text_files.h"

namespace fovea::infer {
namespace {

constexpr size_t kPassagesAtOnce = 256;  // number embedded between two calls of `progress`

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

// Texts whose vectors are computed together, and where they come from.
struct TextBlock {
  std::vector<std::string> texts, names;
};

// The vectors of the texts of a block, as bytes: a dense vector, the indices and the values of a
// sparse one, or those of all tokens. Counts the tokens of each text that were truncated.
struct BlockVectors {
  std::vector<std::string> bytes;
  std::vector<int64_t> cut;
};

template <class T>
void append(std::string& bytes, std::span<const T> numbers) {
  bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
}

BlockVectors compute(const PassageModel& model, const TextBlock& block) {
  EmbedOptions options;
  options.name_of_text = [&](size_t i) { return block.names[i]; };
  BlockVectors found;
  found.bytes.resize(block.texts.size());
  const auto each = [&](const auto& append_vector) {
    for (size_t i = 0; i < block.texts.size(); ++i)
      append_vector(static_cast<int64_t>(i), found.bytes[i]);
  };
  switch (model.kind()) {
    case VectorKind::sparse: {
      const SparseVectors rows = model.sparse_vectors(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) {
        const SparseVectors one = KnownVectors::row_of(rows, i);
        append(bytes, std::span<const int32_t>(one.indices));
        append(bytes, std::span<const float>(one.values));
      });
      found.cut = rows.cut;
      break;
    }
    case VectorKind::multiple: {
      const MultiVectors rows = model.token_model().embed(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) { append(bytes, rows.rows(i).elements<float>()); });
      found.cut = rows.cut;
      break;
    }
    case VectorKind::dense: {
      const Embeddings rows = model.dense_vectors(block.texts, TextRole::document, options);
      each([&](int64_t i, std::string& bytes) { append(bytes, rows.view().row<float>(i)); });
      found.cut = rows.cut;
      break;
    }
  }
  return found;
}

// Sets the vectors of a passage to those that compute() has made.
void put(const std::string& bytes, int64_t width, size_t passage, PassageVectors& vectors) {
  if (vectors.dense) {
    std::memcpy(vectors.dense.data_as<float>() + static_cast<int64_t>(passage) * width,
                bytes.data(), bytes.size());
  } else if (!vectors.sparse.empty()) {
    SparseVectors& one = vectors.sparse[passage];
    const size_t count = bytes.size() / (sizeof(int32_t) + sizeof(float));
    one.count = 1;
    one.width = width;
    one.starts.push_back(static_cast<int64_t>(count));
    one.indices.resize(count);
    one.values.resize(count);
    std::memcpy(one.indices.data(), bytes.data(), count * sizeof(int32_t));
    std::memcpy(one.values.data(), bytes.data() + count * sizeof(int32_t), count * sizeof(float));
  } else {
    const auto rows = static_cast<int64_t>(bytes.size() / sizeof(float)) / width;
    vectors.tokens[passage] = empty({rows, width});
    std::memcpy(vectors.tokens[passage].data(), bytes.data(), bytes.size());
  }
}

// Computes a block on each rank. Collective; `blocks` are those of rank 0, and none end the work of
// the others. Returns the results of all blocks.
std::vector<BlockVectors> compute_on_ranks(const PassageModel& model, Communicator& ranks,
                                           std::vector<TextBlock>& blocks) {
  using nlohmann::json;
  json sent = json::array();
  for (const TextBlock& block : blocks) sent.push_back({block.texts, block.names});
  const json received = gather_json(ranks, sent).front();
  const auto me = static_cast<size_t>(ranks.rank());
  BlockVectors own;
  if (me < received.size())
    own = compute(model, {received[me][0].get<std::vector<std::string>>(),
                          received[me][1].get<std::vector<std::string>>()});
  if (received.empty()) return {};
  std::vector<BlockVectors> results;
  for (const json& of_rank : gather_json(ranks, {own.bytes, own.cut}))
    results.push_back(
        {of_rank[0].get<std::vector<std::string>>(), of_rank[1].get<std::vector<int64_t>>()});
  results.resize(received.size());
  return results;
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
  const auto most = static_cast<size_t>(options.ranks == nullptr ? 1 : options.ranks->size());
  for (size_t done = 0; done < fresh.size();) {
    if (options.progress && !options.progress(static_cast<int64_t>(done), count))
      fail(ErrorKind::Failed, "search: interrupted; the index is unchanged");
    std::vector<TextBlock> blocks;
    for (size_t next = done; blocks.size() < most && next < fresh.size();) {
      TextBlock& block = blocks.emplace_back();
      for (; block.texts.size() < kPassagesAtOnce && next < fresh.size(); ++next) {
        const IndexedPassage& p = passages[fresh[next]];
        block.texts.push_back(p.text);
        block.names.push_back(fmt::format("{}: line {}", p.file, p.line));
      }
    }
    const std::vector<BlockVectors> computed =
        options.ranks == nullptr ? std::vector{compute(model, blocks.front())}
                                 : compute_on_ranks(model, *options.ranks, blocks);
    for (size_t b = 0; b < computed.size(); ++b) {
      for (size_t i = 0; i < computed[b].bytes.size(); ++i) {
        put(computed[b].bytes[i], model.width(), fresh[done++], vectors);
        if (computed[b].cut[i] > 0 && result.cut++ == 0) result.first_cut = blocks[b].names[i];
      }
    }
  }
  if (options.ranks != nullptr) {
    std::vector<TextBlock> none;
    compute_on_ranks(model, *options.ranks, none);
  }
  result.embedded = count;
  return vectors;
}

// Computes vectors for rank 0 until it has all.
void help(const PassageModel& model, Communicator& ranks) {
  std::vector<TextBlock> none;
  while (!compute_on_ranks(model, ranks, none).empty()) {
  }
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
  if (options.ranks != nullptr) {
    check(options.ranks->gather(fingerprint).front() == fingerprint,
          "{}: differs from the model of rank 0; expected the same files", model_folder);
    if (options.ranks->rank() > 0) {
      help(model, *options.ranks);
      return {};
    }
  }
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
