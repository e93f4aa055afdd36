#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace fovea::text {

// A JSON Schema as a tree with lookup by key. It keeps the original order of the keys.
class SchemaTree : private JsonReader {
 public:
  using Json = nlohmann::json;

  // Throws InvalidArgument if the text is not valid JSON, too long, or nested too deeply.
  explicit SchemaTree(std::string_view text);
  SchemaTree(const SchemaTree&) = delete;
  SchemaTree& operator=(const SchemaTree&) = delete;

  const Json& root() const { return root_; }
  // Returns the keys of an object of the tree, in the order of the text.
  const std::vector<std::string_view>& keys(const Json& object) const {
    return keys_.at(object.get_ptr<const Json::object_t*>());
  }
  // Adds a schema that the text does not have; the keys of its objects are sorted.
  const Json& add(Json schema);
  std::string text(const Json& value) const;  // without spaces, with the keys in their order

 private:
  void scalar(Json&& value) override { put(std::move(value)); }
  void begin_object() override;
  void key(std::string&& key) override;
  void end_object() override { open_.pop_back(); }
  void begin_array() override { open_.push_back(put(Json::array())); }
  void end_array() override { open_.pop_back(); }
  Json* put(Json&& value);
  void write(const Json& value, std::string& out) const;
  void add_keys(const Json& value);

  Json root_;
  std::vector<Json*> open_;
  size_t values_ = 0;
  Json* slot_ = nullptr;  // where the value of the last key is stored
  std::deque<Json> added_;
  std::unordered_map<const Json::object_t*, std::vector<std::string_view>> keys_;
};

}  // namespace fovea::text
