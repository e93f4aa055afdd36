// The differentiable ops, with the formulas of fovea/core/ops.h.

#include "fovea/core/ops.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "call.h"
#include "fovea/core/autograd.h"
#include "tensors.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using Unlocked = nb::call_guard<nb::gil_scoped_release>;

Activation activation_of(const std::string& name) {
  using enum Activation;
  return one_of<Activation>("kind", name,
                            {{"relu", relu},
                             {"gelu", gelu},
                             {"gelu_tanh", gelu_tanh},
                             {"silu", silu},
                             {"tanh", tanh},
                             {"quick_gelu", quick_gelu},
                             {"relu_squared", relu_squared},
                             {"sigmoid", sigmoid}});
}

DType or_same(const std::optional<std::string>& name, const Tensor& x) {
  return name ? dtype_of(*name) : x.dtype();
}

void add_products(nb::module_& m) {
  m.def(
      "linear",
      [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias,
         const std::optional<std::string>& dtype) {
        return linear(x, weight, or_empty(bias), or_same(dtype, x));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("dtype") = nb::none(),
      Unlocked(), "y = x weight^T + bias.   x [..., C], weight [N, C], bias [N] -> [..., N]");
  m.def("embedding", &embedding, nb::arg("ids"), nb::arg("table"), nb::arg("padding") = -1,
        Unlocked(), "y[...] = table[ids[...]].   ids int32 [...], table [V, C] -> [..., C]");
  m.def("gather", &gather, nb::arg("rows"), nb::arg("x"), Unlocked(),
        "y[...] = x[rows[...]].   rows int32 [...], x [R, C] -> [..., C]");
}

void add_norms(nb::module_& m) {
  m.def(
      "layer_norm",
      [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias, float epsilon,
         const std::optional<std::string>& dtype) {
        return layer_norm(x, weight, or_empty(bias), epsilon, or_same(dtype, x));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias") = nb::none(), nb::arg("epsilon") = 1e-5f,
      nb::arg("dtype") = nb::none(), Unlocked(),
      "y = (x - mean) / sqrt(variance + epsilon) * weight + bias.   x [..., C] -> [..., C]");
  m.def(
      "rms_norm",
      [](const Tensor& x, const Tensor& weight, float epsilon,
         const std::optional<std::string>& dtype) {
        return rms_norm(x, weight, epsilon, or_same(dtype, x));
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("epsilon") = 1e-6f, nb::arg("dtype") = nb::none(),
      Unlocked(), "y = x / sqrt(mean(x^2) + epsilon) * weight.   x [..., C] -> [..., C]");
  m.def(
      "dynamic_tanh",
      [](const Tensor& x, const Tensor& alpha, const Tensor& weight, const MaybeTensor& bias,
         const std::optional<std::string>& dtype) {
        return dynamic_tanh(x, alpha, weight, or_empty(bias), or_same(dtype, x));
      },
      nb::arg("x"), nb::arg("alpha"), nb::arg("weight"), nb::arg("bias") = nb::none(),
      nb::arg("dtype") = nb::none(), Unlocked(),
      "y = weight * tanh(alpha * x) + bias.   x [..., C], alpha [1] -> [..., C]");
}

// The options of attention in Python: the parts of a mask and the dropout.
void add_attention_options(nb::module_& m) {
  nb::class_<Dropout>(m, "Dropout", "Inverted dropout, whose random numbers depend on the fields.")
      .def(
          "__init__",
          [](Dropout* self, float probability, uint64_t seed, uint32_t substream, uint64_t step,
             int64_t units, int64_t first_unit) {
            new (self) Dropout{probability, seed, substream, step, units, first_unit};
          },
          nb::arg("probability"), nb::arg("seed") = 0, nb::arg("substream") = 0,
          nb::arg("step") = 0, nb::arg("units") = 1, nb::arg("first_unit") = 0)
      .def_ro("probability", &Dropout::probability)
      .def_rw("step", &Dropout::step);
  nb::class_<Mask>(m, "Mask", "Which keys each query sees: intervals, not a matrix.")
      .def(
          "__init__",
          [](Mask* self, bool causal, int64_t first_query, int64_t window, int64_t global,
             int64_t prefix, const std::vector<std::pair<int64_t, int64_t>>& valid,
             const std::optional<std::vector<std::vector<int64_t>>>& documents) {
            Mask mask;
            mask.causal = causal;
            mask.first_query = first_query;
            mask.window = window;
            mask.global = global;
            mask.prefix = prefix;
            for (const auto& [begin, end] : valid) mask.valid.push_back({begin, end});
            if (documents) mask.documents = std::make_shared<const DocumentStarts>(*documents);
            new (self) Mask(std::move(mask));
          },
          nb::kw_only(), nb::arg("causal") = false, nb::arg("first_query") = 0,
          nb::arg("window") = 0, nb::arg("global_tokens") = 0, nb::arg("prefix") = 0,
          nb::arg("valid") = std::vector<std::pair<int64_t, int64_t>>(),
          nb::arg("documents") = nb::none(),
          "valid: for each batch row, the keys [begin, end) that are not padding. documents: for "
          "each batch row, the positions at which its documents begin.")
      .def_ro("causal", &Mask::causal)
      .def_ro("window", &Mask::window);
  nb::class_<AttentionOptions>(m, "AttentionOptions", "What attention takes beside tensors.")
      .def(
          "__init__",
          [](AttentionOptions* self, float scale, const std::optional<Mask>& mask,
             const std::optional<Dropout>& dropout, int64_t keys, float softcap,
             const MaybeTensor& bias) {
            new (self)
                AttentionOptions{scale,   mask.value_or(Mask()), dropout.value_or(Dropout()), keys,
                                 softcap, or_empty(bias)};
          },
          nb::kw_only(), nb::arg("scale") = 1.0f, nb::arg("mask") = nb::none(),
          nb::arg("dropout") = nb::none(), nb::arg("keys") = -1, nb::arg("softcap") = 0.0f,
          nb::arg("bias") = nb::none());
}

void add_attention(nb::module_& m) {
  add_attention_options(m);
  m.def("attention", &attention, nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("options"),
        Unlocked(),
        "y = softmax(scale q k^T, over the keys that the mask allows) v.   q [B, T, H, D], k [B, "
        "S, G, D], v [B, S, G, D'] -> [B, T, H, D']");
  m.def("attention_weights", &attention_weights, nb::arg("q"), nb::arg("k"), nb::arg("options"),
        Unlocked(), "The weights of attention; not differentiable.   -> [B, H, T, S]");
  m.def("attention_scores", &attention_scores, nb::arg("q"), nb::arg("k"), nb::arg("options"),
        Unlocked(), "The inputs of the softmax of attention; not differentiable. -> [B, H, T, S]");
  m.def("weighted_values", &weighted_values, nb::arg("weights"), nb::arg("v"), Unlocked(),
        "The sum of values by weights.   weights [B, H, T, S], v [B, S, G, D] -> [B, T, H, D]");
  m.def(
      "rotate",
      [](const Tensor& x, const Tensor& cosines, const Tensor& sines, const std::string& pairing) {
        return rotate(
            x, cosines, sines,
            one_of<Pairing>("pairing", pairing,
                            {{"halves", Pairing::halves}, {"neighbours", Pairing::neighbours}}));
      },
      nb::arg("x"), nb::arg("cosines"), nb::arg("sines"), nb::arg("pairing") = "halves", Unlocked(),
      "Rotary positions.   x [B, T, H, D]; cosines, sines float32 [T, R/2] -> [B, T, H, D]");
  m.def("concat_shared", &concat_shared, nb::arg("shared"), nb::arg("own"), Unlocked(),
        "shared [B, T, 1, N], own [B, T, H, D] -> [B, T, H, N + D]");
}

void add_elementwise(nb::module_& m) {
  m.def(
      "activation",
      [](const Tensor& x, const std::string& kind) { return activation(x, activation_of(kind)); },
      nb::arg("x"), nb::arg("kind"), Unlocked(),
      "relu, gelu, gelu_tanh, silu, tanh, quick_gelu, relu_squared or sigmoid, elementwise.");
  m.def(
      "gated_activation",
      [](const Tensor& x, const Tensor& factor, const std::string& kind) {
        return gated_activation(x, factor, activation_of(kind));
      },
      nb::arg("x"), nb::arg("factor"), nb::arg("kind"), Unlocked(), "f(x) * factor, elementwise.");
  m.def("add", &add, nb::arg("a"), nb::arg("b"), Unlocked(), "a + b, elementwise.");
  m.def("subtract", &subtract, nb::arg("a"), nb::arg("b"), Unlocked(), "a - b, elementwise.");
  m.def("multiply", &multiply, nb::arg("a"), nb::arg("b"), Unlocked(), "a * b, elementwise.");
  m.def("minimum", &minimum, nb::arg("a"), nb::arg("b"), Unlocked(), "The smaller, elementwise.");
  m.def("clip", &clip, nb::arg("x"), nb::arg("least"), nb::arg("most"), Unlocked(),
        "min(max(x, least), most), elementwise.");
  m.def("scale", &scale, nb::arg("x"), nb::arg("factor"), Unlocked(), "factor * x.");
  m.def("shift", &shift, nb::arg("x"), nb::arg("offset"), Unlocked(), "x + offset.");
  m.def("softcap", &softcap, nb::arg("x"), nb::arg("cap"), Unlocked(), "cap * tanh(x / cap).");
  m.def(
      "scale_columns",
      [](const Tensor& x, const Tensor& factors, const MaybeTensor& bias) {
        return scale_columns(x, factors, or_empty(bias));
      },
      nb::arg("x"), nb::arg("factors"), nb::arg("bias") = nb::none(), Unlocked(),
      "x * factors + bias, column by column.   x [..., C], factors [C], bias [C] -> [..., C]");
  m.def("exp", &exp, nb::arg("x"), Unlocked(), "e^x, as float32.");
  m.def("log", &log, nb::arg("x"), Unlocked(), "The natural logarithm, as float32.");
  m.def("log_sigmoid", &log_sigmoid, nb::arg("x"), Unlocked(), "-log(1 + e^-x), as float32.");
  m.def("dropout", &dropout, nb::arg("x"), nb::arg("options"), Unlocked(), "Inverted dropout.");
  m.def(
      "cast", [](const Tensor& x, const std::string& dtype) { return cast(x, dtype_of(dtype)); },
      nb::arg("x"), nb::arg("dtype"), Unlocked(), "x in another type, with a gradient.");
}

void add_sums(nb::module_& m) {
  m.def("sum", &sum, nb::arg("x"), Unlocked(), "The sum of all elements -> [1]");
  m.def("mean", &mean, nb::arg("x"), Unlocked(), "The mean of all elements -> [1]");
  m.def("softmax", &softmax, nb::arg("x"), Unlocked(), "Softmax over the last axis.");
  m.def("divide_by_sum", &divide_by_sum, nb::arg("x"), Unlocked(),
        "x / (sum over the last axis + 1e-20), for x of at least 0.");
}

void add_losses(nb::module_& m) {
  m.def("cross_entropy", &cross_entropy, nb::arg("logits"), nb::arg("targets"),
        nb::arg("divisor") = 0.0, nb::arg("smoothing") = 0.0f, Unlocked(),
        "The sum of -log softmax(logits[r])[targets[r]] / divisor (0 = the mean); targets below 0 "
        "are ignored.   logits [..., V], targets int32 [...] -> float64 [1]");
  m.def(
      "linear_cross_entropy",
      [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias, const Tensor& targets) {
        return linear_cross_entropy(x, weight, or_empty(bias), targets);
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias").none(), nb::arg("targets"), Unlocked(),
      "cross_entropy(linear(x, weight, bias), targets), without storing all logits.");
  m.def("log_probability", &log_probability, nb::arg("logits"), nb::arg("targets"), Unlocked(),
        "log softmax(logits[r])[targets[r]]; 0 where a target is below 0.   -> float32 [...]");
  m.def(
      "linear_log_probability",
      [](const Tensor& x, const Tensor& weight, const MaybeTensor& bias, const Tensor& targets) {
        return linear_log_probability(x, weight, or_empty(bias), targets);
      },
      nb::arg("x"), nb::arg("weight"), nb::arg("bias").none(), nb::arg("targets"), Unlocked(),
      "log_probability(linear(x, weight, bias), targets), without storing all logits.");
}

void add_sequences(nb::module_& m) {
  m.def("concat_tokens", &concat_tokens, nb::arg("first"), nb::arg("second"), Unlocked(),
        "first [B, N, C] or [1, N, C], second [B, T, C] -> [B, N + T, C]");
  m.def("unfold", &unfold, nb::arg("x"), nb::arg("kernel"), nb::arg("stride"), nb::arg("padding"),
        Unlocked(), "Windows of a sequence, so that a convolution is a linear layer.");
  m.def("patches", &patches, nb::arg("image"), nb::arg("size"), Unlocked(),
        "image [B, channels, height, width] -> [B, squares, channels * size * size]");
  m.def("pick", &pick, nb::arg("x"), nb::arg("columns"), Unlocked(),
        "y[r, j] = x[r, columns[r, j]].   x [R, C], columns int32 [R, k] -> [R, k]");
}

// An op of one's own: y, and a function that receives dy and returns the gradients of the inputs,
// or None for those without one.
Tensor recorded(const Tensor& y, const std::vector<Tensor>& inputs, const nb::object& backward) {
  const Shared function = shared(backward);
  return record(y, inputs, [function, inputs](const Tensor& dy, Gradients& d) {
    const nb::gil_scoped_acquire locked;
    nb::object given = (*function)(dy);
    if (nb::isinstance<Tensor>(given)) given = nb::make_tuple(given);
    const auto gradients = nb::cast<std::vector<MaybeTensor>>(given);
    if (gradients.size() != inputs.size())
      throw Error(ErrorKind::InvalidArgument,
                  fmt::format("record: backward returned {} gradients; expected {}, one for each "
                              "input",
                              gradients.size(), inputs.size()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!gradients[i] || !d.wants(inputs[i])) continue;
      if (gradients[i]->shape() != inputs[i].shape())
        throw Error(ErrorKind::InvalidArgument,
                    fmt::format("record: a gradient is {}; expected {}, the shape of its input",
                                describe(gradients[i]->shape()), describe(inputs[i].shape())));
      d.pass(inputs[i], *gradients[i]);
    }
  });
}

}  // namespace

void add_ops(nb::module_& module) {
  nb::module_ ops = module.def_submodule("ops", "The differentiable ops.");
  add_products(ops);
  add_norms(ops);
  add_attention(ops);
  add_elementwise(ops);
  add_sums(ops);
  add_losses(ops);
  add_sequences(ops);
  ops.def("record", &recorded, nb::arg("y"), nb::arg("inputs"), nb::arg("backward"),
          "Records an op of one's own: backward(dy) returns the gradient of each input, or None. "
          "Returns y with a gradient.");
}

}  // namespace fovea::python
