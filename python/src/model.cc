// Models: opening, saving, and facts.

#include "fovea/model/model.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "bindings.h"
#include "call.h"
#include "fovea/compare.h"
#include "fovea/core/error.h"
#include "fovea/model/convert.h"
#include "fovea/model/hub.h"
#include "fovea/open.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using model::Model;

std::optional<DType> cache_of(const std::optional<std::string>& name) {
  if (!name) return {};
  return one_of<DType>("cache", *name,
                       {{"fp32", DType::f32}, {"bf16", DType::bf16}, {"int8", DType::i8}});
}

struct Opening {
  std::string path;
  model::WeightPrecision precision;
  std::optional<DType> cache;
  std::vector<model::AdapterUse> adapters;
  std::string mmproj;
};

Model opened_model(const Opening& how) {
  Model model = Model::open(how.path, how.precision, how.cache, how.adapters);
  if (!how.mmproj.empty()) model = model.with_image_encoder(how.mmproj, how.precision);
  return model;
}

void add_conversion(nb::module_& module) {
  using model::Conversion;
  nb::class_<Conversion>(module, "Conversion", "What convert() has written.")
      .def_ro("parameters", &Conversion::parameters)
      .def_ro("bytes_before", &Conversion::bytes_before)
      .def_ro("bytes_after", &Conversion::bytes_after)
      .def_ro("weights", &Conversion::weights)
      .def_ro("warnings", &Conversion::warnings)
      .def_ro("mmproj", &Conversion::mmproj);
  module.def(
      "convert",
      [](const std::string& source, const std::string& target, const Adapters& adapters,
         const nb::kwargs& given) {
        const auto options = options_from<model::ConvertOptions>(given);
        return call([source, target, options, uses = uses_of(adapters)] {
          return model::convert_model(source, target, options, uses);
        });
      },
      nb::arg("source"), nb::arg("target"), nb::arg("adapters") = Adapters(), nb::arg("options"));
}

void add_comparison(nb::module_& module) {
  nb::class_<Comparison>(module, "Comparison",
                         "The difference between the predictions of a model and of a reference.")
      .def_ro("tokens", &Comparison::tokens)
      .def_ro("perplexity", &Comparison::perplexity)
      .def_ro("full_perplexity", &Comparison::full_perplexity)
      .def_ro("loss_difference", &Comparison::loss_difference)
      .def_ro("divergence", &Comparison::divergence)
      .def_ro("flips", &Comparison::flips)
      .def_ro("divergence_error", &Comparison::divergence_error)
      .def_ro("weight_bytes", &Comparison::weight_bytes)
      .def_ro("full_weight_bytes", &Comparison::full_weight_bytes);
  module.def(
      "compare",
      [](const Model& model, const Model& full, const std::vector<std::string>& data) {
        return call([=] { return compare(model, full, data); });
      },
      nb::arg("model"), nb::arg("full"), nb::arg("data"),
      "Compares two decoders on text files: perplexities, divergence, and the fraction of tokens "
      "whose most likely successor differs.");
}

void add_names(nb::module_& module) {
  module.def(
      "model_use", [](const std::string& path) { return std::string(name_of(model_use(path))); },
      nb::arg("path"),
      "Returns what the model in a directory or file is for: text, speech, vectors, sparse, "
      "multi_vector, scores, labels or images.");
  module.def("find_model", &model::find_model, nb::arg("name"),
             "Returns the path of a model: `name` itself, or where the cache of the Hugging Face "
             "Hub has the model of this name.");
  module.def(
      "missing_model",
      [](const std::string& name) -> std::optional<std::pair<std::string, std::string>> {
        const auto missing = model::missing_model(name);
        if (!missing) return {};
        return std::pair(missing->repository, missing->revision);
      },
      nb::arg("name"),
      "Returns the repository and the revision if `name` is a model of the Hub that is not here.");
}

}  // namespace

model::WeightPrecision precision_of(const std::string& name) {
  using enum model::WeightPrecision;
  return one_of<model::WeightPrecision>("precision", name,
                                        {{"stored", stored},
                                         {"full", full},
                                         {"fp32", fp32},
                                         {"bf16", bf16},
                                         {"int8", int8},
                                         {"int4", int4}});
}

model::AttentionKind kind_of(const std::string& name) {
  using enum model::AttentionKind;
  return one_of<model::AttentionKind>("kind", name,
                                      {{"self", self}, {"encoder", encoder}, {"cross", cross}});
}

std::vector<model::AdapterUse> uses_of(const Adapters& adapters) {
  std::vector<model::AdapterUse> uses;
  for (const auto& [folder, weight] : adapters) uses.push_back({folder, weight});
  return uses;
}

void add_model(nb::module_& module) {
  nb::class_<Model>(module, "Model", "A Transformer with its tokenizer; see fovea.Model.")
      .def_static(
          "open",
          [](const std::string& path, const std::string& precision,
             const std::optional<std::string>& cache, const Adapters& adapters,
             const std::string& mmproj) {
            return call([how = Opening{path, precision_of(precision), cache_of(cache),
                                       uses_of(adapters), mmproj}] { return opened_model(how); });
          },
          nb::arg("path"), nb::arg("precision") = "stored", nb::arg("cache") = nb::none(),
          nb::arg("adapters") = Adapters(), nb::arg("mmproj") = "")
      .def_static(
          "create",
          [](const model::Spec& spec, const text::Tokenizer& tokenizer, uint64_t seed) {
            return call([=] { return Model::create(spec, tokenizer, seed); });
          },
          nb::arg("spec"), nb::arg("tokenizer"), nb::arg("seed") = 1)
      .def(
          "save", [](const Model& m, const std::string& folder) { call([=] { m.save(folder); }); },
          nb::arg("folder"))
      .def(
          "with_adapters",
          [](const Model& m, const Adapters& adapters) {
            return call([m, uses = uses_of(adapters)] { return m.with_adapters(uses); });
          },
          nb::arg("adapters"))
      .def(
          "without_heads",
          [](const Model& m, const std::vector<std::tuple<std::string, int64_t, int64_t>>& heads) {
            std::vector<model::HeadIndex> muted;
            for (const auto& [kind, layer, head] : heads)
              muted.push_back({kind_of(kind), layer, head});
            return m.without_heads(muted);
          },
          nb::arg("heads"))
      .def_prop_ro("spec", [](const Model& m) { return m.spec(); })
      .def_prop_ro("tokenizer",
                   [](const Model& m) -> std::optional<text::Tokenizer> {
                     if (!m.has_tokenizer()) return {};
                     return m.tokenizer();
                   })
      .def_prop_ro("warnings", [](const Model& m) { return m.warnings(); })
      .def_prop_ro("parameters", &Model::parameters)
      .def_prop_ro("weight_bytes", &Model::weight_bytes)
      .def_prop_ro("weight_formats", [](const Model& m) {
        std::vector<std::pair<std::string, int64_t>> formats;
        for (const auto& [format, bytes] : m.weight_formats()) formats.emplace_back(format, bytes);
        return formats;
      });
  add_names(module);
  add_conversion(module);
  add_comparison(module);
}

}  // namespace fovea::python
