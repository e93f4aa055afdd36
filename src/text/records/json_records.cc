#include "records/json_records.h"

#include "base/error.h"
#include "base/files.h"
#include "fovea/text/text_lines.h"
#include "records/decompressor.h"
#include "records/file_reader.h"
#include "records/parquet.h"

namespace fovea::text {
namespace {

// This limit is far larger than any record, and far smaller than the memory of a computer.
constexpr size_t kLargestRecord = size_t{64} << 20;

bool is_json_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

void JsonRecords::add(std::string_view text) {
  for (const char c : text) {
    step(c);
    if (c == '\n') ++line_;
  }
  if (record_.size() > kLargestRecord)
    fail(ErrorKind::BadFile, "{}:{}: is too long; expected records of at most {} bytes", path_,
         record_line_, kLargestRecord);
}

void JsonRecords::step(char c) {
  switch (state_) {
    case State::object: return in_object(c);
    case State::between:
      if (is_json_blank(c)) return;
      begin(c, c == '{' ? State::object : c == '[' && !begun_ ? State::opened : State::line);
      begun_ = true;
      return;
    case State::opened:
      if (c == '{') {
        array_ = true;
        return begin(c, State::object);
      }
      record_ += c;
      if (!is_json_blank(c)) state_ = State::line;
      return;
    case State::line:
    case State::rest:
      if (c == '\n') return emit(State::between);
      record_ += c;
      return;
    case State::after_element:
      if (is_json_blank(c)) return;
      if (c != ',' && c != ']') refuse_element();
      state_ = c == ',' ? State::after_comma : State::after_array;
      return;
    case State::after_comma:
      if (is_json_blank(c)) return;
      if (c != '{') refuse_element();
      return begin(c, State::object);
    case State::after_array:
      if (!is_json_blank(c)) refuse_element();
  }
}

// An object does not end in its line if it is pretty-printed, where no string contains the end of a
// line and no other object begins at the beginning of one. Otherwise the record is broken.
void JsonRecords::in_object(char c) {
  if (line_begins_ && c == '{' && !array_) {
    emit(State::between);
    return begin(c, State::object);
  }
  line_begins_ = c == '\n';
  if (line_begins_ && quoted_ && !array_) return emit(State::between);
  record_ += c;
  if (quoted_) {
    if (!escaped_ && c == '"') quoted_ = false;
    escaped_ = !escaped_ && c == '\\';
    return;
  }
  if (c == '"') quoted_ = true;
  if (c == '{') ++depth_;
  if (c == '}' && --depth_ == 0) array_ ? emit(State::after_element) : void(state_ = State::rest);
}

void JsonRecords::begin(char c, State state) {
  record_ = c;
  record_line_ = line_;
  quoted_ = escaped_ = line_begins_ = false;
  depth_ = 1;
  state_ = state;
}

void JsonRecords::emit(State next) {
  state_ = next;
  use_(record_, fmt::format("{}:{}", path_, record_line_));
  record_.clear();
}

void JsonRecords::end() {
  const State state = state_;
  if (state == State::after_element || state == State::after_comma) refuse_element();
  if (state == State::object && array_)
    fail(ErrorKind::BadFile, "{}:{}: is an object that does not end; expected a closing brace",
         path_, record_line_);
  if (state != State::between && state != State::after_array) emit(State::between);
}

void JsonRecords::refuse_element() const {
  fail(ErrorKind::BadFile,
       "{}:{}: is not followed by an object or the end of the array; expected one of them", path_,
       record_line_);
}

bool has_records(const std::string& path) {
  const std::string_view name = without_compression(path);
  return name.ends_with(".jsonl") || name.ends_with(".json") || path.ends_with(".parquet");
}

namespace {

// Passes the text of a file to `use` until it returns false.
void each_text(const std::string& path, const std::function<bool(std::string_view text)>& use) {
  FileReader reader(path, static_cast<int64_t>(MappedFile(path).size()));
  Decompressor decompressor(path);
  TextCheck check(path);
  bool more = true;
  do {
    const std::string_view block = reader.next();
    decompressor.pass(block, reader.at_end(), [&](std::string_view bytes, bool last) {
      more = more && use(check.add(bytes, last));
    });
  } while (more && !reader.at_end());
}

}  // namespace

void each_json_record(const std::string& path, const JsonUse& use) {
  if (is_parquet(path)) return each_parquet_record(path, use);
  JsonRecords records(path, use);
  each_text(path, [&](std::string_view text) {
    records.add(text);
    return true;
  });
  records.end();
}

std::string first_json_record(const std::string& path) {
  std::string first;
  bool found = false;
  const JsonUse keep = [&](const std::string& record, const std::string&) {
    first = record;
    found = true;
  };
  if (is_parquet(path)) {
    each_parquet_record(path, keep, 1);
    return first;
  }
  JsonRecords records(path, keep);
  each_text(path, [&](std::string_view text) {
    for (size_t i = 0; i < text.size() && !found; ++i) records.add(text.substr(i, 1));
    return !found;
  });
  if (!found) records.end();
  return first;
}

}  // namespace fovea::text
