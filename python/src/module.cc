// The module fovea._fovea, on which the Python files of the package are built.

#include <nanobind/nanobind.h>

#include "bindings.h"
#include "call.h"
#include "errors.h"
#include "fovea/core/machine.h"
#include "keywords.h"

NB_MODULE(_fovea, module) {
  nanobind::set_leak_warnings(false);  // layers and hooks may refer to themselves
  const std::string missing = fovea::missing_cpu_features();
  if (!missing.empty())
    throw nanobind::import_error(
        ("this CPU: missing " + missing + "; expected an x86-64-v3 CPU").c_str());
  fovea::python::add_errors(module);
  fovea::python::add_end_of_jobs(module);
  fovea::python::add_descriptions(module);
  fovea::python::add_machine(module);
  fovea::python::add_options(module);
  fovea::python::add_tensor(module);
  fovea::python::add_ops(module);
  fovea::python::add_tokenizer(module);
  fovea::python::add_model(module);
  fovea::python::add_generation(module);
  fovea::python::add_encoders(module);
  fovea::python::add_classifier(module);
  fovea::python::add_images(module);
  fovea::python::add_speech(module);
  fovea::python::add_search(module);
  fovea::python::add_service(module);
  fovea::python::add_streams(module);
  fovea::python::add_layers(module);
  fovea::python::add_training(module);
  fovea::python::add_plans(module);
  fovea::python::add_evaluation(module);
  fovea::python::add_inspection(module);
  fovea::python::add_explanation(module);
}
