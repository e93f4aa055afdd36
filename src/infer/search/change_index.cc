// Adding and removing files without reading the others: an added file goes into a new part, a
// removed one is listed as deleted, and small parts are merged when there are many.

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "fovea/infer/search.h"
#include "search/part_maker.h"
#include "search/text_files.h"

namespace fovea::infer {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostSmallParts = 8;  // more are merged

// Returns a path relative to the folder, "." for the folder itself; unset if it is not below it, or
// below a folder whose name begins with a dot.
std::optional<std::string> name_below(const std::string& folder, const fs::path& path) {
  const fs::path relative = path.lexically_normal().lexically_relative(folder);
  if (relative.empty()) return std::nullopt;
  if (relative == ".") return ".";
  std::string name = relative.string();
  if (name.ends_with('/')) name.pop_back();
  return name[0] == '.' || name.find("/.") != name.npos ? std::nullopt : std::optional(name);
}

// Returns the names that a given path may have in the folder.
std::vector<std::string> names_of(const std::string& folder, const std::string& given) {
  std::vector<std::string> names;
  for (const fs::path& path : {fs::absolute(given), fs::path(folder) / given})
    if (const auto name = name_below(folder, path)) names.push_back(*name);
  return names;
}

bool is_in(const std::string& file, const std::string& folder) {
  return folder == "." || file.starts_with(folder + "/");
}

// Adds the files that a path names to `files`.
void find_files(const std::string& folder, const std::string& given, std::set<std::string>& files,
                SearchBuild& result) {
  for (const std::string& name : names_of(folder, given)) {
    const std::string path = folder + "/" + name;
    if (!is_file(path) && !is_folder(path)) continue;
    // The rules for links, hidden files and files that are no text are those of a build.
    const FoundTexts found = text_files(folder, name);
    files.insert(found.files.begin(), found.files.end());
    result.skipped.insert(result.skipped.end(), found.skipped.begin(), found.skipped.end());
    result.links_out.insert(result.links_out.end(), found.links_out.begin(), found.links_out.end());
    return;
  }
  fail(ErrorKind::InvalidArgument,
       "{}: is not a file or a folder below {}; expected one that the index may contain", given,
       folder);
}

// Lists files as deleted in the parts that have them; returns how many there are.
int64_t mark_deleted(const IndexContents& index, const std::set<std::string>& files,
                     IndexDescription& description) {
  std::set<std::string> found;
  for (int64_t p = 0; p < index.parts(); ++p) {
    std::vector<std::string>& deleted = description.parts[static_cast<size_t>(p)].deleted;
    for (const PassageTable::File& file : index.part(p).table().files()) {
      if (!files.contains(file.name) || std::ranges::binary_search(deleted, file.name)) continue;
      deleted.insert(std::ranges::upper_bound(deleted, file.name), file.name);
      found.insert(file.name);
    }
  }
  return std::ssize(found);
}

// Replaces small parts by fewer, and those most of whose passages are deleted.
void merge_small(const std::string& path, int64_t part_passages, IndexWriter& writer,
                 IndexDescription& description) {
  const IndexContents index(path, description);
  std::vector<int64_t> kept(description.parts.size());
  for (int64_t i = 0; i < index.passages(); ++i)
    ++kept[static_cast<size_t>(index.location(i).part)];
  std::vector<char> merged(description.parts.size());
  int64_t small = 0;
  for (size_t p = 0; p < merged.size(); ++p) {
    // A graph cannot be merged.
    const bool has_graph = description.parts[p].hashes.contains(index_file::kGraph);
    const int64_t all = index.part(static_cast<int64_t>(p)).table().passages();
    if (kept[p] == 0 || (kept[p] < all / 2 && !has_graph)) merged[p] = 2;
    if (merged[p] == 0 && kept[p] < part_passages / 2 && !has_graph) {
      merged[p] = 1;
      ++small;
    }
  }
  if (small <= kMostSmallParts) std::ranges::replace(merged, 1, 0);
  if (std::ranges::count(merged, 0) == std::ssize(merged)) return;
  std::vector<PartEntry> parts;
  for (size_t p = 0; p < merged.size(); ++p)
    if (merged[p] == 0) parts.push_back(description.parts[p]);
  for (PartEntry& part : merge_parts(index, merged, part_passages, writer))
    parts.push_back(std::move(part));
  description.parts = std::move(parts);
}

}  // namespace

SearchBuild add_to_search_index(const std::string& path, const std::vector<std::string>& files,
                                const std::string& model_folder,
                                const SearchBuildOptions& options) {
  const FloatMode mode;
  check_fields(options);
  static_cast<void>(read_description(path));  // before a lock is made in a folder that is no index
  IndexWriter writer(path);
  const IndexContents index(path);
  const IndexSettings& settings = index.settings();
  const PassageModel model =
      PassageModel::open(model_folder.empty() ? settings.model : model_folder, settings.kind);
  check(model.fingerprint() == settings.fingerprint && model.kind() == settings.kind &&
            model.width() == settings.width,
        "{}: was built with another model than {}; expected the same model, or a new index", path,
        model_folder.empty() ? settings.model : model_folder);
  SearchBuild result;
  std::set<std::string> names;
  for (const std::string& given : files) find_files(settings.folder, given, names, result);
  IndexDescription description = index.description();
  std::set<std::string> replaced = names;
  replaced.insert(result.skipped.begin(), result.skipped.end());  // no longer texts
  mark_deleted(index, replaced, description);
  PartMaker maker(path, settings, model, nullptr, options, result, &writer);
  for (const std::string& name : names) maker.add(settings.folder, name);
  for (PartEntry& part : maker.finish()) description.parts.push_back(std::move(part));
  merge_small(path, options.part_passages, writer, description);
  writer.commit(description);
  return result;
}

int64_t delete_from_search_index(const std::string& path, const std::vector<std::string>& files) {
  static_cast<void>(read_description(path));
  IndexWriter writer(path);
  const IndexContents index(path);
  const std::string& folder = index.settings().folder;
  std::set<std::string> indexed, names;
  for (int64_t i = 0; i < index.passages(); ++i) {
    const PassageTable& table = index.part(index.location(i).part).table();
    indexed.insert(table.files()[static_cast<size_t>(table.file(index.location(i).passage))].name);
  }
  for (const std::string& given : files) {
    const size_t before = names.size();
    bool known = false;
    for (const std::string& name : names_of(folder, given)) {
      for (const std::string& file : indexed)
        if (file == name || is_in(file, name)) names.insert(file), known = true;
      if (names.size() > before) break;
    }
    check(known, "{}: is neither an indexed file nor a folder of such files; expected one below {}",
          given, folder);
  }
  IndexDescription description = index.description();
  const int64_t removed = mark_deleted(index, names, description);
  merge_small(path, SearchBuildOptions().part_passages, writer, description);
  writer.commit(description);
  return removed;
}

}  // namespace fovea::infer
