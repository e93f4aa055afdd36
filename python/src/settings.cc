// Structs of options that several calls share, made from keyword arguments.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "fovea/model/spec.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {

void add_options(nb::module_& module) {
  nb::class_<model::Spec>(module, "Spec",
                          "The architecture of a model. Spec(preset, **fields) changes fields of a "
                          "preset; the fields are those of `fovea train`.")
      .def(
          "__init__",
          [](model::Spec* self, const std::string& preset, const nb::kwargs& fields) {
            model::Spec spec = model::preset(preset);
            Keywords keywords(fields);
            keywords.into(spec).refuse_others();
            new (self) model::Spec(std::move(spec));
          },
          nb::arg("preset") = "nano", nb::arg("fields"))
      .def_ro("vocabulary", &model::Spec::vocabulary)
      .def_ro("context", &model::Spec::context)
      .def_ro("width", &model::Spec::width)
      .def_prop_ro("layers",
                   [](const model::Spec& s) { return (s.decoder ? s.decoder : s.encoder)->layers; })
      .def_prop_ro(
          "heads",
          [](const model::Spec& s) { return (s.decoder ? s.decoder : s.encoder)->attention.heads; })
      .def_prop_ro("has_encoder", [](const model::Spec& s) { return s.encoder.has_value(); })
      .def_prop_ro("has_decoder", [](const model::Spec& s) { return s.decoder.has_value(); })
      .def("json", &model::write_spec, "Returns all fields as JSON.")
      .def_static("from_json", &model::read_spec, nb::arg("json"), nb::arg("name") = "Spec",
                  "Reads a Spec from JSON; missing keys keep their defaults.")
      .def_static("of_model", &model::read_model_spec, nb::arg("path"),
                  "Reads the Spec of a model's directory or file; weights are not read.")
      .def("validated", &model::validated,
           "Returns the Spec with derived values in place of fields that are 0.")
      .def("__eq__",
           [](const model::Spec& one, const nb::object& other) {
             return nb::isinstance<model::Spec>(other) &&
                    model::write_spec(one) == model::write_spec(nb::cast<model::Spec>(other));
           })
      .def("__getstate__", &model::write_spec)
      .def("__setstate__", [](model::Spec& self, const std::string& json) {
        new (&self) model::Spec(model::read_spec(json, "Spec"));
      });
  module.def("preset_names", &model::preset_names, "Returns the names of presets.");
}

}  // namespace fovea::python
