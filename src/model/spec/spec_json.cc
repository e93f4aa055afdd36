#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/json.h"
#include "base/nearest.h"
#include "fovea/core/excerpt.h"
#include "fovea/model/spec.h"

namespace fovea::model {
namespace {

bool is_whole(const nlohmann::json& value, int64_t least, int64_t most) {
  if (!value.is_number_integer()) return false;
  // The JSON library would compare the largest unsigned numbers as negative numbers.
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return false;
  return value >= least && value <= most;
}

class Reader : public OptionVisitor {
 public:
  Reader(const nlohmann::json& json, std::string name) : json_(json), name_(std::move(name)) {}

  void integer(const Field& field, int64_t& value, int64_t least, int64_t most) override {
    const auto* found = find(field.path);
    if (found == nullptr) return;
    if (!is_whole(*found, least, most)) {
      refuse(field.path, *found, fmt::format("an integer from {} to {}", least, most));
    }
    value = found->get<int64_t>();
  }
  void number(const Field& field, double& value, double least, double most) override {
    const auto* found = find(field.path);
    if (found == nullptr) return;
    if (!found->is_number() || !(found->get<double>() >= least && found->get<double>() <= most)) {
      refuse(field.path, *found, fmt::format("a number from {} to {}", least, most));
    }
    value = found->get<double>();
  }
  void list(const Field& field, const List& list) override {
    const auto* found = find(field.path);
    if (found == nullptr) return;
    std::visit([&](const auto& each) { read(field, each, *found); }, list);
  }
  void boolean(const Field& field, bool& value) override {
    const auto* found = find(field.path);
    if (found == nullptr) return;
    if (!found->is_boolean()) refuse(field.path, *found, "true or false");
    value = found->get<bool>();
  }
  void choice(const Field& field, int& value, const Names& names) override {
    const auto* found = find(field.path);
    if (found == nullptr) return;
    const auto at = found->is_string()
                        ? std::find(names.begin(), names.end(), found->get<std::string>())
                        : names.end();
    if (at == names.end())
      refuse(field.path, *found, fmt::format("one of {}", fmt::join(names, ", ")));
    value = static_cast<int>(at - names.begin());
  }

  // A file with only one stack describes a model with that stack; a file without stacks has the
  // default stacks.
  void optional(const Field& field, bool& present, Part) override {
    groups_.push_back(field.path);
    if (json_.is_object() && json_.contains(field.path))
      present = !json_[field.path].is_null();
    else if (json_.is_object() && (json_.contains("encoder") || json_.contains("decoder")))
      present = false;
  }

  // Throws InvalidArgument if a key was not read: a misspelt key would otherwise have no effect.
  void refuse_unknown() const { refuse_unknown(json_, ""); }

 private:
  // Read a list, or a single value as a list of one.
  void read(const Field& field, const Integers& list, const nlohmann::json& found) {
    list.values.clear();
    for (const auto& value : elements_of(found)) {
      if (!is_whole(value, list.least, list.most))
        refuse(field.path, found, fmt::format("integers from {} to {}", list.least, list.most));
      list.values.push_back(value.get<int64_t>());
    }
  }
  void read(const Field& field, const Numbers& list, const nlohmann::json& found) {
    list.values.clear();
    for (const auto& value : elements_of(found)) {
      if (!value.is_number() ||
          !(value.get<double>() >= list.least && value.get<double>() <= list.most))
        refuse(field.path, found, fmt::format("numbers from {} to {}", list.least, list.most));
      list.values.push_back(value.get<double>());
    }
  }
  void read(const Field& field, const Texts& list, const nlohmann::json& found) {
    list.values.clear();
    for (const auto& value : elements_of(found)) {
      if (!value.is_string()) refuse(field.path, found, "a string or a list of strings");
      list.values.push_back(value.get<std::string>());
    }
  }
  static nlohmann::json elements_of(const nlohmann::json& found) {
    return found.is_array() ? found : nlohmann::json::array({found});
  }

  const nlohmann::json* find(const std::string& path) {
    known_.push_back(path);
    const nlohmann::json* at = &json_;
    size_t begin = 0;
    while (begin <= path.size()) {
      const size_t end = std::min(path.find('.', begin), path.size());
      const std::string key = path.substr(begin, end - begin);
      if (!at->is_object() || !at->contains(key)) return nullptr;
      at = &(*at)[key];
      begin = end + 1;
    }
    return at;
  }
  [[noreturn]] void refuse(const std::string& path, const nlohmann::json& value,
                           const std::string& expected) const {
    fail(ErrorKind::InvalidArgument, "{}: {} is {}; expected {}", name_, path,
         excerpt(value.dump()), expected);
  }
  void refuse_unknown(const nlohmann::json& part, const std::string& prefix) const {
    check(part.is_object(), "{}: {} is not an object; expected fields in braces", name_,
          prefix.empty() ? "the file" : excerpt(prefix));
    for (const auto& [key, value] : part.items()) {
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      if (std::find(known_.begin(), known_.end(), path) != known_.end()) continue;
      if (value.is_null() && std::find(groups_.begin(), groups_.end(), path) != groups_.end())
        continue;
      const bool group = std::any_of(known_.begin(), known_.end(),
                                     [&](auto& k) { return k.starts_with(path + "."); });
      check(group, "{}: {} is not a field of a Spec{}", name_, excerpt(path),
            did_you_mean(excerpt(path), fields_and_groups()));
      refuse_unknown(value, path);
    }
  }

  std::vector<std::string> fields_and_groups() const {
    std::vector<std::string> paths = known_;
    paths.insert(paths.end(), groups_.begin(), groups_.end());
    for (const std::string& path : known_)
      for (size_t dot = path.find('.'); dot != path.npos; dot = path.find('.', dot + 1))
        paths.push_back(path.substr(0, dot));
    return paths;
  }

  const nlohmann::json& json_;
  std::string name_;
  std::vector<std::string> known_, groups_;  // groups_: the stacks, which may be null
};

class Writer : public OptionVisitor {
 public:
  void integer(const Field& field, int64_t& value, int64_t, int64_t) override {
    put(field.path, value);
  }
  void number(const Field& field, double& value, double, double) override {
    put(field.path, value);
  }
  void list(const Field& field, const List& list) override {
    std::visit([&](const auto& each) { put(field.path, each.values); }, list);
  }
  void boolean(const Field& field, bool& value) override { put(field.path, value); }
  void choice(const Field& field, int& value, const std::vector<std::string>& names) override {
    put(field.path, names[static_cast<size_t>(value)]);
  }
  std::string document() const { return json_.dump(2) + "\n"; }

 private:
  template <class T>
  void put(std::string path, const T& value) {
    std::replace(path.begin(), path.end(), '.', '/');
    json_[nlohmann::ordered_json::json_pointer("/" + path)] = value;
  }
  nlohmann::ordered_json json_;
};

}  // namespace

Spec read_spec(const std::string& text, const std::string& name) {
  const FloatMode mode;
  const nlohmann::json json = parse_json(text, name);
  Spec spec;
  Reader reader(json, name);
  visit(spec, reader);
  reader.refuse_unknown();
  return spec;
}

std::string write_spec(const Spec& spec) {
  const FloatMode mode;
  Spec copy = spec;
  Writer writer;
  visit(copy, writer);
  return writer.document();
}

}  // namespace fovea::model
