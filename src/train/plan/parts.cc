#include "plan/parts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "base/fields.h"
#include "nn/mixer.h"
#include "spec/mixers.h"
#include "transformer/transformer.h"

namespace fovea::train {
namespace {

constexpr double kMost = 1e18;  // far below the limit of int64_t, far above any real model

enum PartIndex {
  kTokens,
  kTypes,
  kInput,
  kPositions,
  kAttention,
  kScores,
  kLinearAttention,
  kConvolution,
  kRecurrence,
  kCross,
  kFeedForward,
  kRouter,
  kExperts,
  kSharedExperts,
  kNorms,
  kHead,
  kParts
};
constexpr const char* kNames[kParts] = {"token embedding",
                                        "token types",
                                        "input",
                                        "positions",
                                        "attention",
                                        "attention scores",
                                        "linear attention",
                                        "convolution",
                                        "recurrence",
                                        "cross-attention",
                                        "feed-forward",
                                        "router",
                                        "experts",
                                        "shared experts",
                                        "norms",
                                        "head"};

PartIndex part_of(model::MixerKind kind) {
  switch (kind) {
    case model::MixerKind::attention:
    case model::MixerKind::latent: return kAttention;
    case model::MixerKind::gated_delta:
    case model::MixerKind::state_space: return kLinearAttention;
    case model::MixerKind::convolution: return kConvolution;
    default: return kRecurrence;
  }
}

bool contains(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

PartIndex part_of(const std::string& name) {
  if (name == "embedding.type") return kTypes;
  if (name.starts_with("embedding.")) return kTokens;
  if (name.starts_with("input.")) return kInput;
  if (!name.starts_with("encoder.") && !name.starts_with("decoder.")) return kHead;
  if (contains(name, "norm.")) return kNorms;
  if (contains(name, ".cross.")) return kCross;
  for (size_t kind = 0; kind < model::all_mixers().size(); ++kind)
    if (contains(name, fmt::format(".{}.", model::all_mixers()[kind].name)))
      return part_of(static_cast<model::MixerKind>(kind));
  if (contains(name, ".router.")) return kRouter;
  if (contains(name, ".experts.")) return kExperts;
  if (contains(name, ".ffn.shared")) return kSharedExperts;
  if (contains(name, ".ffn.")) return kFeedForward;
  return kPositions;
}

// How often a parameter of equal layers occurs: in how many layers, with how many different
// weights; `chosen`: fraction of the experts that a token uses.
struct Copies {
  int64_t layers = 1, stored = 1;
  double chosen = 1;
  // The number of layers that use the same weights.
  double uses() const { return static_cast<double>(layers) / static_cast<double>(stored); }
};

// Visits a model's parameters and adds each to its part.
class Counter {
 public:
  Counter(const model::Spec& spec, const Lengths& lengths)
      : spec_(spec), lengths_(lengths), parts_(kParts) {
    for (int i = 0; i < kParts; ++i) parts_[static_cast<size_t>(i)].name = kNames[i];
  }

  // Adds a parameter, as each_parameter() describes it.
  void add(const std::string& name, const model::Parameter& p, const Copies& copies) {
    const PartIndex index = part_of(name);
    PlanPart& part = parts_[index];
    const double count =
        static_cast<double>(elements(p.shape)) * static_cast<double>(copies.stored);
    check(static_cast<double>(part.parameters) + count < kMost,
          "spec: {} has more than {} parameters; expected fewer", part.name, kMost);
    const double active = index == kExperts ? count * copies.chosen : count;
    part.parameters += elements(p.shape) * copies.stored;
    part.active += std::llround(active);
    if (p.role == model::Role::matrix || p.role == model::Role::residual_matrix ||
        p.role == model::Role::head_matrix)
      part.flops += 2 * active * copies.uses() * static_cast<double>(readers(name));
  }

  PlanPart& operator[](PartIndex index) { return parts_[index]; }
  std::vector<PlanPart> present() const {
    std::vector<PlanPart> there;
    for (const PlanPart& part : parts_)
      if (part.parameters > 0 || part.flops > 0) there.push_back(part);
    return there;
  }
  // Returns the number of tokens that the head processes.
  int64_t outputs() const {
    const bool one =
        spec_.head.kind == model::HeadKind::pooled || spec_.head.kind == model::HeadKind::sequence;
    return one ? 1 : spec_.decoder ? lengths_.target : lengths_.source;
  }

 private:
  // Returns the number of tokens of a sequence that the matrix `name` processes.
  int64_t readers(const std::string& name) const {
    if (name.starts_with("input.patch."))  // learned tokens have no pixels
      return lengths_.source - spec_.input.class_tokens - spec_.input.registers;
    if (name.starts_with("input.convolution.0.")) return 2 * lengths_.source;
    if (name.starts_with("encoder.") || name.starts_with("input.")) return lengths_.source;
    if (!name.starts_with("decoder.")) return outputs();
    const bool memory = contains(name, ".cross.key.") || contains(name, ".cross.value.");
    return memory ? lengths_.source : lengths_.target;
  }

  const model::Spec& spec_;
  Lengths lengths_;
  std::vector<PlanPart> parts_;
};

// Visits one layer of each kind: layers differ only in whether they are the first, whether they
// have experts, and in their mixer. `f` is as in each_parameter().
template <class Visitor>
void each_of_stack(const model::Spec& spec, const model::StackSpec& stack, model::Stack::Kind kind,
                   const std::string& name, const Visitor& f) {
  struct Alike {
    int64_t layer = 0, count = 0;
  };
  std::map<std::tuple<bool, bool, model::MixerKind>, Alike> kinds;
  const model::ExpertsSpec& experts = stack.ffn.experts;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    const bool dense =
        std::binary_search(experts.dense_layers.begin(), experts.dense_layers.end(), layer);
    const bool first = layer == 0 && stack.layer_groups == 0;
    Alike& alike = kinds[{first, dense, model::mixer_of(stack, layer)}];
    alike.layer = layer;
    ++alike.count;
  }
  const double chosen =
      experts.count == 0 ? 1
                         : static_cast<double>(experts.chosen) / static_cast<double>(experts.count);
  for (const auto& [key, alike] : kinds) {
    model::Block block(stack, {}, spec.width, alike.layer,
                       kind == model::Stack::Kind::decoder_across, 0);
    const int64_t stored = stack.layer_groups > 0 ? stack.layer_groups : alike.count;
    const auto visitor = [&, copies = Copies{alike.count, stored, chosen}](
                             const std::string& parameter, model::Parameter& p) {
      f(parameter, p, copies);
    };
    block.each(visitor, name + ".layer");
  }
}

// Returns the model without its layers, whose number may be large.
model::Transformer without_layers(model::Spec spec) {
  if (spec.encoder) spec.encoder->layers = 0;
  if (spec.decoder) spec.decoder->layers = 0;
  return model::Transformer(spec);
}

// Calls f(name, parameter, copies) for the parameters of the model; those of equal layers are
// visited once.
template <class Visitor>
void each_parameter(const model::Spec& s, const Visitor& f) {
  without_layers(s).each(
      [&](const std::string& name, model::Parameter& p) { f(name, p, Copies()); });
  if (s.encoder) each_of_stack(s, *s.encoder, model::Stack::Kind::encoder, "encoder", f);
  if (!s.decoder) return;
  const auto kind = s.encoder ? model::Stack::Kind::decoder_across : model::Stack::Kind::decoder;
  each_of_stack(s, *s.decoder, kind, "decoder", f);
}

// Calls f(kind, flops) for each layer, with the operations besides the products with matrices.
template <class Visitor>
void each_mixing(const model::StackSpec& stack, int64_t length, bool causal, const Visitor& f) {
  const model::AttentionSpec& a = stack.attention;
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    const model::MixerKind kind = model::mixer_of(stack, layer);
    const auto pairs =
        static_cast<double>(attention_pairs(length, causal, model::window_of(a, layer), a.global));
    f(kind, model::mixer_facts(kind).flops(stack, static_cast<double>(length), pairs));
  }
}

double self_score_flops(const model::StackSpec& stack, int64_t length, bool causal) {
  double sum = 0;
  each_mixing(stack, length, causal, [&](model::MixerKind kind, double flops) {
    if (part_of(kind) == kAttention) sum += flops;
  });
  return sum;
}

}  // namespace

int64_t attention_pairs(int64_t length, bool causal, int64_t window, int64_t global) {
  int64_t seen = length * (length + 1) / 2;  // keys up to the query itself
  if (const int64_t most = length - window; window > 0 && most > 0) {
    // Query `window - 1 + n` has n keys before its window, n = 1 .. most; of these it sees the
    // global ones.
    const int64_t g = std::min(global, most);
    seen += g * (g + 1) / 2 + (most - g) * g - most * (most + 1) / 2;
  }
  return causal ? seen : 2 * seen - length;  // both directions, with the query itself once
}

Lengths lengths_of(const model::Spec& s, int64_t length, int64_t source_length) {
  const auto chosen = [](const char* field, int64_t given, int64_t most) {
    check_field(given >= 0 && given <= most, field,
                "{} tokens; expected 1 to {}, the model's context", given, most);
    return given == 0 ? most : given;
  };
  Lengths lengths;
  if (s.decoder) lengths.target = chosen("length", length, s.context);
  if (!s.encoder) return lengths;
  const bool text = s.input.kind == model::InputKind::tokens;
  const int64_t most = text ? s.context : model::Input(s.input, s.width).length();
  const int64_t given = s.decoder ? source_length : length;
  const char* const field = s.decoder ? "source_length" : "length";
  check_field(text || given == 0 || given == most, field,
              "{}; expected {}, the length of the input", given, most);
  lengths.source = chosen(field, given, most);
  return lengths;
}

double score_flops(const model::Spec& s, const Lengths& lengths) {
  double flops = 0;
  if (s.encoder) flops += self_score_flops(*s.encoder, lengths.source, false);
  if (!s.decoder) return flops;
  flops += self_score_flops(*s.decoder, lengths.target, s.decoder->causal);
  const auto pairs = static_cast<double>(lengths.source * lengths.target);
  return flops +
         static_cast<double>(s.decoder->layers) * model::Attention::flops(*s.decoder, 0, pairs);
}

std::vector<PlanPart> parts_of(const model::Spec& s, const Lengths& lengths) {
  Counter counter(s, lengths);
  each_parameter(s, [&](const std::string& name, const model::Parameter& p, const Copies& copies) {
    counter.add(name, p, copies);
  });
  counter[kScores].flops = score_flops(s, lengths);
  if (s.decoder)
    each_mixing(*s.decoder, lengths.target, s.decoder->causal,
                [&](model::MixerKind kind, double flops) {
                  if (part_of(kind) != kAttention) counter[part_of(kind)].flops += flops;
                });
  if (s.head.tied)
    counter[kHead].flops += 2 * static_cast<double>(s.vocabulary * model::embedding_width_of(s)) *
                            static_cast<double>(counter.outputs());
  return counter.present();
}

uint64_t moment_bytes(const model::Spec& s, const MomentOptions& options) {
  uint64_t bytes = 0;
  each_parameter(s, [&](const std::string& name, const model::Parameter& p, const Copies& copies) {
    bytes += static_cast<uint64_t>(copies.stored) * moment_bytes(name, p, options);
  });
  return bytes;
}

}  // namespace fovea::train
