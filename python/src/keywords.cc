#include "keywords.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/nearest.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

[[noreturn]] void refuse(const Field& field, nb::handle value, const std::string& expected) {
  throw FieldError(
      ErrorKind::InvalidArgument, field.name,
      fmt::format("{}; expected {}", nb::cast<std::string>(nb::repr(value)), expected));
}

// Sets the fields for which the dictionary has a value.
class FieldReader : public OptionVisitor {
 public:
  FieldReader(const nb::dict& given, std::set<std::string>& known) : given_(given), known_(known) {}

  void integer(const Field& f, int64_t& value, int64_t, int64_t) override {
    set(f, value, "an integer");
  }
  void number(const Field& f, double& value, double, double) override { set(f, value, "a number"); }
  void boolean(const Field& f, bool& value) override { set(f, value, "True or False"); }
  void text(const Field& f, std::string& value) override {
    const nb::object given = find(f);
    if (given.is_valid()) value = text_of(f, given);
  }
  void unsigned_integer(const Field& f, uint64_t& value, Unit unit) override {
    set(f, value, unit == Unit::bytes ? "a number of bytes" : "an integer from 0 to 2^64 - 1");
  }
  void choice(const Field& f, int& value, const Names& names) override {
    const nb::object given = find(f);
    if (!given.is_valid()) return;
    std::string name;
    if (nb::try_cast(given, name))
      for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == name) {
          value = static_cast<int>(i);
          return;
        }
    refuse(f, given, fmt::format("\"{}\"", fmt::join(names, "\", \"")));
  }
  void list(const Field& f, const List& list) override {
    const nb::object given = find(f);
    if (given.is_valid()) std::visit([&](const auto& each) { fill(f, given, each); }, list);
  }
  // A field of the encoder adds an encoder.
  void optional(const Field& f, bool& present, Part part) override {
    known_.insert(f.name);
    const nb::object given = find(f);
    if (part == Part::field) {
      present = present || given.is_valid();
    } else if (given.is_valid()) {
      set(f, present, "True or False");
    } else {
      for (const auto& [name, value] : given_)
        present = present || nb::cast<std::string>(name).starts_with(f.name + "_");
    }
  }

 private:
  nb::object find(const Field& f) {
    known_.insert(f.name);
    const char* const name = f.name.c_str();
    if (!given_.contains(name)) return {};
    const nb::object value = given_[name];
    return value.is_none() ? nb::object() : value;
  }

  template <class T>
  void set(const Field& f, T& value, const char* expected) {
    const nb::object given = find(f);
    if (given.is_valid() && !convert(given, value)) refuse(f, given, expected);
  }
  template <class T>
  static bool convert(const nb::object& given, T& value) {
    if (std::is_same_v<T, bool> != static_cast<bool>(PyBool_Check(given.ptr()))) return false;
    return nb::try_cast(given, value);
  }

  // Paths are texts too.
  static std::string text_of(const Field& f, const nb::object& given) {
    std::string text;
    if (nb::try_cast(given, text)) return text;
    if (!nb::hasattr(given, "__fspath__")) refuse(f, given, "a text");
    return nb::cast<std::string>(given.attr("__fspath__")());
  }

  // A single value stands for a list of it.
  static nb::list items_of(const nb::object& given) {
    if (!nb::isinstance<nb::str>(given) && nb::hasattr(given, "__iter__")) return nb::list(given);
    nb::list one;
    one.append(given);
    return one;
  }
  template <class Numbers>
  void fill(const Field& f, const nb::object& given, const Numbers& list) {
    list.values.clear();
    for (const nb::handle item : items_of(given))
      if (!convert(nb::borrow(item), list.values.emplace_back()))
        refuse(f, given, "a list of numbers");
  }
  void fill(const Field& f, const nb::object& given, const Texts& list) {
    list.values.clear();
    for (const nb::handle item : items_of(given))
      list.values.push_back(text_of(f, nb::borrow(item)));
  }

  const nb::dict& given_;
  std::set<std::string>& known_;
};

}  // namespace

void Keywords::read(const std::function<void(OptionVisitor&)>& visit_all) {
  FieldReader reader(given_, known_);
  visit_all(reader);
}

void Keywords::refuse_others() const {
  for (const std::string& name : names()) {
    if (known_.contains(name)) continue;
    const std::string near = nearest(name, {known_.begin(), known_.end()});
    throw nb::type_error(fmt::format("{}: unknown keyword argument{}", name,
                                     near.empty() ? "" : "; did you mean " + near + "?")
                             .c_str());
  }
}

std::vector<std::string> Keywords::names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : given_)
    if (!value.is_none()) names.push_back(nb::cast<std::string>(name));
  return names;
}

}  // namespace fovea::python
