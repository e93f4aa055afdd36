#include "jinja/value.h"

#include <bit>
#include <cmath>

#include "jinja/characters.h"

namespace fovea::jinja {

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

const Values& Value::items() const { return sequence().items; }

int Value::depth() const {
  switch (kind()) {
    case Kind::sequence: return sequence().depth;
    case Kind::dict: return dict()->depth();
    case Kind::object: return object()->depth();
    default: return 0;
  }
}

const void* Value::identity() const {
  switch (kind()) {
    case Kind::string: return &text();
    case Kind::sequence: return &sequence();
    case Kind::dict: return dict().get();
    case Kind::object: return object().get();
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

bool is_tuple(const Value& value) { return value.is(Kind::sequence) && !is_list(value); }

const Value* Dict::find(std::string_view key) const {
  constexpr size_t few = 8;  // up to here looking at each is as fast as hashing
  if (entries_.size() <= few) {
    for (const auto& [name, value] : entries_) {
      if (name.is(Kind::string) && name.bytes() == key) return &value;
    }
    return nullptr;
  }
  const auto found = strings_.find(key);
  return found == strings_.end() ? nullptr : &entries_[found->second].second;
}

namespace {

// Of a number or none; what is equal has the same, as true, 1 and 1.0 are.
uint64_t hash_of(const Value& key) {
  constexpr double most = 0x1p63;
  if (key.is_integral()) return static_cast<uint64_t>(key.integer());
  if (!key.is(Kind::real)) return 0;
  const double real = key.real();
  const bool whole = real >= -most && real < most && std::trunc(real) == real;
  return whole ? static_cast<uint64_t>(static_cast<int64_t>(real)) : std::bit_cast<uint64_t>(real);
}

}  // namespace

size_t Dict::place_of(Runtime& runtime, const Value& key) const {
  if (key.is(Kind::string)) {
    const auto found = strings_.find(key.bytes());
    return found == strings_.end() ? size() : found->second;
  }
  const auto [begin, end] = others_.equal_range(hash_of(key));
  for (auto at = begin; at != end; ++at) {
    if (equal(runtime, entries_[at->second].first, key)) return at->second;
  }
  return size();
}

bool is_hashable(const Value& value) {
  return value.is_number() || value.is(Kind::string) || value.is(Kind::none);
}

const Value* Dict::find(Runtime& runtime, const Value& key) const {
  if (key.is(Kind::string)) return find(key.bytes());
  if (!is_hashable(key)) return nullptr;
  const size_t place = place_of(runtime, key);
  return place == size() ? nullptr : &entries_[place].second;
}

void Dict::set(Runtime& runtime, const Value& key, Value value) {
  if (!is_hashable(key)) {
    runtime.fail("a key is of type '{}'; expected a string, a number or none", type_name(key));
  }
  depth_ = std::max(depth_, checked_depth(runtime, value.depth()));
  runtime.step();
  const size_t place = place_of(runtime, key);
  if (place < size()) {
    entries_[place].second = std::move(value);
    return;
  }
  entries_.emplace_back(key, std::move(value));
  if (key.is(Kind::string)) {
    strings_.emplace(entries_.back().first.bytes(), place);
  } else {
    others_.emplace(hash_of(key), place);
  }
}

std::string Object::repr(Runtime& runtime) const {
  runtime.fail("printing a {}, whose text in Python is a memory address", type());
}

Value Object::call(Interpreter&, Arguments&&) { return Value(); }

}  // namespace fovea::jinja
