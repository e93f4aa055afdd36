#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>

#include "fovea/text/tokenizer.h"

namespace fovea::train {

// Counts text that looks like the name of a special token in training data, where it is read as
// plain characters: <|im_start|> and similar forms, common names such as </s> and [CLS], and the
// special tokens of a tokenizer.
class SpecialNames {
 public:
  SpecialNames() = default;
  explicit SpecialNames(const text::Tokenizer& tokenizer);

  // Adds a text, or the next part of one.
  void add(std::string_view part, bool starts_text = true);

  // Returns the five most frequent names, the most frequent first: "<|im_start|> (12 times), </s>
  // (once)". If there are more names, " and 7 more" follows. Empty if none was found.
  std::string found() const;

 private:
  bool is_name(std::string_view text) const;
  void scan(std::string_view text, size_t end);

  std::unordered_set<std::string> own_;
  std::map<std::string, int64_t, std::less<>> counts_;
  std::string tail_;  // the end of the previous part; a name may begin in it
};

}  // namespace fovea::train
