#include "options/yaml.h"

#include <fmt/format.h>
#include <yaml.h>

#include <new>
#include <set>

#include "base/ordered_json.h"
#include "options/options.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// The events of libyaml's parser, one after the other.
class YamlReader {
 public:
  YamlReader(std::string_view text, const std::string& name) : name_(name) {
    if (yaml_parser_initialize(&parser_) == 0) throw std::bad_alloc();
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  ~YamlReader() {
    yaml_event_delete(&event_);
    yaml_parser_delete(&parser_);
  }
  YamlReader(const YamlReader&) = delete;
  YamlReader& operator=(const YamlReader&) = delete;

  Json document() {
    next();  // the start of the stream
    if (next() == YAML_STREAM_END_EVENT) return nullptr;
    next();  // the first event in the document
    Json json = value(0);
    next();  // the end of the document
    if (next() != YAML_STREAM_END_EVENT) refuse("a second document", "one");
    return json;
  }

 private:
  yaml_event_type_t next() {
    yaml_event_delete(&event_);
    if (yaml_parser_parse(&parser_, &event_) == 0) {
      const std::string problem = parser_.problem == nullptr ? "invalid" : parser_.problem;
      throw UsageError(fmt::format("{}:{}: {}; expected YAML or JSON", name_,
                                   parser_.problem_mark.line + 1, problem));
    }
    return event_.type;
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& expected) const {
    throw UsageError(
        fmt::format("{}:{}: {}; expected {}", name_, event_.start_mark.line + 1, what, expected));
  }

  // Returns the value that begins with the current event.
  Json value(int depth) {
    if (depth > kMostDepth)
      refuse(fmt::format("nested deeper than {} levels", kMostDepth), "fewer");
    switch (event_.type) {
      case YAML_SCALAR_EVENT: return scalar();
      case YAML_SEQUENCE_START_EVENT: {
        Json list = Json::array();
        while (next() != YAML_SEQUENCE_END_EVENT) list.push_back(value(depth + 1));
        return list;
      }
      case YAML_MAPPING_START_EVENT: return mapping(depth);
      default: refuse("an alias", "the value itself");
    }
  }

  Json mapping(int depth) {
    Json all = Json::object();
    Json::object_t& members = all.get_ref<Json::object_t&>();
    std::set<std::string> known;  // a search in the object would take linear time
    while (next() != YAML_MAPPING_END_EVENT) {
      if (event_.type != YAML_SCALAR_EVENT) refuse("a key that is not a text", "a text");
      const std::string key = text();
      if (!known.insert(key).second) refuse("\"" + key + "\" is repeated", "each key once");
      if (++keys_ > kMostKeys) refuse("too many keys", fmt::format("at most {}", kMostKeys));
      next();
      members.emplace_back(key, value(depth + 1));
    }
    return all;
  }

  std::string text() const {
    return {reinterpret_cast<const char*>(event_.data.scalar.value), event_.data.scalar.length};
  }

  Json scalar() const {
    if (event_.data.scalar.tag != nullptr) refuse("a tag", "a plain value");
    if (event_.data.scalar.style != YAML_PLAIN_SCALAR_STYLE) return text();
    const std::string plain = text();
    if (plain.empty() || plain == "~") return nullptr;
    Json parsed = Json::parse(plain, nullptr, false);
    return parsed.is_discarded() || parsed.is_structured() || parsed.is_string() ? Json(plain)
                                                                                 : parsed;
  }

  const std::string& name_;
  yaml_parser_t parser_ = {};
  yaml_event_t event_ = {};
  size_t keys_ = 0;
};

}  // namespace

Json parse_yaml(std::string_view text, const std::string& name) {
  return YamlReader(text, name).document();
}

}  // namespace fovea::cli
