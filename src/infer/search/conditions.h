#pragma once

// The conditions of a search on the files, dates and records of passages.

#include <string>
#include <vector>

#include "search/index_part.h"

namespace fovea::infer {

// Returns whether a name fits a pattern: `*` is any text without "/", `**` any text, `?` a
// character except "/". A pattern without "/" is compared with the last component of the name.
bool fits_pattern(std::string_view name, std::string_view pattern);

class Conditions {
 public:
  // See SearchOptions::where. Throws InvalidArgument for a malformed condition.
  explicit Conditions(const std::vector<std::string>& texts);

  bool empty() const { return all_.empty(); }
  // Returns whether each passage of a part fulfils all conditions. A passage without a field
  // fulfils no condition on it.
  std::vector<char> fulfilled(const IndexPart& part) const;

 private:
  enum class Comparison { equal, unequal, less, at_most, greater, at_least };
  struct Condition {
    std::string name, value;
    Comparison comparison;
  };
  static Condition parse(const std::string& text);
  static bool holds(Comparison comparison, int order);
  static bool holds_for_date(const Condition& condition, const std::string& date);

  std::vector<Condition> all_;
};

}  // namespace fovea::infer
