// Rotary positions in GGUF: a key names the kind of scaling, or a tensor contains factors for each
// pair's frequency.

#include <cmath>

#include "base/error.h"
#include "formats/gguf/shared.h"
#include "fovea/core/excerpt.h"
#include "nn/positions.h"

namespace fovea::model {
namespace {

constexpr int64_t kLlama3Context = 8192;  // original context of every model with this scaling

std::vector<float> floats_under(Config& io, const char* key) {
  const nlohmann::json list = io.value(key);
  return list.is_array() ? list.get<std::vector<float>>() : std::vector<float>();
}

// Returns the divisor of each pair's frequency.
std::vector<float> factors_of(const RotarySpec& scaled, int64_t turned) {
  RotarySpec plain;
  plain.theta = scaled.theta;
  std::vector<float> factors = rotary_frequencies(plain, turned, 0);
  const std::vector<float> frequencies = rotary_frequencies(scaled, turned, 0);
  for (size_t i = 0; i < factors.size(); ++i) factors[i] /= frequencies[i];
  return factors;
}

bool nearly_equal(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (i >= b.size() || std::fabs(a[i] - b[i]) > 1e-4f * std::fabs(a[i])) return false;
  return a.size() == b.size();
}

// The file contains only the factors; if they follow llama3's rule, the Spec uses that rule.
void one_set_of_factors(Config& io, RotarySpec& r, int64_t turned, int64_t context) {
  constexpr const char* kKey = "rope_freqs.weight";
  if (!io.reading()) {
    if (r.scaling == RotaryScaling::llama3) io.write(kKey, factors_of(r, turned));
    return;
  }
  const std::vector<float> factors = floats_under(io, kKey);
  if (factors.empty()) return;
  RotarySpec rule = r;
  rule.scaling = RotaryScaling::llama3;
  rule.factor = factors.back();
  if (rule.original_context == 0) rule.original_context = kLlama3Context;
  if (nearly_equal(factors_of(rule, turned), factors)) {
    r = rule;
    return;
  }
  r.scaling = RotaryScaling::longrope;
  r.original_context = context;
  r.short_factors = r.long_factors = factors;
}

// Reads or writes the short and long factors, and the factor of cos and sin.
void two_sets_of_factors(Config& io, RotarySpec& r, int64_t context) {
  constexpr const char* kShort = "rope_factors_short.weight";
  constexpr const char* kLong = "rope_factors_long.weight";
  constexpr const char* kAttention = "rope.scaling.attn_factor";
  if (!io.reading()) {
    if (r.scaling != RotaryScaling::longrope) return;
    io.write(kShort, r.short_factors);
    io.write(kLong, r.long_factors);
    float attention = rotary_attention_factor(r);
    return io(kAttention, attention, 1);
  }
  r.short_factors = floats_under(io, kShort);
  r.long_factors = floats_under(io, kLong);
  if (r.short_factors.empty() && r.long_factors.empty()) return;
  r.scaling = RotaryScaling::longrope;
  if (r.original_context == 0) r.original_context = context;
  r.factor = static_cast<float>(context) / static_cast<float>(r.original_context);
  const float derived = rotary_attention_factor(r);
  io(kAttention, r.attention_factor, 1, 1e3f);
  if (std::fabs(r.attention_factor - derived) <= 1e-5f * derived) r.attention_factor = 0;
}

void scaling_by_key(Config& io, RotarySpec& r) {
  constexpr const char* kType = "rope.scaling.type";
  if (io.reading()) {
    const nlohmann::json type = io.value(kType);
    if (type == "linear") r.scaling = RotaryScaling::linear;
    if (type == "yarn") r.scaling = RotaryScaling::yarn;
    if (!type.is_null() && type != "none" && type != "longrope" && r.scaling == RotaryScaling::none)
      fail(ErrorKind::Unsupported, "{}: {} is {}; expected none, linear, yarn or longrope",
           io.name(), kType, excerpt(type.dump()));
    io("rope.scaling.factor", r.factor, 1, 1e6f);
    if (type.is_null() && r.factor != 1) r.scaling = RotaryScaling::linear;
  } else if (r.scaling == RotaryScaling::linear || r.scaling == RotaryScaling::yarn) {
    io.write(kType, r.scaling == RotaryScaling::linear ? "linear" : "yarn");
    io("rope.scaling.factor", r.factor, 1);
  }
  if (io.reading() || r.original_context > 0)
    io("rope.scaling.original_context_length", r.original_context, 0);
  if (r.scaling != RotaryScaling::yarn) return;
  io("rope.scaling.yarn_beta_fast", r.fast, 32, 1e6f);
  io("rope.scaling.yarn_beta_slow", r.slow, 1, 1e6f);
  if (io.reading() || r.attention_factor > 0)
    io("rope.scaling.yarn_attn_factor", r.attention_factor, 0, 1e3f);
}

// The frequencies of `turned` numbers of a head.
void frequencies(Config& io, RotarySpec& r, int64_t turned, int64_t context) {
  io("rope.freq_base", r.theta, 10000, 1e9f);
  scaling_by_key(io, r);
  two_sets_of_factors(io, r, context);
  if (r.scaling == RotaryScaling::none || !io.reading()) one_set_of_factors(io, r, turned, context);
  // Resets the fields that this kind of scaling does not use.
  if (r.scaling == RotaryScaling::none) r.factor = 1;
  if (r.scaling == RotaryScaling::none || r.scaling == RotaryScaling::linear)
    r.original_context = 0;
}

}  // namespace

void gguf_rope(Config& io, Spec& s) {
  PositionSpec& position = s.decoder->position;
  position.kind = PositionKind::rotary;
  RotarySpec& r = position.rotary;
  const int64_t width = gguf_head_width(s);
  auto turned = static_cast<int64_t>(std::lround(r.share * static_cast<float>(width)));
  io("rope.dimension_count", turned, width);
  r.share = static_cast<float>(turned) / static_cast<float>(width);
  frequencies(io, r, turned, s.context);
}

void gguf_latent_rope(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::rotary;
  io("rope.dimension_count", d.latent.rotary);
  frequencies(io, d.position.rotary, d.latent.rotary, s.context);
}

}  // namespace fovea::model
