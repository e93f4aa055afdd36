#include "serve/request/described_field.h"

#include <fmt/format.h>

namespace fovea::serve {

void DescribeField::fill(const fovea::Field& option, FieldType type, double least, double most,
                         std::string initial) {
  if (option.name != option_) return;
  field_.type = type;
  field_.least = least;
  field_.most = most;
  field_.help = option.help;
  if (field_.initial.empty()) field_.initial = std::move(initial);
}

void DescribeField::integer(const fovea::Field& option, int64_t& value, int64_t least,
                            int64_t most) {
  fill(option, FieldType::integer, static_cast<double>(least), static_cast<double>(most),
       fmt::format("{}", value));
}
void DescribeField::number(const fovea::Field& option, double& value, double least, double most) {
  fill(option, FieldType::number, least, most, fmt::format("{}", value));
}
void DescribeField::boolean(const fovea::Field& option, bool& value) {
  fill(option, FieldType::boolean, 0, 0, value ? "true" : "false");
}
void DescribeField::text(const fovea::Field& option, std::string& value) {
  fill(option, FieldType::text, 0, 0, value);
}
void DescribeField::list(const fovea::Field& option, const List& list) {
  const bool texts = std::holds_alternative<Texts>(list);
  fill(option, texts ? FieldType::stops : FieldType::ids, 0, 0, "");
}
void DescribeField::unsigned_integer(const fovea::Field& option, uint64_t&, Unit) {
  fill(option, FieldType::integer, -9223372036854775808.0, 9223372036854775807.0, "");
}

void SetOption::integer(const fovea::Field& option, int64_t& value, int64_t, int64_t) {
  if (option.name == option_) value = value_.get<int64_t>();
}
void SetOption::number(const fovea::Field& option, double& value, double, double) {
  if (option.name == option_) value = value_.get<double>();
}
void SetOption::boolean(const fovea::Field& option, bool& value) {
  if (option.name == option_) value = value_.get<bool>();
}
void SetOption::text(const fovea::Field& option, std::string& value) {
  if (option.name == option_) value = value_.get<std::string>();
}
void SetOption::list(const fovea::Field& option, const List& list) {
  if (option.name != option_) return;
  const Json values = value_.is_array() ? value_ : Json::array({value_});
  std::visit([&](const auto& each) { values.get_to(each.values); }, list);
}
void SetOption::optional(const fovea::Field& option, bool& present, Part) {
  if (option.name == option_) present = true;
}

}  // namespace fovea::serve
