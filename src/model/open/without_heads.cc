#include <algorithm>

#include "base/fields.h"
#include "fovea/core/options.h"
#include "fovea/model/model.h"
#include "open/model_parts.h"

namespace fovea::model {
namespace {

Stack& stack_of(Transformer& model, AttentionKind kind) {
  const bool both = model.spec.encoder && model.spec.decoder;
  check_field(kind == AttentionKind::self || both, "look",
              "encoder and cross need a model with an encoder and a decoder; expected self");
  const bool decoder = model.spec.decoder && kind != AttentionKind::encoder;
  return decoder ? model.decoder : model.encoder;
}

// Sets the factors of a head to 0.
void mute(Tensor& factors, int64_t heads, int64_t width, int64_t head) {
  check_field(head >= 0 && head < heads, "head", "{}; expected 0 to {}", head, heads - 1);
  if (!factors) factors = full({heads * width}, 1);
  std::fill_n(factors.data_as<float>() + head * width, width, 0.0f);
}

}  // namespace

void visit(HeadIndex& p, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000;  // the model limits both further
  v.choice({"look",
            "self-attention, self-attention of the encoder, or cross-attention from the decoder to "
            "the encoder"},
           p.kind, {"self", "encoder", "cross"});
  v.integer({"layer", "layer, counted from 0"}, p.layer, 0, kMost);
  v.integer({"head", "head, counted from 0"}, p.head, 0, kMost);
}

Model Model::without_heads(const std::vector<HeadIndex>& muted) const {
  auto parts = std::make_shared<ModelParts>(*parts_);
  for (const HeadIndex& head : muted) {
    Stack& stack = stack_of(parts->transformer, head.kind);
    const int64_t layers = stack.layers;
    check(!stack.shares_weights(),
          "layer: {} has the weights of other layers; expected a model "
          "whose layers have their own",
          head.layer);
    check_field(head.layer >= 0 && head.layer < layers, "layer", "{}; expected 0 to {}", head.layer,
                layers - 1);
    Block& block = stack.blocks[static_cast<size_t>(head.layer)];
    if (head.kind != AttentionKind::cross)
      check_field(block.attends(), "layer", "{} is recurrent; expected one with heads", head.layer);
    auto* const latent = block.mixer_as<LatentAttention>();
    if (head.kind != AttentionKind::cross && latent != nullptr) {
      const AttentionSpec& spec = latent->attention;
      mute(latent->head_factors, spec.heads, spec.value_width, head.head);
    } else {
      Attention& attention =
          head.kind == AttentionKind::cross ? *block.cross : std::get<Attention>(block.mixer);
      mute(attention.head_factors, attention.spec.heads, attention.spec.value_width, head.head);
    }
  }
  return Model(std::move(parts));
}

}  // namespace fovea::model
