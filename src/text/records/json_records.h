#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::text {

// Receives the JSON text of a record and its location, "path:line".
using JsonUse = std::function<void(const std::string& record, const std::string& location)>;

// Divides the text of a file into its JSON records: the objects of one array, or else objects that
// each begin in a new line and may take several ("pretty-printed"); any other line that is not
// blank is a record too. A record is not parsed: if it is broken, whoever parses it says so. Throws
// BadFile if an array has something else than objects or does not end, or if a record is larger
// than 64 MiB.
class JsonRecords {
 public:
  JsonRecords(std::string path, JsonUse use) : path_(std::move(path)), use_(std::move(use)) {}
  void add(std::string_view text);  // the next part of the text, of any size
  void end();

 private:
  // between: before a record. opened: after "[" at the beginning. line: in a record that is no
  // object. object: in an object. rest: after an object, in its last line. The others: in an array,
  // after an element, after a comma, and after the array.
  enum class State { between, opened, line, object, rest, after_element, after_comma, after_array };

  void step(char c);
  void in_object(char c);
  void begin(char c, State state);
  void emit(State next);
  [[noreturn]] void refuse_element() const;

  std::string path_, record_;
  JsonUse use_;
  State state_ = State::between;
  bool array_ = false, begun_ = false;  // in an array; something has been read
  bool quoted_ = false, escaped_ = false, line_begins_ = false;
  int64_t depth_ = 0, line_ = 1, record_line_ = 1;
};

// Returns whether a file with this name has records: .jsonl or .json, compressed or not, or
// .parquet.
bool has_records(const std::string& path);

// Calls `use` with each record of a file, also of Parquet (each_parquet_record()). Throws BadFile
// as JsonRecords does, or if the file cannot be read or is no text.
void each_json_record(const std::string& path, const JsonUse& use);

// Returns whether a value is true or 1, or false or 0; unset if it is something else.
template <class Json>
std::optional<bool> flag_of(const Json& value) {
  if (value.is_boolean()) return value.template get<bool>();
  const double number = value.is_number() ? value.template get<double>() : -1;
  return number == 0 || number == 1 ? std::optional(number == 1) : std::nullopt;
}

// Returns the first record; empty if the file has no record.
std::string first_json_record(const std::string& path);

}  // namespace fovea::text
