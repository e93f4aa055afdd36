// Layers, models and optimisers for loops of one's own (fovea/nn).

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/error.h"
#include "fovea/nn.h"
#include "keywords.h"
#include "tensors.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using nn::Layer;
using nn::NamedParameter;
using nn::Optimizer;
using nn::Parameter;
using nn::Pass;
using nn::Transformer;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

using Named = std::vector<std::pair<std::string, std::shared_ptr<Parameter>>>;

Named named(const std::vector<NamedParameter>& parameters) {
  Named pairs;
  for (const NamedParameter& each : parameters) pairs.emplace_back(each.name, each.parameter);
  return pairs;
}

std::vector<NamedParameter> parameters_of(const Named& pairs) {
  std::vector<NamedParameter> parameters;
  for (const auto& [name, parameter] : pairs) parameters.push_back({name, parameter});
  return parameters;
}

// A hook receives the name, the layer and the value, and may return another one.
void set_hook(Pass& pass, const nb::object& hook, const std::vector<std::string>& names) {
  if (hook.is_none()) return;
  pass.hooked = names;
  pass.hook = [function = shared(hook)](std::string_view name, int64_t layer, Tensor& value) {
    const nb::gil_scoped_acquire locked;
    const nb::object changed = (*function)(nb::str(name.data(), name.size()), layer, value);
    if (!changed.is_none()) value = nb::cast<Tensor>(changed);
  };
}

void add_pass(nb::module_& m) {
  nb::class_<Parameter>(m, "Parameter", "A tensor that training changes.")
      .def(
          "__init__",
          [](Parameter* self, const Tensor& value, bool trainable, bool decays) {
            new (self) Parameter{value, trainable, decays};
          },
          nb::arg("value"), nb::arg("trainable") = true, nb::arg("decays") = true)
      .def_rw("value", &Parameter::value)
      .def_rw("trainable", &Parameter::trainable)
      .def_rw("decays", &Parameter::decays);
  nb::class_<Pass>(m, "Pass", "What a pass asks of layers.")
      .def(
          "__init__",
          [](Pass* self, const std::string& compute, bool training, uint64_t seed, uint64_t step,
             const std::optional<Mask>& mask, const nb::object& hook,
             const std::vector<std::string>& hooked) {
            Pass pass{dtype_of(compute), training, seed, step, mask.value_or(Mask())};
            set_hook(pass, hook, hooked);
            new (self) Pass(std::move(pass));
          },
          nb::kw_only(), nb::arg("compute") = "float32", nb::arg("training") = false,
          nb::arg("seed") = 1, nb::arg("step") = 0, nb::arg("mask") = nb::none(),
          nb::arg("hook") = nb::none(), nb::arg("hooked") = std::vector<std::string>(),
          "compute: float32 or bfloat16, of the operands of products. hook(name, layer, value) "
          "receives the intermediate results in `hooked`, and may return other tensors.")
      .def_rw("training", &Pass::training)
      .def_rw("step", &Pass::step);
  m.def(
      "values", [](const Named& named) { return nn::values(parameters_of(named)); },
      nb::arg("parameters"), "The values of parameters by their names, for write_safetensors().");
  m.def(
      "assign",
      [](const Named& named, const std::map<std::string, Tensor>& values) {
        nn::assign(parameters_of(named), values);
      },
      nb::arg("parameters"), nb::arg("values"), "Copies values into parameters by their names.");
}

// A layer of one's own: function(x, pass) -> Tensor.
Layer layer_of(const nb::object& function, const Named& parameters) {
  return {[kept = shared(function)](const Tensor& x, const Pass& pass) {
            const nb::gil_scoped_acquire locked;
            return nb::cast<Tensor>((*kept)(x, pass));
          },
          parameters_of(parameters)};
}

const model::StackSpec& stack_of(const model::Spec& spec) {
  return spec.decoder ? *spec.decoder : *spec.encoder;
}

model::NormSpec norm_spec(const std::string& kind, float epsilon, bool bias) {
  using enum model::NormKind;
  return {
      .kind = one_of<model::NormKind>("kind", kind, {{"layer", layer}, {"rms", rms}, {"dyt", dyt}}),
      .epsilon = epsilon,
      .bias = bias};
}

void add_layer_functions(nb::module_& m) {
  m.def("linear", &nn::linear, nb::arg("inputs"), nb::arg("outputs"), nb::arg("bias"),
        nb::arg("seed"), nb::arg("deviation") = 0.02f, "y = x weight^T + bias.");
  m.def(
      "norm",
      [](int64_t width, const std::string& kind, float epsilon, bool bias) {
        return nn::norm(norm_spec(kind, epsilon, bias), width);
      },
      nb::arg("width"), nb::arg("kind") = "layer", nb::arg("epsilon") = 1e-5f,
      nb::arg("bias") = true, "LayerNorm (layer), RMSNorm (rms) or DyT (dyt).");
  m.def(
      "attention",
      [](const model::Spec& spec, uint64_t seed) {
        return nn::attention(stack_of(spec), spec.width, spec.context, seed);
      },
      nb::arg("spec"), nb::arg("seed"),
      "Self-attention of the stack of `spec`, without norms and residual.   x [B, T, C] -> the "
      "same");
  m.def(
      "feed_forward",
      [](const model::Spec& spec, uint64_t seed) {
        return nn::feed_forward(stack_of(spec), spec.width, seed);
      },
      nb::arg("spec"), nb::arg("seed"), "A feed-forward layer or a mixture of experts.");
  m.def(
      "stack",
      [](const model::Spec& spec, uint64_t seed) {
        return nn::stack(stack_of(spec), spec.width, spec.context, spec.decoder.has_value(), seed,
                         spec.dropout);
      },
      nb::arg("spec"), nb::arg("seed"),
      "All layers of the decoder or the encoder of `spec`.   x [B, T, C] -> the same");
  m.def("sequence", &nn::sequence, nb::arg("layers"), "All layers after one another.");
}

void add_layer(nb::module_& m) {
  nb::class_<Layer>(m, "Layer", "A function of a tensor, with parameters.")
      .def(
          "__init__",
          [](Layer* self, const nb::object& function, const Named& parameters) {
            new (self) Layer(layer_of(function, parameters));
          },
          nb::arg("function"), nb::arg("parameters") = Named(),
          "A layer of one's own: function(x, pass) returns a tensor; `parameters`: the pairs "
          "(name, "
          "Parameter) that it reads.")
      .def(
          "__call__",
          [](const Layer& layer, const Tensor& x, const std::optional<Pass>& pass) {
            return layer(x, pass.value_or(Pass()));
          },
          nb::arg("x"), nb::arg("pass_") = nb::none(), Unlocked())
      .def_prop_ro("parameters", [](const Layer& layer) { return named(layer.parameters()); });
  add_layer_functions(m);
}

void add_transformer(nb::module_& m) {
  nb::class_<Transformer>(m, "Transformer", "A whole model of tokens, for loops of one's own.")
      .def(nb::init<const model::Spec&, uint64_t>(), nb::arg("spec"), nb::arg("seed"),
           "Random weights.")
      .def(nb::init<const model::Model&>(), nb::arg("model"), "A copy of a model's weights.")
      .def_prop_ro("spec", [](const Transformer& t) { return t.spec(); })
      .def_prop_ro("parameters", [](const Transformer& t) { return named(t.parameters()); })
      .def(
          "encode",
          [](const Transformer& t, const Tensor& ids, const std::optional<Pass>& pass) {
            return t.encode(ids, pass.value_or(Pass()));
          },
          nb::arg("ids"), nb::arg("pass_") = nb::none(), Unlocked(),
          "The output of the encoder.   ids int32 [B, S] -> [B, S, C]")
      .def(
          "hidden",
          [](const Transformer& t, const Tensor& ids, const std::optional<Pass>& pass,
             const MaybeTensor& memory) {
            return t.hidden(ids, pass.value_or(Pass()), or_empty(memory));
          },
          nb::arg("ids"), nb::arg("pass_") = nb::none(), nb::arg("memory") = nb::none(), Unlocked(),
          "The output of the decoder, or of the encoder of a model without one.   ids [B, T] -> "
          "[B, T, "
          "C]")
      .def("logits", &Transformer::logits, nb::arg("hidden"), Unlocked(),
           "The outputs of the head.   hidden [B, T, C] -> float32 [B, T, V] or [B, V]")
      .def("loss", &Transformer::loss, nb::arg("hidden"), nb::arg("labels"), Unlocked(),
           "The mean cross-entropy of the labels that are at least 0 -> float64 [1]");
  m.def(
      "with_weights",
      [](const model::Model& model, const Transformer& weights) {
        return model.with_weights(weights);
      },
      nb::arg("model"), nb::arg("weights"));
}

train::OptimizerKind optimizer_of(const std::string& name) {
  using enum train::OptimizerKind;
  return one_of<train::OptimizerKind>(
      "optimizer", name,
      {{"adamw", adamw}, {"sgd", sgd}, {"lion", lion}, {"adafactor", adafactor}, {"muon", muon}});
}

void add_optimizer(nb::module_& m) {
  nb::class_<Optimizer>(m, "Optimizer", "Updates parameters by the gradients of backward().")
      .def(
          "__init__",
          [](Optimizer* self, const Named& parameters, const std::string& kind, double beta1,
             double beta2, double epsilon, double weight_decay, double clip, uint64_t seed) {
            train::OptimizerOptions options;
            options.choice.kind = optimizer_of(kind);
            options.beta1 = beta1;
            options.beta2 = beta2;
            options.epsilon = epsilon;
            options.weight_decay = weight_decay;
            options.clip = clip;
            options.seed = seed;
            new (self) Optimizer(parameters_of(parameters), options);
          },
          nb::arg("parameters"), nb::arg("kind") = "adamw", nb::kw_only(), nb::arg("beta1") = 0.9,
          nb::arg("beta2") = 0.99, nb::arg("epsilon") = 1e-8, nb::arg("weight_decay") = 0.1,
          nb::arg("clip") = 1.0, nb::arg("seed") = 0,
          "kind: adamw, sgd, lion, adafactor or muon. weight_decay: of the parameters that decay. "
          "clip: the maximum norm of all gradients together; 0 = unlimited.")
      .def("step", &Optimizer::step, nb::arg("rate"), Unlocked(),
           "Takes a step with a learning rate, clears the gradients, and returns their norm.")
      .def_prop_ro("steps", &Optimizer::steps)
      .def("state", &Optimizer::state)
      .def("restore", &Optimizer::restore, nb::arg("state"), nb::arg("steps"));
}

}  // namespace

void add_layers(nb::module_& module) {
  nb::module_ layers = module.def_submodule("nn", "Layers, models and optimisers.");
  add_pass(layers);
  add_layer(layers);
  add_transformer(layers);
  add_optimizer(layers);
}

}  // namespace fovea::python
