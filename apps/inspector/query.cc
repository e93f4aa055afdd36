#include "inspector/query.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"

namespace fovea::inspector {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& found, const char* expected) {
  throw Error(ErrorKind::InvalidArgument,
              name + ": '" + excerpt(found) + "'; expected " + expected);
}

int64_t number_of(const std::string& name, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    refuse(name, text, "an integer of at least 0");
  return value;
}

}  // namespace

std::string Query::text(const std::string& name) const {
  const auto found = parts_.find(name);
  if (found == parts_.end()) refuse(name, "", "a value");
  return found->second;
}

int64_t Query::number(const std::string& name) const { return number_of(name, text(name)); }

int64_t Query::number(const std::string& name, int64_t otherwise) const {
  return parts_.contains(name) ? number(name) : otherwise;
}

double Query::real(const std::string& name) const {
  const std::string value = text(name);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number))
    refuse(name, value, "a number");
  return number;
}

std::vector<int64_t> Query::numbers(const std::string& name) const {
  const std::string all = text(name);
  std::vector<int64_t> values;
  for (size_t begin = 0; begin <= all.size();) {
    const size_t end = std::min(all.find(',', begin), all.size());
    values.push_back(number_of(name, all.substr(begin, end - begin)));
    begin = end + 1;
  }
  return values;
}

std::pair<int64_t, int64_t> Query::span(const std::string& name) const {
  if (!parts_.contains(name)) return {0, -1};
  const std::string all = text(name);
  const size_t dash = all.find('-');
  if (dash == std::string::npos) refuse(name, all, "first-end");
  return {number_of(name, all.substr(0, dash)), number_of(name, all.substr(dash + 1))};
}

model::AttentionKind Query::kind() const {
  return parts_.contains("look") ? attention_kind(text("look")) : model::AttentionKind::self;
}

model::AttentionKind attention_kind(const std::string& name) {
  if (name == "self") return model::AttentionKind::self;
  if (name == "encoder") return model::AttentionKind::encoder;
  if (name == "cross") return model::AttentionKind::cross;
  refuse("look", name, "self, encoder or cross");
}

}  // namespace fovea::inspector
