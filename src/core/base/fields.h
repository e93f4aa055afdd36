#pragma once

#include "base/error.h"
#include "fovea/core/options.h"

namespace fovea {

template <class... Args>
[[noreturn]] void fail_field(ErrorKind kind, const std::string& field,
                             fmt::format_string<Args...> format, Args&&... args) {
  throw FieldError(kind, field, fmt::format(format, std::forward<Args>(args)...));
}

// Throws a FieldError of kind InvalidArgument that names the field if `holds` is false.
template <class... Args>
void check_field(bool holds, const char* field, fmt::format_string<Args...> format,
                 Args&&... args) {
  if (!holds) fail_field(ErrorKind::InvalidArgument, field, format, std::forward<Args>(args)...);
}

// Returns a range as text for help and errors: "0 or more", or "1 to 65536".
std::string range_text(int64_t least, int64_t most);
std::string range_text(double least, double most);

// A field whose value is out of its range, and the range.
struct OutOfRange {
  Field field;
  std::string value, expected;
};

// Finds the first field that is out of its range.
class RangeCheck : public OptionVisitor {
 public:
  std::optional<OutOfRange> found;
  void integer(const Field&, int64_t& value, int64_t least, int64_t most) override;
  void number(const Field&, double& value, double least, double most) override;
  void list(const Field&, const List&) override;
  void choice(const Field&, int& value, const Names&) override;

 private:
  template <class T>
  void check_range(const Field&, T value, T least, T most);
  template <class Values>
  void check_each(const Field&, const Values& list);
};

template <class Options>
std::optional<OutOfRange> find_out_of_range(Options options) {
  RangeCheck range;
  visit(options, range);
  return range.found;
}

// Throws a FieldError of kind InvalidArgument for the first field that is out of its range.
template <class Options>
void check_fields(const Options& options) {
  if (const auto wrong = find_out_of_range(options))
    check_field(false, wrong->field.name.c_str(), "{}; expected {}", wrong->value, wrong->expected);
}

}  // namespace fovea
