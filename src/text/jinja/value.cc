#include "jinja/value.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "jinja/text.h"

namespace fovea::text::jinja {

Value::Value(std::string text, bool escaped) {
  const size_t length = characters(text);
  data_ = std::make_shared<const Text>(Text{std::move(text), length, escaped});
}

Value Value::none() {
  Value value;
  value.data_ = None{};
  return value;
}

Value Value::undefined(std::string message) {
  Value value;
  value.data_ = std::make_shared<const std::string>(std::move(message));
  return value;
}

const std::string& Value::message() const {
  static const std::string absent = "a value is missing";
  return is(Kind::missing) ? absent : *std::get<UndefinedPointer>(data_);
}

const Values& Value::items() const { return sequence().items; }

int Value::depth() const {
  switch (kind()) {
    case Kind::sequence: return sequence().depth;
    case Kind::dict: return dict().depth();
    case Kind::object: return object().depth();
    default: return 0;
  }
}

const void* Value::identity() const {
  switch (kind()) {
    case Kind::string: return &text();
    case Kind::sequence: return &sequence();
    case Kind::dict: return &dict();
    case Kind::object: return &object();
    default: return nullptr;
  }
}

int checked_depth(Runtime& runtime, int inner) {
  if (inner >= kValueDepth) {
    runtime.fail("values are nested too deeply; expected at most {} levels", kValueDepth);
  }
  return inner + 1;
}

Value new_sequence(Runtime& runtime, Values items, SequenceKind kind) {
  runtime.step(1 + items.size() / 4);
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  depth = checked_depth(runtime, depth);
  return Value(std::make_shared<const Sequence>(Sequence{std::move(items), kind, depth}));
}

bool is_list(const Value& value) {
  return value.is(Kind::sequence) && value.sequence().kind == SequenceKind::list;
}

bool is_tuple(const Value& value) {
  return value.is(Kind::sequence) && value.sequence().kind == SequenceKind::tuple;
}

bool is_indexable(const Value& value) {
  return value.is(Kind::sequence) && value.sequence().kind <= SequenceKind::range;
}

namespace {

// Returns a text that is the same for equal keys, such as true, 1 and 1.0; empty if the value
// cannot be a key.
std::string key_text(const Value& key) {
  switch (key.kind()) {
    case Kind::string: return "s" + key.bytes();
    case Kind::none: return "n";
    case Kind::boolean:
    case Kind::integer: return "i" + std::to_string(key.integer());
    case Kind::real: {
      const double real = key.real();
      const bool whole = std::abs(real) < 0x1p63 && std::trunc(real) == real;
      return whole ? "i" + std::to_string(static_cast<int64_t>(real))
                   : "r" + std::to_string(std::bit_cast<uint64_t>(real));
    }
    default: return "";
  }
}

}  // namespace

const Value* Dict::find(std::string_view key) const {
  constexpr size_t kFew = 8;  // up to this size, comparing with each key is as fast as hashing
  if (entries_.size() <= kFew) {
    for (const auto& [name, value] : entries_) {
      if (name.is(Kind::string) && name.bytes() == key) return &value;
    }
    return nullptr;
  }
  const auto found = index_of_.find("s" + std::string(key));
  return found == index_of_.end() ? nullptr : &entries_[found->second].second;
}

const Value* Dict::find(const Value& key) const {
  const auto found = index_of_.find(key_text(key));
  return found == index_of_.end() ? nullptr : &entries_[found->second].second;
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
  std::string text = key_text(key);
  if (text.empty()) {
    runtime.fail("a key is of type '{}'; expected a string, a number or none", type_name(key));
  }
  depth_ = std::max(depth_, checked_depth(runtime, value.depth()));
  runtime.step();
  const auto [entry, is_new] = index_of_.emplace(std::move(text), entries_.size());
  if (is_new) {
    entries_.emplace_back(key, std::move(value));
    held_.add(kEntryBytes + entry->first.capacity());
  } else {
    entries_[entry->second].second = std::move(value);
  }
}

bool Generator::next(Value& item) {
  if (at_ == items_.items().size()) return false;
  item = items_.items()[at_++];
  return true;
}

Value new_generator(Runtime& runtime, Values items) {
  const Value list = new_sequence(runtime, std::move(items));
  checked_depth(runtime, list.depth());
  return Value(std::shared_ptr<Object>(std::make_shared<Generator>(list)));
}

}  // namespace fovea::text::jinja
