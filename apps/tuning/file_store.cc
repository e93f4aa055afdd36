#include "tuning/file_store.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/json.h"
#include "base/ordered_json.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

constexpr const char* kFilePrefix = "file-";
constexpr const char *kContent = ".jsonl", *kRecord = ".json";

bool is_label(const std::string& label) {
  const bool plain = std::none_of(label.begin(), label.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  // json_line replaces invalid UTF-8.
  return plain && !label.empty() && label.size() <= FileStore::kMostLabelBytes &&
         nlohmann::ordered_json::parse(json_line(label)) == label;
}

}  // namespace

FileStore::FileStore(std::string folder) : folder_(std::move(folder)) {
  make_directories(folder_);
  remove_leftovers(folder_);
  const std::vector<std::string> names = list_files(folder_);
  for (const std::string& name : names) read_record(name);
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    if (name == id + kContent && is_id(id, kFilePrefix) && files_.count(id) == 0)
      remove_tree(folder_ + "/" + name);
  }
}

void FileStore::read_record(const std::string& name) {
  const std::string id = name.substr(0, name.find('.'));
  if (name != id + kRecord || !is_id(id, kFilePrefix) || !is_file(path(id, kContent))) return;
  const std::string record = path(id, kRecord);
  const nlohmann::json json = read_json(record);
  files_[id] = {id,
                get_string(json, "label", record),
                static_cast<uint64_t>(get_int(json, "bytes", record, 0)),
                get_int(json, "created", record),
                get_int(json, "number", record, 0),
                find_string(json, "purpose", record).value_or("fine-tune")};
  next_ = std::max(next_, files_[id].number + 1);
}

std::string FileStore::path(const std::string& id, const char* ending) const {
  return folder_ + "/" + id + ending;
}

// Requires the lock.
void FileStore::write_record(StoredFile file) {
  const nlohmann::ordered_json record = {{"label", file.label},
                                         {"bytes", file.bytes},
                                         {"created", file.created},
                                         {"number", file.number},
                                         {"purpose", file.purpose}};
  write_file_atomically(path(file.id, kRecord), pretty(record));
  ++next_;
  files_[file.id] = std::move(file);
}

std::string FileStore::new_id() { return random_id(kFilePrefix); }

void FileStore::adopt(const std::string& id, const std::string& label, const std::string& purpose,
                      const std::string& from) {
  const std::lock_guard lock(mutex_);
  if (files_.count(id) > 0) return;
  const std::string content = path(id, kContent);
  if (system_calls().rename(from.c_str(), content.c_str()) != 0)
    fail(ErrorKind::Failed, "{}: cannot be moved ({}); expected a writable directory", from,
         std::strerror(errno));
  const uint64_t bytes = std::filesystem::file_size(content);
  write_record({id, label, bytes, std::time(nullptr), next_, purpose});
}

StoredFile FileStore::add(const std::string& label, std::string_view content,
                          const std::string& purpose) {
  check_field(is_label(label), "file",
              "has no valid name; expected 1 to {} bytes of UTF-8 without control characters",
              kMostLabelBytes);
  check_field(!content.empty(), "file", "is empty; expected JSON lines");
  const std::lock_guard lock(mutex_);
  check_field(files_.size() < kMostFiles, "file",
              "there are already {} files; expected fewer: delete one", kMostFiles);
  const StoredFile file = {new_id(), label, content.size(), std::time(nullptr), next_, purpose};
  write_file_atomically(path(file.id, kContent), content);
  write_record(file);
  return file;
}

std::vector<StoredFile> FileStore::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<StoredFile> all;
  for (const auto& [id, file] : files_) all.push_back(file);
  std::sort(all.begin(), all.end(),
            [](const auto& one, const auto& other) { return one.number < other.number; });
  return all;
}

std::optional<StoredFile> FileStore::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(id);
  return found == files_.end() ? std::nullopt : std::optional(found->second);
}

std::string FileStore::content(const std::string& id) const {
  return read_file(path(id, kContent), size_t{1} << 40);  // the limit of uploads applied
}

void FileStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  if (files_.erase(id) == 0) return;
  remove_tree(path(id, kRecord));
  remove_tree(path(id, kContent));
}

}  // namespace fovea::tuning
