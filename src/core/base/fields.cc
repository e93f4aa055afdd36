#include "base/fields.h"

#include <charconv>
#include <limits>

namespace fovea {
namespace {

double widened(float value) {
  const std::string text = fmt::format("{}", value);
  double wide = 0;
  std::from_chars(text.data(), text.data() + text.size(), wide);
  return wide;
}

}  // namespace

void OptionVisitor::number(const Field& field, float& value, double least, double most) {
  const double before = widened(value);
  double after = before;
  number(field, after, least, most);
  if (after != before) value = static_cast<float>(after);
}

void OptionVisitor::numbers(const Field& field, std::vector<float>& values, double least,
                            double most) {
  std::vector<double> wide;
  for (const float value : values) wide.push_back(widened(value));
  const std::vector<double> before = wide;
  numbers(field, wide, least, most);
  if (wide == before) return;
  values.clear();
  for (const double value : wide) values.push_back(static_cast<float>(value));
}

void OptionVisitor::integers(const Field& field, std::vector<int32_t>& values, int64_t least,
                             int64_t most) {
  std::vector<int64_t> wide(values.begin(), values.end());
  integers(field, wide, least, most);
  values.clear();
  for (const int64_t value : wide) values.push_back(static_cast<int32_t>(value));
}

std::string range_text(int64_t least, int64_t most) {
  if (most == std::numeric_limits<int64_t>::max()) return fmt::format("{} or more", least);
  return fmt::format("{} to {}", least, most);
}

std::string range_text(double least, double most) { return fmt::format("{} to {}", least, most); }

template <class T>
void RangeCheck::check_range(const Field& field, T value, T least, T most) {
  if (found || (value >= least && value <= most)) return;
  found = OutOfRange{field, fmt::format("{}", value), range_text(least, most)};
}

template <class Values>
void RangeCheck::check_each(const Field& field, const Values& list) {
  for (const auto value : list.values) check_range(field, value, list.least, list.most);
}

void RangeCheck::integer(const Field& field, int64_t& value, int64_t least, int64_t most) {
  check_range(field, value, least, most);
}
void RangeCheck::number(const Field& field, double& value, double least, double most) {
  check_range(field, value, least, most);
}
void RangeCheck::list(const Field& field, const List& list) {
  if (const auto* integers = std::get_if<Integers>(&list)) check_each(field, *integers);
  if (const auto* numbers = std::get_if<Numbers>(&list)) check_each(field, *numbers);
}
void RangeCheck::choice(const Field& field, int& value, const Names& names) {
  check_range<int64_t>(field, value, 0, std::ssize(names) - 1);
}

}  // namespace fovea
