#include "base/ordered_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// Replaces nlohmann's own tree builder, which compares each key with all keys before it (a minute
// for 100,000 keys) and does not limit the nesting.
class TreeBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}
  Json take() { return std::move(root_); }

  bool null() override { return put(nullptr) != nullptr; }
  bool boolean(bool value) override { return put(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return put(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return put(value) != nullptr; }
  bool number_float(number_float_t value, const string_t&) override {
    return put(value) != nullptr;
  }
  bool string(string_t& value) override { return put(std::move(value)) != nullptr; }
  bool binary(binary_t&) override { return false; }  // does not occur in JSON
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& key) override {
    if (++keys_ > kMostKeys) fail(fmt::format("more than {} keys", kMostKeys), "too_many_keys");
    Level& level = open_.back();
    if (!level.keys.insert(key).second) {
      fail(fmt::format("duplicate key \"{}\"", excerpt(key)), "invalid_json");
    }
    auto& members = level.json->get_ref<Json::object_t&>();
    level.slot = &members.emplace_back(std::move(key), nullptr).second;
    return true;
  }

  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string why = error.what();
    const size_t begin = std::min(why.find("at line"), why.size());
    fail("not JSON " + excerpt(std::string_view(why).substr(begin), 200), "invalid_json");
  }

  [[noreturn]] void fail(const std::string& what, const char* code) const {
    throw JsonFault(name_ + ": " + what, code);
  }

 private:
  struct Level {
    Json* json;
    Json* slot = nullptr;  // for an object: where the value of the last key is stored
    std::unordered_set<std::string> keys = {};
  };

  // Pointers to open containers stay valid: only the innermost one grows.
  Json* put(Json&& value) {
    if (open_.empty()) return &(root_ = std::move(value));
    Level& level = open_.back();
    if (level.json->is_array()) return &level.json->emplace_back(std::move(value));
    return &(*level.slot = std::move(value));
  }
  bool open(Json&& container) {
    if (open_.size() == static_cast<size_t>(kMostDepth)) {
      fail(fmt::format("nested more than {} deep", kMostDepth), "too_deep");
    }
    Json* const added = put(std::move(container));
    open_.push_back({added});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& name_;
  Json root_;
  std::vector<Level> open_;
  size_t keys_ = 0;
};

}  // namespace

Json parse_ordered_json(std::string_view text, const std::string& name) {
  TreeBuilder builder(name);
  // The parser would treat a NUL as the end of the text.
  if (text.find('\0') != text.npos) builder.fail("not JSON: a NUL byte", "invalid_json");
  Json::sax_parse(text, &builder);
  return builder.take();
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fovea
