#include <algorithm>
#include <filesystem>

#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "fovea/infer/search.h"
#include "parallel/communicator.h"
#include "search/part_maker.h"
#include "search/text_files.h"

namespace fovea::infer {
namespace {

IndexSettings settings_for(const std::string& folder, const std::string& model_folder,
                           const PassageModel& model, const SearchBuildOptions& options) {
  constexpr int64_t kMost = 256, kSpecial = 8;  // room for special tokens and a short prompt
  const auto absolute = [](const std::string& path) {
    std::string name = std::filesystem::absolute(path).lexically_normal().string();
    if (name.size() > 1 && name.ends_with('/')) name.pop_back();
    return name;
  };
  IndexSettings s = {absolute(folder), absolute(model_folder), model.fingerprint(),
                     model.width(),    model.similarity(),     model.kind()};
  s.precision = options.vectors;
  s.passage_tokens = options.passage_tokens > 0
                         ? options.passage_tokens
                         : std::max<int64_t>(1, std::min(kMost, model.max_tokens() - kSpecial));
  s.overlap_tokens = options.overlap_tokens >= 0 ? options.overlap_tokens : s.passage_tokens / 8;
  check_field(s.overlap_tokens < s.passage_tokens, "overlap_tokens",
              "{}; expected less than the {} of a passage", s.overlap_tokens, s.passage_tokens);
  if (s.kind == VectorKind::dense && s.similarity == Similarity::manhattan)
    fail(ErrorKind::Unsupported,
         "search: the model compares vectors by manhattan distance; expected cosine, dot or "
         "euclidean");
  const bool whole = s.precision == VectorPrecision::float32;
  if (!whole && (s.kind != VectorKind::dense || s.similarity == Similarity::euclidean))
    fail_field(ErrorKind::Unsupported, "vectors",
               "int8 or binary: {} does not compute one vector for each text that is compared by "
               "cosine or dot product; expected such a model, or float32",
               model_folder);
  if (options.graph && (s.kind != VectorKind::dense || !whole))
    fail_field(ErrorKind::Unsupported, "graph",
               "needs one vector of float32 for each passage; expected `vectors` float32 and such "
               "a model");
  return s;
}

PassageModel open_for(IndexedKind kind, const std::string& folder) {
  if (kind == IndexedKind::automatic) return PassageModel::open(folder);
  const auto wanted = static_cast<VectorKind>(static_cast<int>(kind) - 1);
  PassageModel model = PassageModel::open(folder, wanted);
  check_field(model.kind() == wanted, "kind",
              "does not suit {}, which computes other vectors; expected automatic", folder);
  return model;
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
  v.choice({"kind",
            "vectors of the index: dense, sparse, or one for each of the tokens, for models that "
            "compute several; automatic = by the model's files"},
           o.kind, {"automatic", "dense", "sparse", "tokens"});
  // The index of a precision among those of an index.
  constexpr VectorPrecision kPrecisions[] = {VectorPrecision::float32, VectorPrecision::int8,
                                             VectorPrecision::binary};
  auto chosen = static_cast<int>(std::ranges::find(kPrecisions, o.vectors) - kPrecisions);
  v.choice({"vectors",
            "form of the vectors: float32, int8 (a quarter of the size), or binary (a bit for each "
            "element finds passages, int8 sorts them)"},
           chosen, {"float32", "int8", "binary"});
  const bool known = chosen >= 0 && chosen < std::ssize(kPrecisions);
  o.vectors = known ? kPrecisions[chosen] : VectorPrecision::uint8;  // which no index has
  v.boolean({"graph", "also build a graph (HNSW), for fast searches that may miss passages"},
            o.graph);
}

SearchBuild build_search_index(const std::string& folder, const std::string& model_folder,
                               const std::string& index, const SearchBuildOptions& options) {
  const FloatMode mode;
  check_fields(options);
  const PassageModel model = open_for(options.kind, model_folder);
  const IndexSettings settings = settings_for(folder, model_folder, model, options);
  if (options.ranks != nullptr) {
    check(options.ranks->gather(settings.fingerprint).front() == settings.fingerprint,
          "{}: differs from the model of rank 0; expected the same files", model_folder);
    if (options.ranks->rank() > 0) {
      while (!compute_vectors(model, options.ranks, {}).empty()) {
      }
      return {};
    }
  }
  SearchBuild result;
  FoundTexts found = text_files(folder);
  result.skipped = std::move(found.skipped);
  result.links_out = std::move(found.links_out);
  const KnownVectors known(index, settings);
  PartMaker maker(index, settings, model, &known, options, result);
  for (const std::string& file : found.files) maker.add(folder, file);
  IndexDescription description = {settings, maker.finish()};
  if (result.passages == 0)
    fail(ErrorKind::BadFile, "{}: no text in {} files; expected a folder with text files{}", folder,
         result.files, result.unread.empty() ? "" : " (" + result.unread.front() + ")");
  if (options.graph) description.settings.recall = measure_recall(index, description);
  result.recall = description.settings.recall;
  maker.writer().commit(description);
  return result;
}

}  // namespace fovea::infer
