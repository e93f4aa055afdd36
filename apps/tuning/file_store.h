#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::tuning {

struct StoredFile {
  std::string id;     // generated: "file-" and 24 hexadecimal digits
  std::string label;  // the client's name of the file; never a path
  uint64_t bytes = 0;
  int64_t created = 0;                // seconds since 1970
  int64_t number = 0;                 // in the order of uploads
  std::string purpose = "fine-tune";  // as in OpenAI's API: fine-tune, batch, batch_output
};

// The uploaded files of a folder: ID.jsonl with the content, and ID.json with the record, which is
// written last. All functions are safe to call from any thread.
class FileStore {
 public:
  static constexpr size_t kMostFiles = 1000, kMostLabelBytes = 255;

  // Reads the records of `folder` and removes contents without a record.
  explicit FileStore(std::string folder);

  // Throws FieldError if the label or the content is empty or the label is too long, not UTF-8 or
  // contains a control character, or if there are kMostFiles files.
  StoredFile add(const std::string& label, std::string_view content,
                 const std::string& purpose = "fine-tune");
  static std::string new_id();
  // Moves a file of the program itself, which is not empty, here as `id`, unless it is here.
  void adopt(const std::string& id, const std::string& label, const std::string& purpose,
             const std::string& from);
  std::vector<StoredFile> list() const;  // oldest first
  std::optional<StoredFile> find(const std::string& id) const;
  std::string content(const std::string& id) const;  // `id` must be that of a file
  std::string path(const std::string& id) const { return path(id, ".jsonl"); }
  void remove(const std::string& id);

 private:
  std::string path(const std::string& id, const char* ending) const;
  void read_record(const std::string& name);
  void write_record(StoredFile file);

  const std::string folder_;
  mutable std::mutex mutex_;
  std::map<std::string, StoredFile> files_;
  int64_t next_ = 0;
};

}  // namespace fovea::tuning
