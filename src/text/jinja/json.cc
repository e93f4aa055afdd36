// Converts JSON to values and back.

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "jinja/value.h"

namespace fovea::text::jinja {
namespace {

// Builds values from JSON; keeps the order of keys, in which templates print them.
class Builder : public JsonReader {
 public:
  explicit Builder(Runtime& runtime) : runtime_(runtime) {}
  Value take() { return std::move(root_); }

 protected:
  void scalar(nlohmann::json&& value) override {
    switch (value.type()) {
      case nlohmann::json::value_t::null: return put(Value::none());
      case nlohmann::json::value_t::boolean: return put(Value(value.get<bool>()));
      case nlohmann::json::value_t::number_integer: return put(Value(value.get<int64_t>()));
      case nlohmann::json::value_t::number_unsigned:
        if (value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
          refuse("an integer above 2^63 - 1", "a smaller one");
        }
        return put(Value(value.get<int64_t>()));
      case nlohmann::json::value_t::number_float: return put(Value(value.get<double>()));
      default: return put(Value(std::move(value.get_ref<std::string&>())));
    }
  }
  void begin_object() override { open_.push_back({std::make_shared<Dict>(), {}, {}}); }
  void begin_array() override { open_.push_back({nullptr, {}, {}}); }
  void key(std::string&& key) override {
    if (open_.back().dict->find(key)) refuse("a duplicate key", "each key once");
    open_.back().key = Value(std::move(key));
  }
  void end_object() override {
    const std::shared_ptr<const Dict> dict = open_.back().dict;
    open_.pop_back();
    put(Value(dict));
  }
  void end_array() override {
    Value list = new_sequence(runtime_, std::move(open_.back().items));
    open_.pop_back();
    put(std::move(list));
  }

 private:
  struct Open {
    std::shared_ptr<Dict> dict;  // nullptr for an array
    Values items;
    Value key;
  };

  void put(Value value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().dict) {
      open_.back().dict->set(runtime_, open_.back().key, std::move(value));
    } else {
      open_.back().items.push_back(std::move(value));
    }
  }

  Runtime& runtime_;
  Value root_;
  std::vector<Open> open_;
};

class Writer {
 public:
  Writer(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value) {
    runtime_.step();
    if (out_.size() > runtime_.limits().output_bytes) runtime_.bytes(out_.size());
    switch (value.kind()) {
      case Kind::none: out_ += "null"; break;
      case Kind::boolean: out_ += value.boolean() ? "true" : "false"; break;
      case Kind::integer:
      case Kind::real: out_ += number(value); break;
      case Kind::string: string(value.bytes()); break;
      case Kind::sequence:
        if (!is_list(value) && !is_tuple(value)) refuse(value);
        container("[]", value.items(), [&](const Value& item) { write(item); });
        break;
      case Kind::dict: object(value.dict()); break;
      default: refuse(value);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  [[noreturn]] void refuse(const Value& value) const {
    runtime_.fail("Object of type {} is not JSON serializable", type_name(value));
  }

  static std::string number(const Value& value) {
    if (value.is_integral()) return std::to_string(value.integer());
    if (std::isnan(value.real())) return "NaN";
    if (std::isinf(value.real())) return value.real() < 0 ? "-Infinity" : "Infinity";
    return real_text(value.real());
  }

  void string(const std::string& text) {
    runtime_.bytes(text.size());
    out_ += nlohmann::json(text).dump(-1, ' ', style_.ascii);
  }

  void line() {
    if (!style_.indent) return;
    out_.push_back('\n');
    runtime_.bytes(style_.indent->size() * level_);
    for (size_t i = 0; i < level_; ++i) out_ += *style_.indent;
  }

  // Writes [...] or {...}; `write_item` writes each item.
  void container(std::string_view brackets, const auto& items, auto&& write_item) {
    out_.push_back(brackets[0]);
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!std::exchange(first, false)) out_ += style_.item_separator;
      line();
      write_item(item);
    }
    --level_;
    if (!first) line();
    out_.push_back(brackets[1]);
  }

  std::string key_text(const Value& key) {
    switch (key.kind()) {
      case Kind::string: return key.bytes();
      case Kind::none: return "null";
      case Kind::boolean: return key.boolean() ? "true" : "false";
      default: return number(key);
    }
  }

  void object(const Dict& dict) {
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries()) entries.push_back(&entry);
    if (style_.sorted) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(runtime_, a->first, b->first);
      });
    }
    container("{}", entries, [&](const Dict::Entry* entry) {
      string(key_text(entry->first));
      out_ += style_.key_separator;
      write(entry->second);
    });
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  size_t level_ = 0;
};

}  // namespace

Value from_json(Runtime& runtime, std::string_view text, const std::string& name) {
  Builder builder(runtime);
  builder.read(text, name);
  return builder.take();
}

std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Writer writer(runtime, style);
  writer.write(value);
  return writer.take();
}

}  // namespace fovea::text::jinja
