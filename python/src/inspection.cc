// Intermediate results of models.

#include "fovea/study/inspect.h"

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/study/circuits.h"
#include "fovea/study/trace.h"
#include "inspection.h"
#include "keywords.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using model::AttentionKind;
using study::Inspection;

// Calls hook(name, array), which may return another array for the value.
study::TraceHook hook_of(const nb::object& function) {
  if (function.is_none()) return {};
  return [kept = shared(function)](const std::string& name, Tensor& value) {
    const nb::gil_scoped_acquire locked;
    const nb::object changed = (*kept)(name, array_of(value, false));
    if (changed.is_none()) return;
    const nb::object same = nb::module_::import_("numpy").attr("array")(
        changed, value.dtype() == DType::f64 ? "float64" : "float32");
    value = convert(tensor_from(nb::object(same)), value.dtype());
  };
}

template <class Traced>
nb::dict traced(const Traced& model, const nb::object& hook, const nb::kwargs& given) {
  const auto options = options_from<study::TraceOptions>(given);
  const study::TracedValues values = call(
      [=, function = hook_of(hook)] { return study::traced_values(model, options, function); });
  nb::dict arrays;
  for (const auto& [name, value] : values) arrays[name.c_str()] = array_of(value);
  return arrays;
}

void add_traces(nb::module_& module) {
  module.def("trace", &traced<model::Model>, nb::arg("model"), nb::arg("hook").none(),
             nb::arg("options"));
  module.def("trace", &traced<infer::ImageModel>, nb::arg("model"), nb::arg("hook").none(),
             nb::arg("options"));
  module.def(
      "write_trace",
      [](const model::Model& model, const nb::kwargs& given) {
        const auto options = options_from<study::TraceOptions>(given);
        std::vector<std::pair<std::string, std::vector<int64_t>>> shapes;
        for (const auto& [name, shape] : call([=] { return study::trace(model, options); }))
          shapes.emplace_back(name, shape);
        return shapes;
      },
      nb::arg("model"), nb::arg("options"));
}

nb::list pairs_of(const std::vector<study::TokenValue>& values) {
  nb::list pairs;
  for (const auto& [id, value] : values) pairs.append(nb::make_tuple(id, value));
  return pairs;
}

void add_values(nb::module_& module) {
  using study::HeadScores;
  nb::class_<HeadScores>(module, "HeadScores", "What a head attends to, as means over the text.")
      .def_ro("previous", &HeadScores::previous, "Weight on the preceding token.")
      .def_ro("next", &HeadScores::next)
      .def_ro("itself", &HeadScores::itself)
      .def_ro("first", &HeadScores::first)
      .def_ro("same", &HeadScores::same, "On other tokens with the same id.")
      .def_ro("punctuation", &HeadScores::punctuation)
      .def_ro("diffuse", &HeadScores::diffuse, "Entropy / log of the number of visible keys.")
      .def_ro("distance", &HeadScores::distance)
      .def("__repr__", [](const HeadScores& s) {
        return fmt::format(
            "HeadScores(previous={:.3f}, next={:.3f}, itself={:.3f}, first={:.3f}, same={:.3f}, "
            "punctuation={:.3f}, diffuse={:.3f}, distance={:.2f})",
            s.previous, s.next, s.itself, s.first, s.same, s.punctuation, s.diffuse, s.distance);
      });
  using study::Surprise;
  nb::class_<Surprise>(module, "Surprise", "How well the model predicts a token.")
      .def_ro("id", &Surprise::id)
      .def_ro("probability", &Surprise::probability)
      .def_ro("entropy", &Surprise::entropy)
      .def_ro("likeliest", &Surprise::likeliest)
      .def_ro("likeliest_probability", &Surprise::likeliest_probability)
      .def_ro("rank", &Surprise::rank);
  using study::InspectedToken;
  nb::class_<InspectedToken>(module, "InspectedToken")
      .def_ro("id", &InspectedToken::id)
      .def_ro("text", &InspectedToken::text)
      .def_ro("special", &InspectedToken::special)
      .def("__str__", [](const InspectedToken& t) { return t.text; })
      .def("__repr__", [](const InspectedToken& t) {
        return fmt::format("InspectedToken({}, {})", t.id,
                           nb::cast<std::string>(nb::repr(nb::cast(t.text))));
      });
  using study::WalkStep;
  nb::class_<WalkStep>(module, "WalkStep", "An intermediate result for one token.")
      .def_ro("name", &WalkStep::name)
      .def_ro("shape", &WalkStep::shape)
      .def_ro("values", &WalkStep::values)
      .def_ro("size", &WalkStep::size)
      .def_ro("root_mean_square", &WalkStep::root_mean_square)
      .def_ro("ids", &WalkStep::ids);
  using study::LayerSizes;
  nb::class_<LayerSizes>(module, "LayerSizes", "Magnitudes in a layer.")
      .def_ro("stream", &LayerSizes::stream)
      .def_ro("gradient", &LayerSizes::gradient)
      .def_ro("entropy", &LayerSizes::entropy);
}

study::MapQuery map_query(const std::string& kind, int64_t layer, const std::vector<int64_t>& heads,
                          bool mean) {
  return {.kind = kind_of(kind), .layer = layer, .heads = heads, .mean = mean};
}

void add_maps(nb::class_<Inspection>& c) {
  c.def(
       "map",
       [](const Inspection& i, int64_t layer, const std::vector<int64_t>& heads,
          const std::string& kind, bool mean) {
         study::AttentionWeights made;
         {
           const nb::gil_scoped_release unlocked;
           made = i.map(map_query(kind, layer, heads, mean));
         }
         return array_of(std::move(made.weights),
                         {static_cast<size_t>(made.heads), static_cast<size_t>(made.rows),
                          static_cast<size_t>(made.keys)});
       },
       nb::arg("layer"), nb::arg("heads"), nb::arg("kind") = "self", nb::arg("mean") = false,
       "Attention weights, float32 [heads, queries, keys].")
      .def(
          "strongest",
          [](const Inspection& i, int64_t layer, const std::vector<int64_t>& heads, int64_t count,
             const std::string& kind) {
            nb::list rows;
            for (const auto& row : i.strongest(map_query(kind, layer, heads, false), count)) {
              nb::list pairs;
              for (const auto& [key, weight] : row) pairs.append(nb::make_tuple(key, weight));
              rows.append(pairs);
            }
            return rows;
          },
          nb::arg("layer"), nb::arg("heads"), nb::arg("count") = 8, nb::arg("kind") = "self",
          "For each query the keys with the largest mean weight, as pairs (key, weight).")
      .def(
          "head_scores",
          [](const Inspection& i, int64_t layer, const std::string& kind) {
            return i.head_scores(kind_of(kind), layer);
          },
          nb::arg("layer"), nb::arg("kind") = "self", "Statistics of each head of a layer.")
      .def(
          "rollout",
          [](const Inspection& i, int64_t token, const std::string& kind) {
            return array_of(i.rollout(kind_of(kind), token));
          },
          nb::arg("token"), nb::arg("kind") = "self", "Attention rollout, float32 [tokens].");
}

void add_predictions(nb::class_<Inspection>& c) {
  c.def(
       "logits", [](const Inspection& i, int64_t p) { return array_of(i.logits(p)); },
       nb::arg("position"), "The output of the head at a position, float32 [outputs].")
      .def(
          "lens",
          [](const Inspection& i, int64_t first, int64_t end) {
            nb::list layers;
            for (const auto& layer : i.lens(first, end)) {
              nb::list pairs;
              for (const auto& [id, p] : layer) pairs.append(nb::make_tuple(id, p));
              layers.append(pairs);
            }
            return layers;
          },
          nb::arg("first"), nb::arg("end"),
          "Logit lens: for each layer and position the most likely token and its probability.")
      .def("surprise", &Inspection::surprise)
      .def("loss", &Inspection::loss);
}

void add_walks(nb::class_<Inspection>& c) {
  c.def(
       "walk",
       [](const Inspection& i, int64_t token, int64_t layer, int64_t head, const std::string& kind,
          int64_t values) { return i.walk({kind_of(kind), token, layer, head, values}); },
       nb::arg("token"), nb::arg("layer") = 0, nb::arg("head") = 0, nb::arg("kind") = "self",
       nb::arg("values") = 8, "The intermediate results for a token, in their order.")
      .def(
          "vectors",
          [](const Inspection& i, int64_t token, const std::string& kind) {
            std::vector<float> flat;
            const auto rows = i.vectors(kind_of(kind), token);
            for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
            return array_of(std::move(flat), {rows.size(), rows.empty() ? 0 : rows[0].size()});
          },
          nb::arg("token"), nb::arg("kind") = "self",
          "The residual stream before each layer and after the last one, and the output of the "
          "stack, float32 [layers + 2, width].")
      .def(
          "routing",
          [](const Inspection& i, int64_t layer, const std::string& kind) {
            nb::list tokens;
            for (const auto& chosen : i.routing(kind_of(kind), layer)) {
              nb::list pairs;
              for (const auto& [expert, weight] : chosen)
                pairs.append(nb::make_tuple(expert, weight));
              tokens.append(pairs);
            }
            return tokens;
          },
          nb::arg("layer"), nb::arg("kind") = "self", "For each token the pairs (expert, weight).")
      .def(
          "sizes",
          [](const Inspection& i, bool gradients, const std::string& kind) {
            return i.sizes(kind_of(kind), gradients);
          },
          nb::arg("gradients") = false, nb::arg("kind") = "self")
      .def(
          "save",
          [](const Inspection& i, const std::string& path, int64_t layer, const std::string& kind) {
            i.save(path, kind_of(kind), layer);
          },
          nb::arg("path"), nb::arg("layer") = 0, nb::arg("kind") = "self");
}

void add_circuits(nb::class_<Inspection>& c) {
  c.def(
       "strongest_neurons",
       [](const Inspection& i, int64_t token, int64_t count, const std::string& kind) {
         nb::list layers;
         for (const auto& layer : study::strongest_neurons(i, kind_of(kind), token, count)) {
           nb::list neurons;
           for (const study::Neuron& n : layer)
             neurons.append(nb::make_tuple(n.neuron, n.activation, pairs_of(n.promoted)));
           layers.append(neurons);
         }
         return layers;
       },
       nb::arg("token"), nb::arg("count") = 8, nb::arg("kind") = "self",
       "For each layer (neuron, activation, [(token, value)]): what it adds to the logits.")
      .def(
          "attribute_logits",
          [](const Inspection& i, int64_t token, int32_t one, int32_t other) {
            const study::LogitAttribution a = study::attribute_logits(i, token, one, other);
            nb::dict parts;
            parts["difference"] = a.difference;
            parts["embedding"] = a.embedding;
            parts["biases"] = a.biases;
            parts["heads"] = a.heads;
            parts["recurrence"] = a.recurrence;
            parts["cross"] = a.cross;
            parts["feed_forward"] = a.feed_forward;
            return parts;
          },
          nb::arg("token"), nb::arg("one"), nb::arg("other"),
          "The difference of the logits of two tokens, as a sum over the parts of the model.")
      .def(
          "patch_differences",
          [](const Inspection& into, const Inspection& from, int32_t one, int32_t other) {
            const auto found = study::patch_differences(into, from, one, other);
            return nb::make_tuple(found.into, found.from, found.patched);
          },
          nb::arg("source"), nb::arg("one"), nb::arg("other"),
          "Activation patching: (difference here, in `source`, [layers][tokens] if the residual "
          "stream is that of `source`).")
      .def(
          "steer",
          [](const Inspection& i, const Inspection& toward, int64_t layer, double strength,
             int64_t tokens) { return study::steer(i, toward, {layer, strength, tokens}); },
          nb::arg("toward"), nb::arg("layer"), nb::arg("strength") = 1.0, nb::arg("tokens") = 16,
          nb::call_guard<nb::gil_scoped_release>(),
          "Continues the text while a direction is added to the residual stream; returns ids.");
}

void add_head_circuits(nb::class_<Inspection>& c) {
  c.def(
       "head_circuit",
       [](const Inspection& i, int64_t layer, int64_t head, int64_t count,
          const std::string& kind) {
         const auto found = study::head_circuit(i, kind_of(kind), layer, head, count);
         nb::list sought, written;
         for (const auto& each : found.sought) sought.append(pairs_of(each));
         for (const auto& each : found.written) written.append(pairs_of(each));
         nb::dict parts;
         parts["scores"] = found.scores;
         parts["sought"] = sought;
         parts["written"] = written;
         return parts;
       },
       nb::arg("layer"), nb::arg("head"), nb::arg("count") = 8, nb::arg("kind") = "self",
       "The QK and OV circuits of a head.")
      .def(
          "rotary_angles",
          [](const Inspection& i, int64_t layer, const std::string& kind) {
            auto found = study::rotary_angles(i, kind_of(kind), layer);
            const auto pairs = static_cast<size_t>(found.pairs);
            const size_t tokens = pairs == 0 ? 0 : found.cosines.size() / pairs;
            return nb::make_tuple(array_of(std::move(found.cosines), {tokens, pairs}),
                                  array_of(std::move(found.sines), {tokens, pairs}), found.halves);
          },
          nb::arg("layer"), nb::arg("kind") = "self", "(cosines, sines, halves).");
}

}  // namespace

study::InspectInput input_of(const std::variant<std::string, std::vector<int32_t>>& text,
                             const std::variant<std::string, std::vector<int32_t>>& target,
                             const Heads& muted) {
  study::InspectInput input;
  if (const auto* const ids = std::get_if<1>(&text))
    input.ids = *ids;
  else
    input.text = std::get<0>(text);
  if (const auto* const ids = std::get_if<1>(&target))
    input.target_ids = *ids;
  else
    input.target = std::get<0>(target);
  for (const auto& [kind, layer, head] : muted) input.muted.push_back({kind_of(kind), layer, head});
  return input;
}

void add_inspection(nb::module_& module) {
  add_traces(module);
  add_values(module);
  nb::class_<Inspection> c(module, "Inspection",
                           "The intermediate results of a model on one text.");
  c.def(
       "__init__",
       [](Inspection* self, const model::Model& model, const TextOrIds& text,
          const TextOrIds& target, const Heads& mute,
          const std::vector<std::tuple<std::string, int64_t, int64_t>>& mute_neurons) {
         study::InspectInput input = input_of(text, target, mute);
         for (const auto& [kind, layer, neuron] : mute_neurons)
           input.muted_neurons.push_back({kind_of(kind), layer, neuron});
         new (self) Inspection(call([=] { return Inspection(model, input); }));
       },
       nb::arg("model"), nb::arg("text"), nb::arg("target") = "", nb::arg("mute") = Heads(),
       nb::arg("mute_neurons") = Heads())
      .def_prop_ro("tokens", [](const Inspection& i) { return i.tokens(); })
      .def_prop_ro("source", [](const Inspection& i) { return i.source(); });
  add_maps(c);
  add_predictions(c);
  add_walks(c);
  add_circuits(c);
  add_head_circuits(c);
  module.def(
      "induction_scores",
      [](const model::Model& model, uint64_t seed) {
        return call([=] { return study::induction_scores(model, seed); });
      },
      nb::arg("model"), nb::arg("seed") = 0, "Induction scores of the heads, [layers][heads].");
  module.def(
      "token_texts",
      [](const model::Model& model, const std::vector<int32_t>& ids) {
        std::vector<std::string> texts;
        for (const auto& token : study::token_texts(model, ids)) texts.push_back(token.text);
        return texts;
      },
      nb::arg("model"), nb::arg("ids"), "Returns the texts of ids, to display.");
}

}  // namespace fovea::python
