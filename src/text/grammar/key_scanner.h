#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// Reads JSON byte by byte and notices keys that an object has already, which no context-free
// grammar can exclude.
class KeyScanner {
 public:
  // Returns false if a key is repeated. The bytes must continue a JSON text.
  bool read(std::string_view bytes);
  // Returns whether reading these bytes would return false.
  bool repeats(std::string_view bytes) const;

 private:
  struct Level {
    bool object;
    std::set<std::string> keys = {};
  };
  bool end_string();

  std::vector<Level> levels_;  // of nested objects and arrays
  std::string text_;           // of the current string, as it is written
  bool in_string_ = false, escaped_ = false;
  bool key_next_ = false;  // the next string is a key
};

}  // namespace fovea::text
