#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "fovea/core/error.h"

namespace fovea {

// Describes one field of an options struct or of a Spec.
struct Field {
  std::string name;  // unique in its struct: "learning_rate"; the command line derives its option
  std::string help;  // one phrase, for help and documents
  bool decides = false;   // training: the value affects the results; a resumed run must keep it
  std::string path = {};  // Spec: the path in spec.json, such as "decoder.attention.heads"
};

// Visits the fields of a struct, for checks, the command line, the server, resumed runs and tests.
// Each function `visit(Options&, OptionVisitor&)` passes the fields with their bounds, which are
// inclusive. A visitor overrides the functions of the kinds that it processes; it may change the
// values. The arguments are valid during the call only.
class OptionVisitor {
 public:
  using Names = std::vector<std::string>;
  // Lists; the bounds hold for each value.
  struct Integers {
    std::vector<int64_t>& values;
    int64_t least, most;
  };
  struct Numbers {
    std::vector<double>& values;
    double least, most;
  };
  struct Texts {
    std::vector<std::string>& values;
  };
  using List = std::variant<Integers, Numbers, Texts>;
  enum class Unit { none, bytes };
  enum class Part { field, group };

  virtual ~OptionVisitor() = default;
  virtual void integer(const Field&, int64_t& /*value*/, int64_t /*least*/, int64_t /*most*/) {}
  virtual void number(const Field&, double& /*value*/, double /*least*/, double /*most*/) {}
  virtual void boolean(const Field&, bool&) {}
  virtual void choice(const Field&, int& /*index of names*/, const Names&) {}
  virtual void text(const Field&, std::string&) {}
  virtual void list(const Field&, const List&) {}
  virtual void unsigned_integer(const Field&, uint64_t&, Unit) {}  // any value
  // `present`: whether an optional field, or a group of fields, is set. The value of the field, or
  // the fields of the group, are visited only if `present` is true after the call.
  virtual void optional(const Field&, bool& /*present*/, Part) {}

  void integers(const Field& field, std::vector<int64_t>& values, int64_t least, int64_t most) {
    list(field, Integers{values, least, most});
  }
  void numbers(const Field& field, std::vector<double>& values, double least, double most) {
    list(field, Numbers{values, least, most});
  }
  void texts(const Field& field, std::vector<std::string>& values) { list(field, Texts{values}); }
  void bytes(const Field& field, uint64_t& value) { unsigned_integer(field, value, Unit::bytes); }
  void seed(const Field& field, uint64_t& value) { unsigned_integer(field, value, Unit::none); }
  void group(const Field& field, bool& present) { optional(field, present, Part::group); }
  // A float is visited as the double with the same shortest decimal form: 0.95f as 0.95.
  void number(const Field& field, float& value, double least, double most);
  void numbers(const Field& field, std::vector<float>& values, double least, double most);
  void integers(const Field& field, std::vector<int32_t>& values, int64_t least, int64_t most);
  template <class Enum>
    requires std::is_enum_v<Enum>
  void choice(const Field& field, Enum& value, const Names& names) {
    int index = static_cast<int>(value);
    choice(field, index, names);
    value = static_cast<Enum>(index);
  }
  // Calls `visit_value(T&)` if the value is present.
  template <class T, class Visit>
  void optional(const Field& field, std::optional<T>& value, const Visit& visit_value) {
    bool present = value.has_value();
    optional(field, present, Part::field);
    if (!present) return value.reset();
    if (!value) value.emplace();
    visit_value(*value);
  }
};

// An Error about one field of an options struct: "<field>: <what is wrong>; <what was expected>".
// The message names other fields in backticks: "`batch`". The command line replaces the names of
// fields by those of its options.
class FieldError : public Error {
 public:
  FieldError(ErrorKind kind, const std::string& field, const std::string& message)
      : Error(kind, field + ": " + message), field_(field) {}
  const std::string& field() const { return field_; }

 private:
  std::string field_;
};

}  // namespace fovea
