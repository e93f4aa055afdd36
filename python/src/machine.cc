// The machine: threads, instruction set, checks, and the program itself.

#include "fovea/core/machine.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "cli/command.h"
#include "fovea/core/excerpt.h"
#include "fovea/doctor.h"

namespace nb = nanobind;

namespace fovea::python {

void add_machine(nb::module_& module) {
  module.attr("__version__") = version();
  module.def("set_threads", &set_threads, nb::arg("count"),
             nb::call_guard<nb::gil_scoped_release>(),
             "Sets the number of compute threads of this process.");
  module.def("thread_count", &thread_count, "Returns the number of compute threads.");
  module.def("instruction_set", &instruction_set,
             "Returns the instruction set of the kernels, such as \"avx512\".");
  module.def("use_device", &use_device, nb::arg("name"), nb::call_guard<nb::gil_scoped_release>(),
             "Sets the device of the models that are loaded or trained from now on: \"cpu\", "
             "\"cuda\" (an NVIDIA GPU) or \"cuda:1\" and so on.");
  module.def("device_in_use", &device_in_use, "Returns the device of new models.");
  module.def(
      "excerpt", [](const std::string& text, size_t most) { return excerpt(text, most); },
      nb::arg("text"), nb::arg("most"),
      "Returns the beginning of a text, of at most `most` bytes.");

  nb::class_<Finding>(module, "Finding", "A result of doctor().")
      .def_ro("topic", &Finding::topic)
      .def_ro("message", &Finding::message)
      .def_ro("good", &Finding::good)
      .def("__repr__", [](const Finding& f) {
        return f.topic + ": " + f.message + (f.good ? "" : " (a problem)");
      });
  module.def(
      "doctor", [](const std::string& folder) { return call([folder] { return doctor(folder); }); },
      nb::arg("folder") = "",
      "Checks this machine and, with `folder`, whether the model and the snapshots in it are "
      "intact.");

  module.def(
      "run_program", &cli::run_program, nb::arg("arguments"), nb::arg("own"),
      nb::call_guard<nb::gil_scoped_release>(),
      "Runs the command line with these arguments, and returns its exit code. own: the program and "
      "the arguments that start it again.");
}

}  // namespace fovea::python
