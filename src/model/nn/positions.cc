#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/math.h"
#include "ops/units.h"
#include "tensor/host_values.h"

namespace fovea::model {
namespace {

// cos and sin of position * frequency, rounded in the same steps as in Hugging Face's Transformers;
// otherwise the results of long texts would differ.
struct Turns {
  std::vector<float> cosines, sines;  // [rows, pairs]

  // The sines and cosines are multiplied by the factor, which grows with the position, see
  // RotarySpec::query_growth.
  void add(const std::vector<float>& frequencies, float all_factor,
           const std::vector<float>& positions, float growth = 0, float original = 1) {
    for (const float position : positions) {
      const float factor =
          growth == 0 ? all_factor
                      : all_factor * (1 + growth * math::log(1 + std::floor(position / original)));
      for (const float frequency : frequencies) {
        const math::SineAndCosine turn = math::sine_and_cosine(position * frequency);
        cosines.push_back(static_cast<float>(turn.cosine) * factor);
        sines.push_back(static_cast<float>(turn.sine) * factor);
      }
    }
  }

  Angles angles(int64_t pairs, const Device& device) const {
    const int64_t rows = std::ssize(cosines) / std::max<int64_t>(pairs, 1);
    return {tensor_of(cosines, {rows, pairs}).to(device),
            tensor_of(sines, {rows, pairs}).to(device)};
  }
};

// As in Meta's code (RotaryScaling::llama3): wavelengths above the original context / low_frequency
// are stretched by the factor, those below the original context / high_frequency are kept, and the
// frequencies in between are interpolated.
float llama3_scaled(const RotarySpec& s, float frequency) {
  const auto original = static_cast<float>(s.original_context);
  const float turns = original * frequency / (2 * std::numbers::pi_v<float>);
  if (turns < s.low_frequency) return frequency / s.factor;
  if (turns > s.high_frequency) return frequency;
  const float smooth = (turns - s.low_frequency) / (s.high_frequency - s.low_frequency);
  return (1 - smooth) * frequency / s.factor + smooth * frequency;
}

// Peng et al. 2023, 3.2: pairs that turn more than `fast` times over the original context are kept,
// those that turn less than `slow` times are stretched, with a ramp in between.
float yarn_scaled(const RotarySpec& s, float frequency, int64_t pair, int64_t turned) {
  const auto pair_of_turns = [&](float turns) {
    return static_cast<float>(turned) *
           math::log(static_cast<float>(s.original_context) /
                     (turns * 2 * std::numbers::pi_v<float>)) /
           (2 * math::log(s.theta));
  };
  const float first = pair_of_turns(s.fast), last = pair_of_turns(s.slow);
  const float low = std::max(s.whole_pairs ? std::floor(first) : first, 0.0f);
  float high = std::min(s.whole_pairs ? std::ceil(last) : last, static_cast<float>(turned - 1));
  if (low == high) high += 0.001f;  // avoids a division by 0
  const float ramp = std::clamp((static_cast<float>(pair) - low) / (high - low), 0.0f, 1.0f);
  return frequency / s.factor * ramp + frequency * (1 - ramp);
}

// The base grows with the text once the text is longer than the original context, so that the
// slowest pair turns at most as far as over the original context ("dynamic NTK"; Peng et al. 2023,
// 3.3).
float dynamic_theta(const RotarySpec& s, int64_t turned, int64_t length) {
  const auto original = static_cast<float>(s.original_context);
  const float stretch = std::max(static_cast<float>(length) / original, 1.0f);
  const float exponent = static_cast<float>(turned) / static_cast<float>(turned - 2);
  return s.theta * math::pow(s.factor * stretch - (s.factor - 1), exponent);
}

// Reads the turns from a table [rows, D] with the sines of each row and then its cosines.
Turns stored_turns(const Tensor& table, int64_t T, const Tensor& positions) {
  const Tensor floats = convert(table.to(cpu_device()), DType::f32);
  const HostValues<float> all(floats);
  const int64_t rows = positions ? positions.size() : T;
  Turns turns;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = positions ? positions.data_as<int32_t>()[i] : i;
    check(at < table.dim(0), "{} tokens; expected at most {}, the model's context", at + 1,
          table.dim(0));
    const auto row = all.row(at);
    const auto middle = row.begin() + std::ssize(row) / 2;
    turns.sines.insert(turns.sines.end(), row.begin(), middle);
    turns.cosines.insert(turns.cosines.end(), middle, row.end());
  }
  return turns;
}

}  // namespace

std::vector<float> rotary_frequencies(const RotarySpec& s, int64_t turned, int64_t length) {
  std::vector<float> frequencies;
  const float theta =
      s.scaling == RotaryScaling::dynamic ? dynamic_theta(s, turned, length) : s.theta;
  for (int64_t i = 0; i < turned / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(turned);
    float f = 1.0f / math::pow(theta, exponent);
    switch (s.scaling) {
      case RotaryScaling::none:
      case RotaryScaling::dynamic: break;
      case RotaryScaling::linear: f /= s.factor; break;
      case RotaryScaling::llama3: f = llama3_scaled(s, f); break;
      case RotaryScaling::yarn: f = yarn_scaled(s, f, i, turned); break;
      case RotaryScaling::longrope: {
        const auto& factors = length > s.original_context ? s.long_factors : s.short_factors;
        f = 1.0f / (factors[static_cast<size_t>(i)] * math::pow(s.theta, exponent));
        break;
      }
    }
    frequencies.push_back(f);
  }
  return frequencies;
}

float rotary_attention_factor(const RotarySpec& s) {
  if (s.scaling != RotaryScaling::yarn && s.scaling != RotaryScaling::longrope) return 1;
  if (s.attention_factor > 0) return s.attention_factor;
  if (s.factor <= 1) return 1;
  if (s.scaling == RotaryScaling::yarn) return 0.1f * math::log(s.factor) + 1;
  return std::sqrt(1 + math::log(s.factor) / math::log(static_cast<float>(s.original_context)));
}

int64_t distance_bucket(int64_t distance, bool causal, int64_t buckets, int64_t largest) {
  int64_t first = 0;
  if (causal) {
    distance = std::max<int64_t>(-distance, 0);
  } else {
    buckets /= 2;
    if (distance > 0) first = buckets;
    distance = std::abs(distance);
  }
  const int64_t single = buckets / 2;
  if (distance < single) return first + distance;
  const float share =
      math::log(static_cast<float>(distance) / static_cast<float>(single)) /
      static_cast<float>(math::log(static_cast<double>(largest) / static_cast<double>(single)));
  const auto bucket = single + static_cast<int64_t>(share * static_cast<float>(buckets - single));
  return first + std::min(bucket, buckets - 1);
}

int64_t distance_row(int64_t distance, int64_t rows, int64_t largest) {
  const int64_t half = rows / 2, single = half / 2, far = std::abs(distance);
  int64_t bucket = far;
  if (half < largest && far > single) {
    const float share = math::log(static_cast<float>(far) / static_cast<float>(single)) /
                        math::log(static_cast<float>(largest - 1) / static_cast<float>(single));
    bucket = single + static_cast<int64_t>(std::ceil(share * static_cast<float>(single - 1)));
  }
  return std::clamp(half + (distance < 0 ? -bucket : bucket), int64_t{0}, rows - 1);
}

float alibi_slope(int64_t head, int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  const auto slope = [](double step, int64_t nth) {
    return static_cast<float>(math::pow(2.0, -step * static_cast<double>(nth)));
  };
  if (head < power) return slope(8.0 / static_cast<double>(power), head + 1);
  return slope(4.0 / static_cast<double>(power), 2 * (head - power) + 1);
}

Tensor positions_in_documents(const DocumentStarts& documents, int64_t T) {
  const Tensor positions = empty({std::ssize(documents), T}, DType::i32);
  int32_t* at = positions.data_as<int32_t>();
  for (const std::vector<int64_t>& starts : documents) {
    size_t next = 0;
    for (int64_t t = 0, begin = 0; t < T; ++t) {
      if (next < starts.size() && starts[next] == t) begin = starts[next++];
      *at++ = static_cast<int32_t>(t - begin);
    }
  }
  return positions;
}

Tensor sinusoids(int64_t rows, int64_t width, Waves waves, int64_t first) {
  Tensor table = empty({rows, width});
  const int64_t half = width / 2;
  for (int64_t i = 0; i < half; ++i) {
    const double exponent =
        waves == Waves::spread
            ? static_cast<double>(i) / static_cast<double>(std::max<int64_t>(half - 1, 1))
            : static_cast<double>(2 * i) / static_cast<double>(width);
    const double frequency = math::pow(10000.0, -exponent);
    const int64_t sine = waves == Waves::neighbours ? 2 * i : i;
    const int64_t cosine = waves == Waves::neighbours ? 2 * i + 1 : half + i;
    for (int64_t p = 0; p < rows; ++p) {
      const double angle = static_cast<double>(first + p) * frequency;
      const math::SineAndCosine wave = math::sine_and_cosine(angle);
      table.data_as<float>()[p * width + sine] = static_cast<float>(wave.sine);
      table.data_as<float>()[p * width + cosine] = static_cast<float>(wave.cosine);
    }
  }
  return table;
}

Positions::Positions(const StackSpec& stack, int64_t context_, int64_t width, bool causal_)
    : spec(stack.position),
      attention(stack.attention),
      latent(stack.latent),
      context(context_),
      causal(causal_) {
  const Shape shape{spec.offset + context, width};
  if (spec.kind == PositionKind::learned) table = {shape, Role::position_embedding, {}};
  if (spec.kind == PositionKind::sinusoidal && spec.stored) table = {shape, Role::sinusoids, {}};
  if (spec.kind == PositionKind::rotary && spec.stored)
    table = {{context, attention.head_width}, Role::sinusoids, {}};
  const Parameter values{{attention.heads, spec.buckets}, Role::position_embedding, {}};
  if (spec.bias == DistanceBias::relative && spec.bias_by_layer)
    layer_biases.assign(static_cast<size_t>(stack.layers), values);
  else if (spec.bias == DistanceBias::relative)
    bias = values;
  if (spec.bias == DistanceBias::disentangled) {
    bias = {{spec.buckets, width}, Role::position_embedding, {}};
    bias_norm = Norm(stack.norm, width, spec.disentangled.norm);
  }
}

Tensor Positions::indices(const Tensor& x, const Tensor& positions) const {
  const int64_t B = x.dim(0), T = x.dim(1);
  const Tensor rows = empty({B, T}, DType::i32);
  for (int64_t i = 0; i < B * T; ++i) {
    const int64_t at = positions ? positions.data_as<int32_t>()[i] : i % T;
    check(!table.present() || at < context, "{} tokens; expected at most {}, the model's context",
          positions ? at + 1 : T, context);
    rows.data_as<int32_t>()[i] = static_cast<int32_t>(spec.offset + at);
  }
  return rows;
}

Tensor Positions::add_to(const Tensor& x, const Tensor& positions) const {
  if (spec.kind != PositionKind::learned && spec.kind != PositionKind::sinusoidal) return x;
  const Tensor rows = indices(x, positions);
  if (table.present()) return add(x, embedding(rows, table.value));
  // Computes only the rows that are needed: a table of the entire context would be computed again
  // for each token.
  int32_t* data = rows.data_as<int32_t>();
  const auto [least, most] = std::minmax_element(data, data + rows.size());
  const int32_t lowest = *least;
  const Tensor waves = sinusoids(*most - lowest + 1, x.dim(2), spec.waves, lowest);
  for (int64_t i = 0; i < rows.size(); ++i) data[i] -= lowest;
  return add(x, cast(embedding(rows, waves).to(x.device()), x.dtype()));
}

void Positions::prepare(LayerPass& pass, int64_t T, const Tensor& positions,
                        const Device& device) const {
  if (spec.kind == PositionKind::rotary) prepare_angles(pass, T, positions, device);
  if (spec.bias == DistanceBias::none) return;
  if (spec.bias == DistanceBias::disentangled) return prepare_distances(pass, T);
  if (layer_biases.empty()) prepare_bias(pass, T, bias, device);
}

void Positions::prepare_layer(LayerPass& pass, int64_t layer, int64_t T,
                              const Device& device) const {
  if (!layer_biases.empty())
    prepare_bias(pass, T, layer_biases[static_cast<size_t>(layer)], device);
}

void Positions::prepare_bias(LayerPass& pass, int64_t T, const Parameter& values,
                             const Device& device) const {
  const int64_t N = pass.cache != nullptr ? pass.cache->total() : T;
  pass.bias_zero = N - 1;
  pass.distance_bias = cast(bias_by_distance(N, values).to(device),
                            pass.compute == DType::f64 ? DType::f64 : DType::f32);
}

// Scaled frequencies may depend on the length of the whole text, so each text has its own angles.
void Positions::prepare_angles(LayerPass& pass, int64_t T, const Tensor& positions,
                               const Device& device) const {
  const auto turned =
      static_cast<int64_t>(static_cast<float>(attention.head_width) * spec.rotary.share);
  pass.pairing = spec.rotary.neighbours ? Pairing::neighbours : Pairing::halves;
  if (table.present()) {
    pass.angles = pass.local_angles =
        stored_turns(table.value, T, positions).angles(turned / 2, device);
    return;
  }
  RotarySpec local;
  local.theta = spec.rotary.local_theta;
  Turns turns, local_turns, latent_turns, query_turns;
  const auto add_rows = [&](int64_t begin, int64_t end, int64_t length) {
    std::vector<float> values;
    for (int64_t i = begin; i < end; ++i)
      values.push_back(static_cast<float>(positions ? positions.data_as<int32_t>()[i] : i));
    turns.add(rotary_frequencies(spec.rotary, turned, length), rotary_attention_factor(spec.rotary),
              values);
    if (const float growth = spec.rotary.query_growth; growth > 0)
      query_turns.add(rotary_frequencies(spec.rotary, turned, length),
                      rotary_attention_factor(spec.rotary), values, growth,
                      static_cast<float>(spec.rotary.original_context));
    if (local.theta > 0) local_turns.add(rotary_frequencies(local, turned, length), 1, values);
    if (latent.rotary > 0)
      latent_turns.add(rotary_frequencies(spec.rotary, latent.rotary, length),
                       rotary_attention_factor(spec.rotary), values);
  };
  if (pass.mask.documents != nullptr && positions) {
    const auto values = std::ssize(*pass.mask.documents);
    for (int64_t row = 0; row < values; ++row) {
      for (Interval text{0, 0}; text.end < T;) {
        text = pass.mask.document(row, text.end, T);
        add_rows(row * T + text.begin, row * T + text.end, text.end - text.begin);
      }
    }
  } else if (pass.cache == nullptr) {
    add_rows(0, positions ? positions.size() : T, T);
  } else {
    int64_t row = 0;
    for (const KvCache::Member& member : pass.cache->members()) {
      add_rows(row, row + member.tokens,
               std::max(member.horizon, member.text->length + member.tokens));
      row += member.tokens;
    }
  }
  pass.angles = turns.angles(turned / 2, device);
  pass.local_angles = local.theta > 0 ? local_turns.angles(turned / 2, device) : pass.angles;
  if (spec.rotary.query_growth > 0) pass.query_angles = query_turns.angles(turned / 2, device);
  if (latent.rotary > 0) pass.latent_angles = latent_turns.angles(latent.rotary / 2, device);
}

// Only the vectors of distances that occur are computed. One table per unit, as below.
void Positions::prepare_distances(LayerPass& pass, int64_t T) const {
  std::vector<int32_t> rows;
  for (int64_t distance = 1 - T; distance < T; ++distance)
    rows.push_back(static_cast<int32_t>(distance_row(distance, spec.buckets, spec.distance)));
  const int32_t first = rows.front();
  const int64_t units = row_units().count, R = rows.back() - first + 1;
  for (int32_t& row : rows) row -= first;
  const Tensor indices = empty({units, R}, DType::i32);
  for (int64_t i = 0; i < units * R; ++i)
    indices.data_as<int32_t>()[i] = first + static_cast<int32_t>(i % R);
  pass.distances = bias_norm(embedding(indices, bias.value), pass.compute);  // [U, R, C]
  pass.distance_rows = tensor_of(rows, {2 * T - 1});
}

Tensor Positions::bias_by_distance(int64_t N, const Parameter& values) const {
  const int64_t H = attention.heads, distances = 2 * N - 1;
  if (spec.bias == DistanceBias::alibi) {
    Tensor slopes = empty({H, distances});
    for (int64_t h = 0; h < H; ++h) {
      const float slope = alibi_slope(h, H);
      // The bias is symmetric, for masks that allow keys in both directions.
      for (int64_t n = 0; n < distances; ++n)
        slopes.data_as<float>()[h * distances + n] =
            -slope * static_cast<float>(std::abs(n - (N - 1)));
    }
    return slopes;
  }
  // One table per unit: the gradient of a shared table would be summed over units before it is
  // summed over distances.
  const int64_t units = row_units().count;
  const Tensor indices = empty({units, H, distances}, DType::i32);
  int32_t* data = indices.data_as<int32_t>();
  for (int64_t n = 0; n < distances; ++n) {
    const auto bucket =
        static_cast<int32_t>(distance_bucket(n - (N - 1), causal, spec.buckets, spec.distance));
    for (int64_t row = 0; row < units * H; ++row)
      data[row * distances + n] = static_cast<int32_t>(row % H * spec.buckets) + bucket;
  }
  return embedding(indices, values.value.view({H * spec.buckets, 1})).view({units, H, distances});
}

}  // namespace fovea::model
