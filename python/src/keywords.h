#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "fovea/core/options.h"

namespace fovea::python {

// Keyword arguments for structs of options, by the descriptions of their fields that the command
// line has too. None stands for an argument that is not given.
class Keywords {
 public:
  explicit Keywords(const nanobind::dict& given) : given_(given) {}

  // Sets the fields that are given, and keeps the others. Throws InvalidArgument, with the field
  // and what was expected, for a value of another type. `visit` checks no ranges; the library does.
  template <class Options>
  Keywords& into(Options& options) {
    read([&](OptionVisitor& visitor) { visit(options, visitor); });
    return *this;
  }
  // Throws a TypeError, with the nearest name, if an argument is no field of these structs.
  void refuse_others() const;
  std::vector<std::string> names() const;  // of those that are given
  bool knows(const std::string& name) const { return known_.contains(name); }

 private:
  void read(const std::function<void(OptionVisitor&)>& visit_all);

  nanobind::dict given_;
  std::set<std::string> known_;
};

// Returns options with the arguments that are given; refuses all others.
template <class Options>
Options options_from(const nanobind::kwargs& given) {
  Options options;
  Keywords(given).into(options).refuse_others();
  return options;
}

// Adds the function that describes the options of each call: their names, types, defaults, ranges
// and sentences, for docstrings and stubs.
void add_descriptions(nanobind::module_& module);

}  // namespace fovea::python
