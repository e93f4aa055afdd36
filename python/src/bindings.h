#pragma once

#include <nanobind/nanobind.h>

namespace fovea::python {

// Each adds the classes and functions of one topic to the module.
void add_machine(nanobind::module_& module);
void add_options(nanobind::module_& module);
void add_tokenizer(nanobind::module_& module);
void add_model(nanobind::module_& module);
void add_generation(nanobind::module_& module);
void add_service(nanobind::module_& module);
void add_streams(nanobind::module_& module);
void add_encoders(nanobind::module_& module);
void add_classifier(nanobind::module_& module);
void add_images(nanobind::module_& module);
void add_speech(nanobind::module_& module);
void add_search(nanobind::module_& module);
void add_tensor(nanobind::module_& module);
void add_ops(nanobind::module_& module);
void add_layers(nanobind::module_& module);
void add_training(nanobind::module_& module);
void add_plans(nanobind::module_& module);
void add_evaluation(nanobind::module_& module);
void add_inspection(nanobind::module_& module);
void add_explanation(nanobind::module_& module);

}  // namespace fovea::python
