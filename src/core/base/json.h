#pragma once

// Reads untrusted JSON. Throws BadFile, naming the file and the byte, for syntax errors, nesting
// deeper than 64, duplicate keys, invalid UTF-8, NUL, numbers outside the range of double, and text
// after the value.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace fovea {

constexpr int kJsonDepth = 64;  // maximum depth of nesting; real files stay below 15

// `name` is the file's name in errors.
nlohmann::json parse_json(std::string_view text, const std::string& name);

constexpr size_t kJsonLimit = size_t{256} << 20;  // the largest known tokenizer.json has 33 MB
// Throws OutOfMemory if the file is larger than kJsonLimit bytes.
nlohmann::json read_json(const std::string& path);

// Returns the JSON text, indented by two spaces, with a final newline. The keys of ordered_json are
// in the order of insertion, those of json are sorted.
std::string pretty(const nlohmann::ordered_json& value);
std::string pretty(const nlohmann::json& value);

// Passes the values of a JSON text in order to a derived class, for a text that is too large for a
// tree. The derived class must check for duplicate keys itself.
class JsonReader {
 public:
  virtual ~JsonReader() = default;
  void read(std::string_view text, const std::string& name);

 protected:
  virtual void scalar(nlohmann::json&& value) = 0;  // null, boolean, number or string
  virtual void begin_object() = 0;
  virtual void key(std::string&& key) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;

  // Throws BadFile, naming the file and the current position.
  [[noreturn]] void refuse(std::string_view wrong, std::string_view expected) const;

 private:
  friend class JsonEvents;
  std::string_view text_;
  std::string name_;
  const char* reached_ = nullptr;
};

// Describes a value in messages: "an object", "an array of 3 elements", or its JSON text, cut to 40
// bytes.
std::string brief(const nlohmann::json& value);

// These functions return the value of a key; `name` is the file's name in errors. They throw
// BadFile if the value has another type or is out of range. If the key is missing or null, get_
// functions throw BadFile and find_ functions return an empty result.
int64_t get_int(const nlohmann::json& object, std::string_view key, const std::string& name,
                int64_t min = std::numeric_limits<int64_t>::min(),
                int64_t max = std::numeric_limits<int64_t>::max());
double get_float(const nlohmann::json& object, std::string_view key, const std::string& name,
                 double min = std::numeric_limits<double>::lowest(),
                 double max = std::numeric_limits<double>::max());
bool get_bool(const nlohmann::json& object, std::string_view key, const std::string& name);
std::string get_string(const nlohmann::json& object, std::string_view key, const std::string& name);

std::optional<int64_t> find_int(const nlohmann::json& object, std::string_view key,
                                const std::string& name,
                                int64_t min = std::numeric_limits<int64_t>::min(),
                                int64_t max = std::numeric_limits<int64_t>::max());
std::optional<double> find_float(const nlohmann::json& object, std::string_view key,
                                 const std::string& name,
                                 double min = std::numeric_limits<double>::lowest(),
                                 double max = std::numeric_limits<double>::max());
std::optional<bool> find_bool(const nlohmann::json& object, std::string_view key,
                              const std::string& name);
std::optional<std::string> find_string(const nlohmann::json& object, std::string_view key,
                                       const std::string& name);

}  // namespace fovea
