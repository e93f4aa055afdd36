#pragma once

#include <array>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "fovea/core/excerpt.h"
#include "unicode/pattern.h"
#include "unicode/utf8.h"

namespace fovea::text {

// An object in a JSON file, with its path in the file, for messages such as "tokenizer.json:
// pre_tokenizer.pretokenizers[1]: behavior is 3; expected a string".
class JsonPart {
 public:
  JsonPart(const nlohmann::json& json, const std::string& path, std::string where)
      : json_(json), path_(path), where_(std::move(where)), name_(path + ": " + where_) {
    if (!json.is_object()) bad("is " + brief(json), "an object");
  }

  const std::string& where() const { return where_; }
  const std::string& name() const { return name_; }  // the file's name and the object's path
  const nlohmann::json& json() const { return json_; }

  [[noreturn]] void bad(const std::string& wrong, const std::string& expected) const {
    fail(ErrorKind::BadFile, "{}: {} ({}); expected {}", path_, wrong, where_, expected);
  }
  [[noreturn]] void unsupported(const std::string& what, const std::string& expected) const {
    fail(ErrorKind::Unsupported, "{}: {} is not supported ({}); expected {}", path_, what, where_,
         expected);
  }

  std::string text(std::string_view key) const { return get_string(json_, key, name_); }
  std::string text(std::string_view key, const char* otherwise) const {
    return find_string(json_, key, name_).value_or(otherwise);
  }
  bool flag(std::string_view key) const { return get_bool(json_, key, name_); }
  bool flag(std::string_view key, bool otherwise) const {
    return find_bool(json_, key, name_).value_or(otherwise);
  }
  size_t count(std::string_view key, int64_t min, int64_t max) const {
    return static_cast<size_t>(get_int(json_, key, name_, min, max));
  }
  // Returns a string; throws BadFile unless it is one character.
  std::string character(std::string_view key) const {
    std::string value = text(key);
    if (value.empty() || utf8::first(value).bytes != value.size())
      bad(fmt::format("{} is {}", key, brief(value)), "one character");
    return value;
  }

  const nlohmann::json& list(std::string_view key) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_array())
      bad(fmt::format("{} is {}", key, found == json_.end() ? "missing" : brief(*found)), "a list");
    return *found;
  }
  JsonPart child(std::string_view key) const {
    const auto found = json_.find(key);
    if (found == json_.end()) bad(fmt::format("{} is missing", excerpt(key)), "an object");
    return JsonPart(*found, path_, fmt::format("{}.{}", where_, excerpt(key)));
  }
  JsonPart element(std::string_view key, size_t index) const {
    return JsonPart(list(key)[index], path_, fmt::format("{}.{}[{}]", where_, key, index));
  }

  // Reads {"String": text} or {"Regex": expression}. `plain_text` receives the text of the former.
  Pattern pattern(std::string_view key, std::string* plain_text = nullptr) const {
    const JsonPart inner = child(key);
    if (const auto text = find_string(inner.json_, "String", inner.name_)) {
      if (plain_text) *plain_text = *text;
      return Pattern::text(*text);
    }
    return Pattern::regex(inner.text("Regex"), inner.name_);
  }

  // Returns the index in `words` of the value of `key`; throws Unsupported if it is not one of
  // them.
  template <size_t N>
  size_t choice(std::string_view key, const std::array<std::string_view, N>& words) const {
    const std::string word = text(key);
    for (size_t i = 0; i < N; ++i) {
      if (words[i] == word) return i;
    }
    fail(ErrorKind::Unsupported, "{}: {} is not supported ({}.{}); expected one of {}", path_,
         brief(word), where_, key, fmt::join(words, ", "));
  }

 private:
  const nlohmann::json& json_;
  const std::string& path_;
  std::string where_, name_;
};

// A kind of part: the value of its "type", and the function that reads it.
template <class Part>
struct PartReader {
  std::string_view type;
  Part (*read)(const JsonPart& json);
};

// Appends the part that an object describes, or the parts of a sequence; `members` is the name of
// the sequence's list.
template <class Part, size_t N>
void read_parts(const JsonPart& json, const std::array<PartReader<Part>, N>& readers,
                std::string_view members, std::vector<Part>& parts) {
  const std::string type = json.text("type");
  if (type == "Sequence") {
    const size_t count = json.list(members).size();
    for (size_t i = 0; i < count; ++i)
      read_parts(json.element(members, i), readers, members, parts);
    return;
  }
  // Bounds the time, since each part processes the text; real tokenizers have at most a dozen.
  constexpr size_t kMostParts = 256;
  if (parts.size() == kMostParts) {
    json.unsupported(fmt::format("a sequence of more than {} parts", kMostParts),
                     fmt::format("at most {} parts", kMostParts));
  }
  for (const PartReader<Part>& reader : readers) {
    if (reader.type == type) return parts.push_back(reader.read(json));
  }
  std::string known = "Sequence";
  for (const PartReader<Part>& reader : readers) known += fmt::format(", {}", reader.type);
  json.unsupported(brief(type), "one of " + known);
}

}  // namespace fovea::text
