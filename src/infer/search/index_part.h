#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <string>

#include "search/index_files.h"

namespace fovea::infer {

// An opened part of an index. Its files are mapped; those that not every search needs are checked
// when they are used for the first time. Safe to use from several threads.
class IndexPart {
 public:
  // Throws BadFile, naming the file, if one is missing or damaged.
  IndexPart(const std::string& index, const PartEntry& entry, const IndexSettings& settings);

  const PassageTable& table() const { return table_; }
  bool is_deleted(int32_t file) const { return deleted_[static_cast<size_t>(file)] != 0; }
  // Throws BadFile if the passage's line is damaged.
  IndexedPassage passage(int64_t number) const;

  // Throw std::bad_variant_access for the other kinds.
  const DenseVectors& dense() const { return std::get<DenseVectors>(vectors()); }
  const PostingLists& sparse() const { return std::get<PostingLists>(vectors()); }
  const PassageTokenVectors& tokens() const { return std::get<PassageTokenVectors>(vectors()); }
  const WordIndex& words() const;
  const VectorGraph* graph() const;  // null if the part has none

 private:
  // A value that is made when it is first needed.
  template <class T>
  class Lazy {
   public:
    const T& get(const std::function<T()>& make) const {
      const std::lock_guard lock(mutex_);
      if (!value_) value_.emplace(make());
      return *value_;
    }

   private:
    mutable std::mutex mutex_;
    mutable std::optional<T> value_;
  };

  std::string path_of(const char* name) const { return path_ + "/" + name; }
  void check_hash(const char* name, const MappedFile& file) const;
  SafeTensors checked(const char* name, const SafeTensors& file) const;
  const IndexedVectors& vectors() const;

  std::string path_;
  IndexSettings settings_;
  std::map<std::string, std::string> hashes_;
  MappedFile lines_;
  SafeTensors words_file_, vectors_file_;
  std::optional<MappedFile> graph_file_;
  PassageTable table_;
  std::vector<char> deleted_;  // of each file
  Lazy<IndexedVectors> vectors_;
  Lazy<WordIndex> words_;
  Lazy<VectorGraph> graph_;
};

}  // namespace fovea::infer
