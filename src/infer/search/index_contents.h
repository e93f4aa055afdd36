#pragma once

// An opened index, whatever its parts: its passages are numbered in the order of their files and
// their places in them, as if it had been built at once.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "search/conditions.h"
#include "search/index_part.h"

namespace fovea::infer {

class IndexContents {
 public:
  // Throws the errors of read_description() and IndexPart.
  explicit IndexContents(const std::string& path) : IndexContents(path, read_description(path)) {}
  // An index with this description instead of its own.
  IndexContents(const std::string& path, IndexDescription description);

  const IndexSettings& settings() const { return description_.settings; }
  const IndexDescription& description() const { return description_; }
  int64_t parts() const { return std::ssize(parts_); }
  const IndexPart& part(int64_t i) const { return *parts_[static_cast<size_t>(i)]; }

  // Where a passage is, by its number; of deleted files, there are none.
  struct Location {
    int32_t part, passage;
  };
  int64_t passages() const { return std::ssize(locations_); }
  Location location(int64_t number) const { return locations_[static_cast<size_t>(number)]; }
  IndexedPassage passage(int64_t number) const;

  // The passages that a search compares: of those with equal texts, the first.
  struct Selection {
    std::vector<std::vector<int32_t>> numbers;  // of each part: the passage of each row, or -1
    int64_t count = 0;

    std::span<const int32_t> of(int64_t part) const { return numbers[static_cast<size_t>(part)]; }
  };
  const Selection& all() const { return all_; }
  // Those that fulfil the conditions.
  Selection where(const Conditions& conditions) const;

 private:
  void number_groups();
  template <class Passes>
  Selection select(const Passes& passes) const;

  IndexDescription description_;
  std::vector<std::unique_ptr<IndexPart>> parts_;
  std::vector<Location> locations_;
  std::vector<std::vector<int32_t>> groups_;  // of each part: the group of each row
  int32_t group_count_ = 0;
  Selection all_;
};

}  // namespace fovea::infer
