#include "base/json.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "fovea/core/excerpt.h"

namespace fovea {

using nlohmann::json;

namespace {

// An iterator over the characters that records the parser's position, which the parser itself
// reports only in errors. It skips most of a long run of white space between values, since the
// parser would keep all of it for its messages.
class Characters {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Characters(const char* at, const char* end, const char** reached)
      : at_(at), end_(end), reached_(reached) {}
  reference operator*() const { return *at_; }
  Characters& operator++() {
    pass(*at_++);
    *reached_ = at_;
    return *this;
  }
  Characters operator++(int) {
    Characters before = *this;
    ++*this;
    return before;
  }
  bool operator==(const Characters& other) const { return at_ == other.at_; }
  bool operator!=(const Characters& other) const { return at_ != other.at_; }

 private:
  void pass(char c) {
    constexpr int kMostBlanks = 256;
    blanks_ = is_blank(c) ? blanks_ + 1 : 0;
    if (in_string_) {
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      return;
    }
    in_string_ = c == '"';
    if (blanks_ < kMostBlanks) return;
    while (at_ != end_ && is_blank(*at_)) ++at_;
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  const char *at_, *end_;
  const char** reached_;
  int blanks_ = 0;  // in the current run
  bool in_string_ = false, escaped_ = false;
};

struct Complaint {
  std::string wrong;
  std::string expected;
};

// Splits a message of nlohmann's parser: "[...] parse error at line 1, column 2: syntax error while
// parsing X - WRONG; last read: 'Y'; expected Z"
Complaint complaint_of(std::string_view message) {
  if (const size_t code = message.find("] "); code != message.npos) message.remove_prefix(code + 2);
  if (const size_t dash = message.find(" - "); dash != message.npos)
    message.remove_prefix(dash + 3);
  std::string_view expected = "valid JSON";
  if (const size_t at = message.rfind("; expected "); at != message.npos) {
    expected = message.substr(at + 11);
  }
  return {excerpt(message.substr(0, message.find(';')), 120), excerpt(expected, 40)};
}

}  // namespace

// Receives the parser's events and limits the nesting: nlohmann's parser keeps its stack on the
// heap without a limit.
class JsonEvents : public nlohmann::json_sax<json> {
 public:
  explicit JsonEvents(JsonReader& reader) : reader_(reader) {}

  bool null() override { return give(nullptr); }
  bool boolean(bool value) override { return give(value); }
  bool number_integer(number_integer_t value) override { return give(value); }
  bool number_unsigned(number_unsigned_t value) override { return give(value); }
  bool number_float(number_float_t value, const string_t&) override { return give(value); }
  bool string(string_t& value) override { return give(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON
  bool start_object(size_t) override {
    enter();
    reader_.begin_object();
    return true;
  }
  bool key(string_t& key) override {
    reader_.key(std::move(key));
    return true;
  }
  bool end_object() override {
    --depth_;
    reader_.end_object();
    return true;
  }
  bool start_array(size_t) override {
    enter();
    reader_.begin_array();
    return true;
  }
  bool end_array() override {
    --depth_;
    reader_.end_array();
    return true;
  }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const Complaint complaint = complaint_of(error.what());
    reader_.refuse(complaint.wrong, complaint.expected);
  }

 private:
  bool give(json&& value) {
    reader_.scalar(std::move(value));
    return true;
  }
  void enter() {
    if (++depth_ > kJsonDepth) {
      reader_.refuse("nested too deeply", fmt::format("at most {} levels", kJsonDepth));
    }
  }

  JsonReader& reader_;
  int depth_ = 0;
};

void JsonReader::read(std::string_view text, const std::string& name) {
  text_ = text;
  name_ = name;
  // The parser would treat a NUL as the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos) {
    reached_ = text.data() + nul;
    refuse("a NUL byte", "JSON text");
  }
  reached_ = text.data();
  JsonEvents events(*this);
  const char* end = text.data() + text.size();
  json::sax_parse(Characters(text.data(), end, &reached_), Characters(end, end, &reached_),
                  &events);
}

void JsonReader::refuse(std::string_view wrong, std::string_view expected) const {
  const auto byte = static_cast<size_t>(reached_ - text_.data());
  const std::string_view before = text_.substr(0, byte);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') + 1;  // 0 in the first line
  fail(ErrorKind::BadFile, "{}: {} (byte {}, line {}, column {}); expected {}", name_, wrong, byte,
       line, byte - start + 1, expected);
}

namespace {

// Builds a tree of the values.
class Builder : public JsonReader {
 public:
  json take() { return std::move(root_); }

 protected:
  void scalar(json&& value) override { put(std::move(value)); }
  void begin_object() override { open_.push_back(put(json::object())); }
  void begin_array() override { open_.push_back(put(json::array())); }
  void end_object() override { open_.pop_back(); }
  void end_array() override { open_.pop_back(); }
  void key(std::string&& key) override {
    const auto [entry, is_new] = open_.back()->emplace(std::move(key), nullptr);
    if (!is_new) {
      refuse(fmt::format("duplicate key \"{}\"", excerpt(entry.key(), 80)), "each key once");
    }
    slot_ = &*entry;
  }

 private:
  // Pointers to open containers stay valid: only the innermost one grows.
  json* put(json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
    return &(*slot_ = std::move(value));
  }

  json root_;
  std::vector<json*> open_;
  json* slot_ = nullptr;  // where the value of the last key is stored
};

[[noreturn]] void refuse_value(const json& object, std::string_view key, const std::string& name,
                               const std::string& expected) {
  if (!object.is_object()) {
    fail(ErrorKind::BadFile, "{}: is {}; expected an object with the key {}", name, brief(object),
         key);
  }
  const auto found = object.find(key);
  if (found == object.end()) {
    fail(ErrorKind::BadFile, "{}: {} is missing; expected {}", name, key, expected);
  }
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", name, key, brief(*found), expected);
}

// Returns the value of a key; null if the key is missing or its value is null.
const json* find_value(const json& object, std::string_view key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string range_text(std::string_view kind, auto min, auto max) {
  using T = decltype(min);
  const bool from = min != std::numeric_limits<T>::lowest();
  const bool to = max != std::numeric_limits<T>::max();
  if (from && to) return fmt::format("{} from {} to {}", kind, min, max);
  if (from) return fmt::format("{} of at least {}", kind, min);
  if (to) return fmt::format("{} of at most {}", kind, max);
  return std::string(kind);
}

// Returns the value that a find_ function found; throws BadFile if there is none.
template <class T>
T required(std::optional<T>&& found, const json& object, std::string_view key,
           const std::string& name, const std::string& expected) {
  if (!found) refuse_value(object, key, name, expected);
  return *std::move(found);
}

}  // namespace

json parse_json(std::string_view text, const std::string& name) {
  Builder builder;
  builder.read(text, name);
  return builder.take();
}

json read_json(const std::string& path) { return parse_json(read_file(path, kJsonLimit), path); }

std::string pretty(const nlohmann::ordered_json& value) { return value.dump(2) + "\n"; }
std::string pretty(const json& value) { return value.dump(2) + "\n"; }

std::string brief(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return fmt::format("an array of {} elements", value.size());
  return excerpt(value.dump(), 40);
}

std::optional<int64_t> find_int(const json& object, std::string_view key, const std::string& name,
                                int64_t min, int64_t max) {
  const json* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    (!value->is_number_unsigned() || value->get<uint64_t>() <= uint64_t{INT64_MAX});
  const int64_t number = fits ? value->get<int64_t>() : 0;
  if (!fits || number < min || number > max) {
    refuse_value(object, key, name, range_text("an integer", min, max));
  }
  return number;
}

std::optional<double> find_float(const json& object, std::string_view key, const std::string& name,
                                 double min, double max) {
  const json* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : 0.0;
  if (!value->is_number() || number < min || number > max) {
    refuse_value(object, key, name, range_text("a number", min, max));
  }
  return number;
}

std::optional<bool> find_bool(const json& object, std::string_view key, const std::string& name) {
  const json* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_value(object, key, name, "true or false");
  return value->get<bool>();
}

std::optional<std::string> find_string(const json& object, std::string_view key,
                                       const std::string& name) {
  const json* value = find_value(object, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_value(object, key, name, "a string");
  return value->get<std::string>();
}

int64_t get_int(const json& object, std::string_view key, const std::string& name, int64_t min,
                int64_t max) {
  return required(find_int(object, key, name, min, max), object, key, name,
                  range_text("an integer", min, max));
}

double get_float(const json& object, std::string_view key, const std::string& name, double min,
                 double max) {
  return required(find_float(object, key, name, min, max), object, key, name,
                  range_text("a number", min, max));
}

bool get_bool(const json& object, std::string_view key, const std::string& name) {
  return required(find_bool(object, key, name), object, key, name, "true or false");
}

std::string get_string(const json& object, std::string_view key, const std::string& name) {
  return required(find_string(object, key, name), object, key, name, "a string");
}

}  // namespace fovea
