#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "fovea/core/error.h"
#include "fovea/core/options.h"
#include "fovea/infer/metrics.h"
#include "fovea/model/model.h"

// Python's values for those of the library.

namespace fovea::python {

// Returns the value with a name. Throws InvalidArgument, which lists all names, if no value has it.
template <class T>
T one_of(const char* field, const std::string& name,
         std::initializer_list<std::pair<const char*, T>> values) {
  std::string names;
  for (const auto& [each, value] : values) {
    if (each == name) return value;
    names += (names.empty() ? "\"" : ", \"") + std::string(each) + "\"";
  }
  throw FieldError(ErrorKind::InvalidArgument, field,
                   fmt::format("\"{}\"; expected {}", name, names));
}

model::WeightPrecision precision_of(const std::string& name);
model::AttentionKind kind_of(const std::string& name);

using Adapters = std::vector<std::pair<std::string, double>>;  // folders and their weights
std::vector<model::AdapterUse> uses_of(const Adapters& adapters);

// A dictionary of metrics by their names.
nanobind::dict dict_of(const infer::MetricValues& metrics);

// Returns a parsed JSON text.
nanobind::object parsed(const std::string& json);

}  // namespace fovea::python
