// What the outputs of models rest on.

#include "fovea/study/explain.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "inspection.h"
#include "keywords.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using study::Attribution;
using study::DeletionTest;
using study::ExplainOptions;
using study::Explanation;

std::string explained(const Explanation& e) {
  std::string text = fmt::format("Explanation of {} ({} {:.4f})", e.target, e.value_name, e.value);
  for (size_t t = 0; t < e.tokens.size() && !e.attributions.empty(); ++t)
    text += fmt::format("\n  {:+.4f}  {}", e.attributions[0].scores[t], e.tokens[t].text);
  return text;
}

void add_classes(nb::module_& module) {
  nb::class_<DeletionTest>(module, "DeletionTest", "How far the output changes without tokens.")
      .def_ro("removed", &DeletionTest::removed)
      .def_ro("change", &DeletionTest::change)
      .def_ro("random_change", &DeletionTest::random_change)
      .def_ro("random_deviation", &DeletionTest::random_deviation);
  nb::class_<Attribution>(module, "Attribution", "The scores of the tokens by one method.")
      .def_prop_ro("method", [](const Attribution& a) { return name_of(a.method); })
      .def_prop_ro(
          "scores", [](const Attribution& a) { return array_of(std::vector<double>(a.scores)); },
          nb::rv_policy::automatic)
      .def_ro("baseline_value", &Attribution::baseline_value)
      .def_ro("completeness_error", &Attribution::completeness_error)
      .def_ro("integration_steps", &Attribution::integration_steps)
      .def_ro("converged", &Attribution::converged)
      .def_ro("deletion", &Attribution::deletion);
  nb::class_<Explanation>(module, "Explanation", "What the output for a text rests on.")
      .def_ro("tokens", &Explanation::tokens)
      .def_ro("cut", &Explanation::cut)
      .def_ro("positions", &Explanation::positions)
      .def_ro("target", &Explanation::target)
      .def_ro("value_name", &Explanation::value_name)
      .def_ro("value", &Explanation::value)
      .def_ro("baseline", &Explanation::baseline)
      .def_prop_ro("outputs",
                   [](const Explanation& e) {
                     std::vector<std::pair<std::string, double>> outputs;
                     for (const auto& each : e.outputs) outputs.emplace_back(each.name, each.score);
                     return outputs;
                   })
      .def_ro("attributions", &Explanation::attributions)
      .def("__repr__", &explained);
}

struct ExplainArguments {
  ExplainOptions explain;
  infer::ClassifyOptions classify;
};

ExplainArguments arguments_of(const nb::kwargs& given) {
  ExplainArguments options;
  Keywords(given).into(options.explain).into(options.classify).refuse_others();
  return options;
}

}  // namespace

void add_explanation(nb::module_& module) {
  add_classes(module);
  module.def(
      "explain",
      [](const model::Model& model, const TextOrIds& text, const std::string& context,
         const nb::kwargs& given) {
        study::InspectInput input = input_of(text, context, {});
        return call([=, o = arguments_of(given)] {
          return study::explain(model, input, o.explain, o.classify);
        });
      },
      nb::arg("model"), nb::arg("text"), nb::arg("context") = "", nb::arg("options"));
  module.def(
      "explain_similarity",
      [](const infer::Embedder& embedder, const std::vector<std::string>& texts,
         const std::string& other, const nb::kwargs& given) {
        ExplainOptions options;
        infer::EmbedOptions embed;
        Keywords(given).into(options).into(embed).refuse_others();
        return call([=] { return study::explain(embedder, texts, other, options, embed); });
      },
      nb::arg("embedder"), nb::arg("texts"), nb::arg("other"), nb::arg("options"));
  module.def(
      "explain_results",
      [](const infer::Classifier& classifier, const std::vector<std::string>& texts,
         const nb::kwargs& given) {
        std::vector<infer::TextInput> inputs;
        for (const std::string& text : texts) inputs.push_back({text});
        return call([=, o = arguments_of(given)] {
          return study::explain_results(classifier, inputs, o.explain, o.classify);
        });
      },
      nb::arg("classifier"), nb::arg("texts"), nb::arg("options"),
      "Explains each result of a classifier for each text.");
}

}  // namespace fovea::python
