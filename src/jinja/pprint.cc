// Python's pprint.pformat with its defaults: 80 columns, an item a line where a value is longer,
// keys sorted.

#include <algorithm>

#include "jinja/format.h"
#include "unicode/utf8.h"

namespace fovea::jinja {
namespace {

constexpr int64_t width = 80;

// The same value with the keys of all dicts sorted, so that its repr has that order too.
Value sorted(Runtime& runtime, const Value& value) {
  if (value.is(Kind::sequence)) {
    Values items;
    for (const Value& item : value.items()) items.push_back(sorted(runtime, item));
    return new_sequence(runtime, std::move(items), value.sequence().kind);
  }
  if (!value.is(Kind::dict)) return value;
  std::vector<Dict::Entry> entries = value.dict()->entries();
  for (const auto& [key, inner] : entries) {
    if (!key.is(Kind::string)) runtime.unsupported("pprint of a key that is no string");
  }
  runtime.step(entries.size());
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.first.bytes() < b.first.bytes(); });
  const auto dict = std::make_shared<Dict>();
  for (const auto& [key, inner] : entries) dict->set(runtime, key, sorted(runtime, inner));
  return Value(std::shared_ptr<const Dict>(dict));
}

int64_t columns(std::string_view text) { return static_cast<int64_t>(characters(text)); }

// Names and steps are those of Python's pprint.PrettyPrinter: `indent` is the column that was
// reached, `allowance` what must fit behind the value.
class PrettyPrinter {
 public:
  explicit PrettyPrinter(Runtime& runtime) : runtime_(runtime) {}

  std::string text(const Value& value) {
    format(value, 0, 0, 1);
    return std::move(out_);
  }

 private:
  void format(const Value& value, int64_t indent, int64_t allowance, int level) {
    std::string whole = repr(runtime_, value);
    if (columns(whole) > width - indent - allowance) {
      if (value.is(Kind::dict)) return dict(*value.dict(), indent, allowance, level);
      if (value.is(Kind::sequence)) return sequence(value, indent, allowance, level);
      if (value.is(Kind::string)) return string(value.bytes(), indent, allowance, level);
    }
    write(whole);
  }

  void write(std::string_view text) {
    runtime_.bytes(out_.size() + text.size());
    out_ += text;
  }
  void new_line(int64_t indent) { write("\n" + std::string(static_cast<size_t>(indent), ' ')); }

  void dict(const Dict& dict, int64_t indent, int64_t allowance, int level) {
    write("{");
    for (size_t i = 0; i < dict.size(); ++i) {
      const auto& [key, value] = dict.entries()[i];
      const bool last = i + 1 == dict.size();
      const std::string name = repr(runtime_, key);
      write(name + ": ");
      format(value, indent + 1 + columns(name) + 2, last ? allowance + 1 : 1, level + 1);
      if (last) break;
      write(",");
      new_line(indent + 1);
    }
    write("}");
  }

  void sequence(const Value& value, int64_t indent, int64_t allowance, int level) {
    const Values& items = value.items();
    const std::string end = is_list(value) ? "]" : items.size() == 1 ? ",)" : ")";
    write(is_list(value) ? "[" : "(");
    for (size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      format(items[i], indent + 1, last ? allowance + columns(end) : 1, level + 1);
      if (last) break;
      write(",");
      new_line(indent + 1);
    }
    write(end);
  }

  // A long text is several literals, cut behind white space.
  void string(std::string_view text, int64_t indent, int64_t allowance, int level) {
    const bool outermost = level == 1;
    indent += outermost;
    allowance += outermost;
    std::vector<std::string> literals;
    const auto lines = split_lines(text, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last = i + 1 == lines.size();
      const std::string whole = quoted(lines[i]);
      if (columns(whole) <= width - indent - (last ? allowance : 0)) {
        literals.push_back(whole);
      } else {
        cut(lines[i], width - indent, last ? allowance : 0, literals);
      }
    }
    if (outermost && literals.size() > 1) write("(");
    for (size_t i = 0; i < literals.size(); ++i) {
      if (i > 0) new_line(indent);
      write(literals[i]);
    }
    if (outermost && literals.size() > 1) write(")");
  }

  void cut(std::string_view line, int64_t most, int64_t allowance,
           std::vector<std::string>& literals) {
    std::string_view current = line.substr(0, 0);
    while (!line.empty()) {
      const std::string_view part = line.substr(0, word_and_space(line));
      line.remove_prefix(part.size());
      const std::string_view candidate(current.data(), current.size() + part.size());
      runtime_.bytes(candidate.size());
      if (columns(quoted(candidate)) <= most - (line.empty() ? allowance : 0)) {
        current = candidate;
      } else {
        if (!current.empty()) literals.push_back(quoted(current));
        current = part;
      }
    }
    if (!current.empty()) literals.push_back(quoted(current));
  }

  static size_t word_and_space(std::string_view text) {
    size_t end = 0;
    bool space = false;
    while (end < text.size()) {
      const utf8::Character character = utf8::first(text.substr(end));
      if (space && !is_space(character.code_point)) break;
      space = is_space(character.code_point);
      end += character.bytes;
    }
    return end;
  }

  Runtime& runtime_;
  std::string out_;
};

}  // namespace

std::string pretty_printed(Runtime& runtime, const Value& value) {
  return PrettyPrinter(runtime).text(sorted(runtime, value));
}

}  // namespace fovea::jinja
