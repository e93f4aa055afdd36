#include "grammar/schema_tree.h"

#include <utility>

#include "base/error.h"
#include "fovea/core/excerpt.h"

namespace fovea::text {
namespace {

// Far larger than the schemas of real interfaces, but read in hundredths of a second.
constexpr size_t kMostBytes = size_t{1} << 20, kMostValues = 50'000;

}  // namespace

SchemaTree::SchemaTree(std::string_view text) {
  check(text.size() <= kMostBytes, "schema: {} bytes; expected at most {}", text.size(),
        kMostBytes);
  try {
    read(text, "schema");
  } catch (const Error& error) {
    fail(ErrorKind::InvalidArgument, "{}", error.what());
  }
}

// Pointers to open containers stay valid: only the innermost one grows.
SchemaTree::Json* SchemaTree::put(Json&& value) {
  if (++values_ > kMostValues)
    refuse("too many values", "at most " + std::to_string(kMostValues) + " in a schema");
  if (open_.empty()) return &(root_ = std::move(value));
  if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(value));
  return &(*slot_ = std::move(value));
}

void SchemaTree::begin_object() {
  open_.push_back(put(Json::object()));
  keys_[open_.back()->get_ptr<Json::object_t*>()];
}

void SchemaTree::key(std::string&& key) {
  const auto [entry, is_new] = open_.back()->emplace(std::move(key), nullptr);
  if (!is_new) refuse("duplicate key \"" + excerpt(entry.key(), 40) + "\"", "each key once");
  keys_[open_.back()->get_ptr<Json::object_t*>()].push_back(entry.key());
  slot_ = &*entry;
}

const SchemaTree::Json& SchemaTree::add(Json schema) {
  added_.push_back(std::move(schema));
  add_keys(added_.back());
  return added_.back();
}

void SchemaTree::add_keys(const Json& value) {
  if (value.is_object()) {
    std::vector<std::string_view>& keys = keys_[value.get_ptr<const Json::object_t*>()];
    for (const auto& [key, part] : value.items()) keys.push_back(key);
  }
  if (value.is_structured())
    for (const Json& part : value) add_keys(part);
}

std::string SchemaTree::text(const Json& value) const {
  std::string out;
  write(value, out);
  return out;
}

void SchemaTree::write(const Json& value, std::string& out) const {
  const char* comma = "";
  if (value.is_object()) {
    out += '{';
    for (const std::string_view key : keys(value)) {
      out += std::exchange(comma, ",") + Json(key).dump() + ":";
      write(*value.find(key), out);
    }
    out += '}';
  } else if (value.is_array()) {
    out += '[';
    for (const Json& item : value) {
      out += std::exchange(comma, ",");
      write(item, out);
    }
    out += ']';
  } else {
    out += value.dump();
  }
}

}  // namespace fovea::text
