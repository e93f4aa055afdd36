#include "fovea/nn/layers.h"

#include "base/error.h"
#include "layers/passes.h"
#include "nn/stack.h"
#include "transformer/transformer.h"

namespace fovea::nn {
namespace {

// Initialises the parameters of `inner`. The layer's function is apply(*inner, x, pass).
template <class Inner, class Apply>
Layer layer_of(std::shared_ptr<Inner> inner, const std::string& name, const model::Initial& how,
               Apply apply) {
  std::vector<NamedParameter> parameters;
  const auto add = [&](const std::string& full, fovea::model::Parameter& p) {
    model::initialise(p, full, static_cast<uint32_t>(parameters.size()), how);
    parameters.push_back({full, std::shared_ptr<Parameter>(inner, &p)});
  };
  inner->each(add, name);
  return {[inner, apply](const Tensor& x, const Pass& pass) {
            InnerPass inside(pass);
            return apply(*inner, x, *inside);
          },
          std::move(parameters)};
}

// Returns the description with its derived defaults.
model::StackSpec checked(const model::StackSpec& stack, int64_t width, int64_t context, bool causal,
                         const model::DropoutSpec& dropout = {}) {
  model::Spec spec;
  spec.vocabulary = 1;
  spec.width = width;
  spec.context = context;
  spec.dropout = dropout;
  spec.decoder.reset();
  if (!causal) spec.head.kind = model::HeadKind::pooled;
  (causal ? spec.decoder : spec.encoder) = stack;
  spec = model::validated(std::move(spec));
  return causal ? *spec.decoder : *spec.encoder;
}

model::StackSpec checked_layer(model::StackSpec stack, int64_t width, int64_t context) {
  if (stack.layers < 1) stack.layers = 1;
  return checked(stack, width, context, stack.causal);
}

struct PositionedAttention {
  model::Positions positions;
  model::Attention attention;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    positions.each(f, name);
    attention.each(f, name);
  }
};

}  // namespace

Layer::Layer(Function function, std::vector<NamedParameter> parameters)
    : function_(std::move(function)), parameters_(std::move(parameters)) {
  check(function_ != nullptr, "layer: no function; expected one");
}

Layer linear(int64_t in, int64_t out, bool bias, uint64_t seed, float deviation) {
  check(in > 0 && out > 0, "linear: widths {} and {}; expected at least 1", in, out);
  return layer_of(
      std::make_shared<fovea::model::Linear>(in, out, bias), "linear",
      {.deviation = deviation, .seed = seed},
      [](const fovea::model::Linear& layer, const Tensor& x, const fovea::model::Pass& pass) {
        return layer(cast(x, pass.compute), pass);
      });
}

Layer norm(const model::NormSpec& spec, int64_t width) {
  check(width > 0, "norm: width {}; expected at least 1", width);
  return layer_of(std::make_shared<fovea::model::Norm>(spec, width), "norm", {.norm = spec},
                  [](const fovea::model::Norm& layer, const Tensor& x, const fovea::model::Pass&) {
                    return layer(x, x.dtype());
                  });
}

Layer attention(const model::StackSpec& spec, int64_t width, int64_t context, uint64_t seed) {
  const model::StackSpec whole = checked_layer(spec, width, context);
  check(model::mixer_of(whole, 0) == model::MixerKind::attention,
        "attention: the first mixer is another one; expected attention");
  auto inner = std::make_shared<PositionedAttention>(
      PositionedAttention{model::Positions(whole, context, width, whole.causal),
                          fovea::model::Attention(whole, width, 0, {})});
  return layer_of(std::move(inner), "attention",
                  {.stack = &whole, .norm = whole.norm, .seed = seed},
                  [causal = whole.causal](const PositionedAttention& layer, const Tensor& x,
                                          const fovea::model::Pass& given) {
                    fovea::model::LayerPass pass(given);
                    pass.mask.causal = causal;
                    layer.positions.prepare(pass, x.dim(1), {}, x.device());
                    const Tensor positioned = layer.positions.add_to(cast(x, DType::f32), {});
                    return layer.attention(cast(positioned, pass.compute), pass);
                  });
}

Layer feed_forward(const model::StackSpec& spec, int64_t width, uint64_t seed) {
  const model::StackSpec whole = checked_layer(spec, width, 1);
  return layer_of(
      std::make_shared<fovea::model::FeedForward>(whole, width, 0), "feed_forward",
      {.stack = &whole, .norm = whole.norm, .seed = seed},
      [](const fovea::model::FeedForward& layer, const Tensor& x, const fovea::model::Pass& pass) {
        return layer(cast(x, pass.compute), pass);
      });
}

Layer stack(const model::StackSpec& spec, int64_t width, int64_t context, bool causal,
            uint64_t seed, const model::DropoutSpec& dropout) {
  const model::StackSpec whole = checked(spec, width, context, causal, dropout);
  auto inner = std::make_shared<model::Stack>(
      whole, dropout, model::StackWidths{.stream = width}, context,
      causal ? model::Stack::Kind::decoder : model::Stack::Kind::encoder);
  return layer_of(std::move(inner), causal ? "decoder" : "encoder",
                  {.stack = &whole, .norm = whole.norm, .seed = seed},
                  [](const model::Stack& layers, const Tensor& x, const fovea::model::Pass& pass) {
                    return layers(x, pass, {});
                  });
}

Layer sequence(const std::vector<Layer>& layers) {
  std::vector<NamedParameter> all;
  for (size_t i = 0; i < layers.size(); ++i)
    for (const auto& [name, parameter] : layers[i].parameters())
      all.push_back({fmt::format("{}.{}", i, name), parameter});
  return {[layers](Tensor x, const Pass& pass) {
            for (const Layer& layer : layers) x = layer(x, pass);
            return x;
          },
          std::move(all)};
}

}  // namespace fovea::nn
