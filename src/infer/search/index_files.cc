#include "search/index_files.h"

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "fovea/core/excerpt.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 3;
constexpr int64_t kMostLines = int64_t{1} << 53;
constexpr size_t kMostBytes = size_t{16} << 30;  // limit of passages.jsonl, which is held in memory

std::string passages_text(const std::vector<IndexedPassage>& passages) {
  std::string text;
  for (const IndexedPassage& passage : passages)
    text += json_line(Json({{"file", passage.file},
                            {"line", passage.line},
                            {"last_line", passage.last_line},
                            {"text", passage.text}})) +
            "\n";
  return text;
}

std::vector<IndexedPassage> parse_passages(std::string_view text, const std::string& file) {
  std::vector<IndexedPassage> passages;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const nlohmann::json json = parse_json(text.substr(at, end - at), file);
    if (!json.is_object())
      fail(ErrorKind::BadFile, "{}: line {} is not an object; expected a passage", file,
           passages.size() + 1);
    passages.push_back({get_string(json, "file", file), get_int(json, "line", file, 1, kMostLines),
                        get_int(json, "last_line", file, 1, kMostLines),
                        get_string(json, "text", file)});
    at = end + 1;
  }
  return passages;
}

// The files beside index.json, with the key of each one's hash.
struct HashedFile {
  const char *name, *key;
};
constexpr HashedFile kPassages = {"passages.jsonl", "hash_of_passages"},
                     kWords = {"words.safetensors", "hash_of_words"};
struct VectorFile {
  const char *kind, *name;
};
constexpr VectorFile kVectorFiles[] = {  // in the order of VectorKind
    {"dense", "graph.hnsw"},
    {"sparse", "sparse.safetensors"},
    {"tokens", "tokens.safetensors"}};
const VectorFile& vector_file(VectorKind kind) { return kVectorFiles[static_cast<size_t>(kind)]; }
HashedFile hashed_vectors(VectorKind kind) { return {vector_file(kind).name, "hash_of_vectors"}; }

// Returns the contents of index.json without the hash of these contents.
Json description(const IndexFiles& index) {
  const IndexSettings& s = index.settings;
  return {{"fovea_search", kVersion},
          {"folder", s.folder},
          {"model", s.model},
          {"fingerprint", s.fingerprint},
          {"width", s.width},
          {"similarity", name_of(s.similarity)},
          {"vectors", vector_file(s.kind).kind},
          {"passages", index.passages.size()}};
}

[[noreturn]] void refuse_damage(const std::string& file) {
  fail(ErrorKind::BadFile, "{}: is damaged; expected the file as written (build the index again)",
       file);
}

nlohmann::json read_description(const std::string& path) {
  const std::string file = path + "/index.json";
  if (!is_file(file))
    fail(ErrorKind::BadFile,
         "{}: is not a search index; expected a folder made by fovea search --build", path);
  Json json = Json::parse(read_json(file).dump());
  if (!json.is_object() || get_int(json, "fovea_search", file) != kVersion)
    fail(ErrorKind::Unsupported,
         "{}: is not of version {}; expected an index made by this version of fovea", file,
         kVersion);
  const std::string hash = get_string(json, "hash", file);
  json.erase("hash");
  if (hash != hash_text(hash_bytes(nlohmann::json(json).dump()))) refuse_damage(file);
  return json;
}

Similarity get_similarity(const nlohmann::json& json, const std::string& file) {
  const std::string name = get_string(json, "similarity", file);
  const std::optional<Similarity> similarity = similarity_named(name);
  if (!similarity)
    fail(ErrorKind::BadFile, "{}: similarity is {}; expected cosine, dot or euclidean", file,
         excerpt(name, 40));
  return *similarity;
}

VectorKind get_kind(const nlohmann::json& json, const std::string& file) {
  const std::string name = get_string(json, "vectors", file);
  for (const VectorKind kind : {VectorKind::dense, VectorKind::sparse, VectorKind::multiple})
    if (name == vector_file(kind).kind) return kind;
  fail(ErrorKind::BadFile, "{}: vectors is {}; expected dense, sparse or tokens", file,
       excerpt(name, 40));
}

}  // namespace

bool is_index(const std::string& path) {
  if (is_file(path + "/index.json") && read_json(path + "/index.json").contains("fovea_search"))
    return true;
  const bool taken = is_file(path) ||
                     (is_folder(path) && !(list_files(path).empty() && list_folders(path).empty()));
  check(!taken, "{}: exists and is not a search index; expected another name", path);
  return false;
}

void write_index(const std::string& path, const IndexFiles& index) {
  const auto bytes_of = [](const std::map<std::string, Tensor>& tensors) {
    std::string bytes;
    const SafeTensorsImage image(tensors, {});
    for (const std::string_view piece : image.pieces()) bytes += piece;
    return bytes;
  };
  const auto bytes_of_vectors = [&](const auto& vectors) {
    if constexpr (requires { vectors.tensors(); })
      return bytes_of(vectors.tensors());
    else
      return vectors.bytes();
  };
  const std::pair<HashedFile, std::string> files[] = {
      {kPassages, passages_text(index.passages)},
      {kWords, bytes_of(index.words.tensors())},
      {hashed_vectors(index.settings.kind), std::visit(bytes_of_vectors, index.vectors)}};
  Json json = description(index);
  size_t total = 0;
  for (const auto& [file, bytes] : files) {
    json[file.key] = hash_text(hash_bytes(bytes));
    total += bytes.size();
  }
  json["hash"] = hash_text(hash_bytes(nlohmann::json(json).dump()));
  const std::string text = pretty(json);
  static_cast<void>(is_index(path));
  DirectoryWriter writer(path, total + text.size());
  for (const auto& [file, bytes] : files) writer.write(file.name, {bytes});
  writer.write("index.json", {text});
  writer.commit();
}

IndexFiles read_index(const std::string& path) {
  const nlohmann::json json = read_description(path);
  const std::string file = path + "/index.json";
  const IndexSettings settings{get_string(json, "folder", file),
                               get_string(json, "model", file),
                               get_string(json, "fingerprint", file),
                               get_int(json, "width", file, 1),
                               get_similarity(json, file),
                               get_kind(json, file)};
  const auto name_of_file = [&](const HashedFile& hashed) { return path + "/" + hashed.name; };
  const auto expect_hash = [&](const HashedFile& hashed, std::string_view bytes) {
    if (hash_text(hash_bytes(bytes)) != get_string(json, hashed.key, file))
      refuse_damage(name_of_file(hashed));
  };
  const std::string text = read_file(name_of_file(kPassages), kMostBytes);
  expect_hash(kPassages, text);
  std::vector<IndexedPassage> passages = parse_passages(text, name_of_file(kPassages));
  const auto count = static_cast<int64_t>(passages.size());
  const auto tensors = [&](const HashedFile& hashed) {
    expect_hash(hashed, MappedFile(name_of_file(hashed)).bytes());
    return SafeTensors(name_of_file(hashed));
  };
  WordIndex words(tensors(kWords), name_of_file(kWords), count);
  const HashedFile hashed = hashed_vectors(settings.kind);
  const std::string vectors_path = name_of_file(hashed);
  const auto vectors = [&]() -> IndexedVectors {
    switch (settings.kind) {
      case VectorKind::sparse:
        return PostingLists(tensors(hashed), vectors_path, settings.width, count);
      case VectorKind::multiple:
        return PassageTokenVectors(tensors(hashed), vectors_path, settings.width, count);
      case VectorKind::dense: break;
    }
    const MappedFile bytes(vectors_path);
    expect_hash(hashed, bytes.bytes());
    return VectorGraph(bytes.bytes(), vectors_path, count, settings.width, settings.similarity);
  };
  return {settings, std::move(passages), vectors(), std::move(words)};
}

}  // namespace fovea::infer
