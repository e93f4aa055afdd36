#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

// Adds the classes of errors, one for each ErrorKind, and translates the library's errors to them.
void add_errors(nanobind::module_& module);

}  // namespace fovea::python
