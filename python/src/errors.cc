#include "errors.h"

#include <array>
#include <exception>

#include "fovea/core/error.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

PyObject* new_class(nb::module_& module, const char* name, const char* meaning, PyObject* bases) {
  PyObject* const made = PyErr_NewExceptionWithDoc(name, meaning, bases, nullptr);
  if (made == nullptr) throw nb::python_error();
  module.attr(name + sizeof("fovea.") - 1) = nb::borrow(made);
  return made;  // kept until the process ends
}

std::array<PyObject*, 6> classes;  // by ErrorKind

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    PyErr_SetString(classes[static_cast<size_t>(error.kind())], error.what());
  }
}

}  // namespace

void add_errors(nb::module_& module) {
  PyObject* const base =
      new_class(module, "fovea.Error", "An error of fovea, with a message of one line.", nullptr);
  const auto add = [&](ErrorKind kind, const char* name, const char* meaning, PyObject* other) {
    const nb::tuple bases = nb::make_tuple(nb::borrow(base), nb::borrow(other));
    classes[static_cast<size_t>(kind)] = new_class(module, name, meaning, bases.ptr());
  };
  add(ErrorKind::InvalidArgument, "fovea.InvalidArgument", "An invalid option, value or shape.",
      PyExc_ValueError);
  add(ErrorKind::BadFile, "fovea.BadFile", "A file that cannot be read or has invalid contents.",
      PyExc_OSError);
  add(ErrorKind::Unsupported, "fovea.Unsupported",
      "Something valid that this version or machine does not support.", PyExc_NotImplementedError);
  add(ErrorKind::OutOfMemory, "fovea.OutOfMemory", "A limit of size or memory would be exceeded.",
      PyExc_MemoryError);
  add(ErrorKind::Failed, "fovea.Failed",
      "A run that failed: a full disk, a loss that is not finite, an interruption.",
      PyExc_RuntimeError);
  add(ErrorKind::Internal, "fovea.Internal", "A bug of fovea.", PyExc_RuntimeError);
  nb::register_exception_translator(translate);
}

}  // namespace fovea::python
