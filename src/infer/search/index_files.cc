#include "search/index_files.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "fovea/core/excerpt.h"

namespace fovea::infer {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 4;
constexpr int64_t kMostPassageTokens = int64_t{1} << 40;

struct VectorFile {
  const char *kind, *name;
};
constexpr VectorFile kVectorFiles[] = {  // in the order of VectorKind
    {"dense", "vectors.safetensors"},
    {"sparse", "sparse.safetensors"},
    {"tokens", "tokens.safetensors"}};
const VectorFile& vector_file(VectorKind kind) { return kVectorFiles[static_cast<size_t>(kind)]; }

constexpr VectorPrecision kPrecisions[] = {VectorPrecision::float32, VectorPrecision::int8,
                                           VectorPrecision::binary};
const char* name_of_precision(VectorPrecision precision) {
  if (precision == VectorPrecision::float32) return "float32";
  return precision == VectorPrecision::int8 ? "int8" : "binary";
}

constexpr const char* kFilesOfVersion3[] = {"passages.jsonl", "words.safetensors", "graph.hnsw",
                                            "sparse.safetensors", "tokens.safetensors"};

// Returns the number that names a part; 0 for other names.
int64_t number_of_part(const std::string& name) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool valid = error == std::errc() && end == name.data() + name.size() && name[0] != '0';
  return valid && number > 0 ? number : 0;
}

Json json_of(const IndexDescription& index) {
  const IndexSettings& s = index.settings;
  Json json = {{"fovea_search", kVersion},
               {"folder", s.folder},
               {"model", s.model},
               {"fingerprint", s.fingerprint},
               {"width", s.width},
               {"similarity", name_of(s.similarity)},
               {"vectors", vector_file(s.kind).kind},
               {"precision", name_of_precision(s.precision)},
               {"passage_tokens", s.passage_tokens},
               {"overlap_tokens", s.overlap_tokens},
               {"recall", Json::array()},
               {"parts", Json::array()}};
  for (const GraphRecall& r : s.recall)
    json["recall"].push_back({{"candidates", r.candidates}, {"recall", r.recall}});
  for (const PartEntry& part : index.parts)
    json["parts"].push_back(
        {{"name", part.name}, {"deleted", part.deleted}, {"hashes", part.hashes}});
  return json;
}

std::string hash_of(const Json& json) { return hash_text(hash_bytes(nlohmann::json(json).dump())); }

Similarity get_similarity(const nlohmann::json& json, const std::string& file) {
  const std::string name = get_string(json, "similarity", file);
  const std::optional<Similarity> similarity = similarity_named(name);
  if (!similarity || *similarity == Similarity::manhattan)
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

VectorPrecision get_precision(const nlohmann::json& json, const std::string& file) {
  const std::string name = get_string(json, "precision", file);
  for (const VectorPrecision precision : kPrecisions)
    if (name == name_of_precision(precision)) return precision;
  fail(ErrorKind::BadFile, "{}: precision is {}; expected float32, int8 or binary", file,
       excerpt(name, 40));
}

// Returns the elements of an array of objects.
std::vector<nlohmann::json> get_objects(const nlohmann::json& json, const char* key,
                                        const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array() ||
      !std::ranges::all_of(*found, [](const auto& each) { return each.is_object(); }))
    fail(ErrorKind::BadFile, "{}: {} is missing or not a list of objects; expected one", file, key);
  return {found->begin(), found->end()};
}

PartEntry part_of(const nlohmann::json& json, const std::string& file) {
  const auto refuse = [&](const char* what, const char* expected) {
    fail(ErrorKind::BadFile, "{}: a part has {}; expected {}", file, what, expected);
  };
  PartEntry part;
  part.name = get_string(json, "name", file);
  if (number_of_part(part.name) == 0) refuse("an invalid name", "a number");
  const auto deleted = json.find("deleted"), hashes = json.find("hashes");
  const auto is_text = [](const nlohmann::json& each) { return each.is_string(); };
  if (deleted == json.end() || !deleted->is_array() || !std::ranges::all_of(*deleted, is_text))
    refuse("no `deleted`", "a list of files");
  if (hashes == json.end() || !hashes->is_object() || !std::ranges::all_of(*hashes, is_text))
    refuse("no `hashes`", "those of its files");
  part.deleted = deleted->get<std::vector<std::string>>();
  part.hashes = hashes->get<std::map<std::string, std::string>>();
  if (!std::ranges::is_sorted(part.deleted)) refuse("unsorted `deleted`", "sorted files");
  return part;
}

std::string bytes_of(const std::map<std::string, Tensor>& tensors) {
  std::string bytes;
  const SafeTensorsImage image(tensors, {});
  for (const std::string_view piece : image.pieces()) bytes += piece;
  return bytes;
}

// Returns the names of the folders of parts.
std::vector<std::string> part_folders(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::string& name : list_folders(path))
    if (number_of_part(name) > 0) parts.push_back(name);
  return parts;
}

}  // namespace

const char* index_file::vectors(VectorKind kind) { return vector_file(kind).name; }

void refuse_damage(const std::string& file) {
  fail(ErrorKind::BadFile, "{}: is damaged; expected the file as written (build the index again)",
       file);
}

IndexDescription read_description(const std::string& path) {
  const std::string file = path + "/" + index_file::kDescription;
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
  if (hash != hash_of(json)) refuse_damage(file);
  IndexDescription index;
  IndexSettings& s = index.settings;
  s.folder = get_string(json, "folder", file);
  s.model = get_string(json, "model", file);
  s.fingerprint = get_string(json, "fingerprint", file);
  s.width = get_int(json, "width", file, 1);
  s.similarity = get_similarity(json, file);
  s.kind = get_kind(json, file);
  s.precision = get_precision(json, file);
  s.passage_tokens = get_int(json, "passage_tokens", file, 1, kMostPassageTokens);
  s.overlap_tokens = get_int(json, "overlap_tokens", file, 0, s.passage_tokens - 1);
  for (const nlohmann::json& each : get_objects(json, "recall", file))
    s.recall.push_back(
        {get_int(each, "candidates", file, 1), get_float(each, "recall", file, 0, 1)});
  for (const nlohmann::json& each : get_objects(json, "parts", file))
    index.parts.push_back(part_of(each, file));
  return index;
}

bool is_index(const std::string& path) {
  const std::string description = path + "/" + index_file::kDescription;
  if (is_file(description)) {
    const nlohmann::json json = read_json(description);
    if (json.is_object() && json.contains("fovea_search")) return true;
  }
  // What a process leaves that is killed while it makes a new index.
  const auto left = [](const std::string& name) {
    return name == ".lock" || name.starts_with(".saving-") || number_of_part(name) > 0;
  };
  const bool taken =
      is_file(path) || (is_folder(path) && !(std::ranges::all_of(list_files(path), left) &&
                                             std::ranges::all_of(list_folders(path), left)));
  check(!taken, "{}: exists and is not a search index; expected another name", path);
  return false;
}

IndexWriter::IndexWriter(const std::string& path) : path_(path), is_new_(!is_folder(path)) {
  static_cast<void>(is_index(path));
  lock_ = std::make_unique<DirectoryLock>(path);
  remove_leftovers(path);
  // A process that was killed may have left parts that index.json does not name; their numbers are
  // not used again here, and commit() removes them.
  for (const std::string& name : part_folders(path))
    next_ = std::max(next_, number_of_part(name) + 1);
}

IndexWriter::~IndexWriter() {
  if (committed_) return;
  try {
    for (const PartEntry& part : written_) remove_tree(path_ + "/" + part.name);
    if (is_new_) {
      system_calls().unlink((path_ + "/.lock").c_str());
      system_calls().rmdir(path_.c_str());
    }
  } catch (const Error&) {  // the next writer will try again
  }
}

PartEntry IndexWriter::write(const PartContents& part) {
  const PassageLines lines = lines_of(part.passages);
  const PassageTable table(part.passages, lines, part.rows, part.groups, part.dates);
  std::map<std::string, std::string> files = {
      {index_file::kPassages, lines.text},
      {index_file::kTable, bytes_of(table.tensors())},
      {index_file::kWords, bytes_of(part.words.tensors())},
      {vector_file(static_cast<VectorKind>(part.vectors.index())).name,
       std::visit([](const auto& vectors) { return bytes_of(vectors.tensors()); }, part.vectors)}};
  if (part.graph) files[index_file::kGraph] = part.graph->bytes();
  PartEntry entry{std::to_string(next_++), {}};
  size_t total = 0;
  for (const auto& [name, bytes] : files) total += bytes.size();
  DirectoryWriter writer(path_ + "/" + entry.name, total);
  for (const auto& [name, bytes] : files) {
    writer.write(name, {bytes});
    // The lines of passages.jsonl have hashes of their own.
    if (name != index_file::kPassages) entry.hashes[name] = hash_text(hash_bytes(bytes));
  }
  writer.commit();
  written_.push_back(entry);
  return entry;
}

void IndexWriter::commit(const IndexDescription& index) {
  Json json = json_of(index);
  json["hash"] = hash_of(json);
  write_file_atomically(path_ + "/" + index_file::kDescription, pretty(json));
  committed_ = true;
  remove_parts_except(index.parts);
}

// Whoever has opened a part keeps its files until they are closed.
void IndexWriter::remove_parts_except(const std::vector<PartEntry>& parts) const {
  for (const std::string& name : part_folders(path_))
    if (std::ranges::none_of(parts, [&](const PartEntry& part) { return part.name == name; }))
      remove_tree(path_ + "/" + name);
  for (const char* name : kFilesOfVersion3) remove_tree(path_ + "/" + name);
}

}  // namespace fovea::infer
