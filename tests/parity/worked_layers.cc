// Norms, activations, positions, blocks and shapes of the worked examples.

#include <cmath>
#include <numbers>

#include "nn/stack.h"
#include "worked_examples.h"

namespace fovea::worked {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

Tensor ones(int64_t width, DType dtype) { return full({width}, 1, dtype); }

Tensor normed(const Example& e, const Tensor& x, model::NormSpec spec) {
  spec.epsilon = e.parameter("eps").get<float>();
  model::Norm norm(spec, x.dim(-1));
  norm.weight.value = ones(x.dim(-1), e.dtype());
  norm.bias.value = zeros({x.dim(-1)}, e.dtype());
  return norm(x, e.dtype());
}

model::NormSpec inside() { return {}; }
model::NormSpec outside() {
  model::NormSpec spec;
  spec.epsilon_outside = true;
  return spec;
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double variance_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += (value - mean_of(x)) * (value - mean_of(x));
  return sum / static_cast<double>(x.size());
}

// Computes the mean as a product with 1 / C, and the standard deviation as (input - mean) / output
// of the norm.
void norm_in_steps(Example& e) {
  const Tensor x = e.tensor("x").view({1, 3});
  const double mean = to_doubles(linear(x, full({1, 3}, 1.0 / 3, e.dtype())))[0];
  const auto y = to_doubles(normed(e, x, inside()));
  const double deviation = (e.values("x")[2] - mean) / y[2];
  e.expect("mean", mean);
  e.expect("std", deviation);
  e.expect("var", deviation * deviation - e.parameter("eps").get<double>());
  e.expect("y", y);
  EXPECT_NEAR(mean_of(y), e.expected("y_mean")["data"][0].get<double>(), 1e-6);
  e.expect("y_var", variance_of(y));
}

void norms_of_row(Example& e) {
  const Tensor x = e.tensor("x").view({1, 3});
  e.expect("y_std_plus_eps", normed(e, x, outside()));
  e.expect("y_sqrt_var_plus_eps", normed(e, x, inside()));
}

void norm_variants(Example& e) {
  norms_of_row(e);
  const Tensor x = e.tensor("x").view({1, 3});
  e.expect("y_eps0", layer_norm(x, ones(3, e.dtype()), {}, 0, e.dtype()));
}

void activations(Example& e) {
  const Tensor x = e.tensor("x");
  e.expect("gelu_tanh", activation(x, Activation::gelu_tanh));
  e.expect("gelu_erf", activation(x, Activation::gelu));
  e.expect("relu", activation(x, Activation::relu));
  e.expect("silu", activation(x, Activation::silu));
}

std::vector<double> row(const Tensor& table, int64_t index) {
  return to_doubles(table.rows(index, index + 1));
}

void wave_table(Example& e) {
  e.expect("pe",
           model::sinusoids(e.integer("seq_len"), e.integer("d_model"), model::Waves::neighbours));
}

void wave_samples(Example& e) {
  const auto positions = e.values("positions");
  const Tensor table = model::sinusoids(static_cast<int64_t>(positions.back()) + 1,
                                        e.integer("d_model"), model::Waves::neighbours);
  std::vector<double> found;
  for (const double position : positions)
    for (const double column : e.values("dims"))
      found.push_back(row(table, static_cast<int64_t>(position))[static_cast<size_t>(column)]);
  e.expect("pe", found);
}

void wave_properties(Example& e) {
  const Tensor table =
      model::sinusoids(e.integer("seq_len"), e.integer("d_model"), model::Waves::neighbours);
  double largest = 0;
  for (const double value : to_doubles(table)) largest = std::max(largest, std::abs(value));
  EXPECT_LE(largest, e.expected("abs_max_le")["data"][0].get<double>());
  std::set<std::vector<double>> rows;
  for (int64_t i = 0; i < table.dim(0); ++i) rows.insert(row(table, i));
  e.expect("distinct_rows", static_cast<double>(rows.size()));
  const auto first = row(table, 0);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i], i % 2 == 0 ? 0 : 1);
}

// A shift by k positions rotates each pair (sine, cosine) backwards by k times its frequency.
// Rotary positions rotate forwards. The test rotates unit vectors to get the matrix of the shift.
void waves_shift_by_turning(Example& e) {
  const int64_t width = e.integer("d_model"), k = e.integer("k");
  const auto frequencies = model::rotary_frequencies({}, width, 0);
  std::vector<double> cosines, sines, units(static_cast<size_t>(width * width));
  for (const float f : frequencies) {
    cosines.push_back(std::cos(static_cast<double>(k) * double{f}));
    sines.push_back(-std::sin(static_cast<double>(k) * double{f}));
  }
  for (int64_t i = 0; i < width; ++i) units[static_cast<size_t>(i * (width + 1))] = 1;
  const Tensor turned = rotate(tensor_of(units, {width, 1, 1, width}, e.dtype()),
                               tensor_of(cosines, {1, width / 2}, DType::f32),
                               tensor_of(sines, {1, width / 2}, DType::f32), Pairing::neighbours);
  const Tensor matrix = transposed(turned.view({width, width}));
  e.expect("M", matrix);
  const Tensor table = cast(model::sinusoids(32 + k, width, model::Waves::neighbours), e.dtype());
  const auto shifted = to_doubles(linear(table.rows(0, 32), matrix));
  const auto expected = to_doubles(table.rows(k, 32 + k));
  for (size_t i = 0; i < shifted.size(); ++i) EXPECT_NEAR(shifted[i], expected[i], 1e-5);
}

// Returns the wavelength of a pair, computed from the angle between positions 0 and 1.
double wavelength(const Tensor& table, size_t sine, size_t cosine) {
  const auto next = row(table, 1);
  return kTurn / std::atan2(next[sine], next[cosine]);
}

void wavelengths(Example& e) {
  const int64_t width = e.integer("d_model");
  const auto last = static_cast<size_t>(width);
  const Tensor table = model::sinusoids(2, width, model::Waves::neighbours);
  e.expect("first", wavelength(table, 0, 1));
  e.expect("last_exact", wavelength(table, last - 2, last - 1));
  const Tensor spread =
      model::sinusoids(2, width, model::Waves::spread);  // its last frequency is 1 / 10000
  e.expect("limit", wavelength(spread, last / 2 - 1, last - 1));
}

void frequencies_fall(Example& e) {
  const auto frequencies = model::rotary_frequencies({}, 64, 0);
  EXPECT_TRUE(std::is_sorted(frequencies.rbegin(), frequencies.rend()));
  const auto next = row(model::sinusoids(2, 64, model::Waves::neighbours), 1);
  for (size_t i = 0; i < frequencies.size(); ++i)  // a pair shares one frequency
    EXPECT_NEAR(std::atan2(next[2 * i], next[2 * i + 1]), frequencies[i], 1e-6);
  e.pass_over("fact", "text; its meaning is checked here");
}

void positions_are_added(Example& e) {
  model::StackSpec stack;
  stack.position.kind = model::PositionKind::sinusoidal;
  const Tensor x = zeros({2, 3, 4}, e.dtype());
  const Tensor y = model::Positions(stack, 3, 4, true).add_to(x, {});
  EXPECT_EQ(y.shape(), x.shape());
  const auto table = to_doubles(model::sinusoids(3, 4, model::Waves::neighbours)),
             found = to_doubles(y);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], table[i % table.size()], 1e-6);
  e.pass_over("shape_rule", "text; its meaning is checked here");
}

void rotary(Example& e) {
  model::StackSpec stack;
  stack.attention.heads = 1;
  stack.attention.head_width = stack.attention.value_width = 8;
  stack.position.kind = model::PositionKind::rotary;
  stack.position.rotary.neighbours = true;
  const auto turned = [&](const char* vector, int64_t position) {
    model::LayerPass pass;
    const Tensor place = empty({1, 1}, DType::i32);
    *place.data_as<int32_t>() = static_cast<int32_t>(position);
    model::Positions(stack, 1 << 10, 8, true).prepare(pass, 1, place);
    const Tensor x = e.tensor(vector).view({1, 1, 1, 8});
    return rotate(x, pass.angles.cosines, pass.angles.sines, pass.pairing).view({1, 8});
  };
  std::vector<double> dots;
  for (const auto& pair : e.parameter("pairs_mn"))
    dots.push_back(to_doubles(linear(turned("q", pair[0]), turned("k", pair[1])))[0]);
  e.expect("dots", dots, 10);  // angles are floats, and those of position 105 are large
  e.expect("rope_q_at_5", turned("q", 5));
  EXPECT_EQ(to_doubles(turned("q", 0)), to_doubles(e.tensor("q")));
}

model::StackSpec stack_of(int64_t heads, int64_t head_width) {
  model::StackSpec stack;
  stack.attention.heads = stack.attention.kv_heads = heads;
  stack.attention.head_width = stack.attention.value_width = head_width;
  stack.attention.bias = stack.attention.output_bias = false;
  stack.ffn.bias = false;
  return stack;
}

// Converts [heads, C, D] to [heads * D, C], the layout of fovea's projections.
Tensor fused(const Tensor& x) {
  const int64_t H = x.dim(0), C = x.dim(1), D = x.dim(2);
  const auto values = to_doubles(x);
  std::vector<double> rows;
  for (int64_t h = 0; h < H; ++h)
    for (int64_t d = 0; d < D; ++d)
      for (int64_t c = 0; c < C; ++c)
        rows.push_back(values[static_cast<size_t>((h * C + c) * D + d)]);
  return tensor_of(rows, {H * D, C}, x.dtype());
}

void fill(const Example& e, model::Attention& layer) {
  const bool by_head = e.id().starts_with("s000");
  const auto projection = [&](const char* split, const char* whole) {
    return by_head ? fused(e.tensor(split)) : transposed(e.tensor(whole));
  };
  layer.query.weight.value = projection("W_Q", "W_q");
  layer.key.weight.value = projection("W_K", "W_k");
  layer.value.weight.value = projection("W_V", "W_v");
  layer.output.weight.value = transposed(e.tensor(by_head ? "W_O" : "W_o"));
}

model::LayerPass pass_of(const Example& e, bool causal = false) {
  model::LayerPass pass;
  pass.compute = e.dtype();
  pass.mask.causal = causal;
  return pass;
}

Tensor batch_of_one(const Tensor& x) { return x.view({1, x.dim(0), x.dim(1)}); }

void heads_by_hand(Example& e) {
  model::Attention layer(stack_of(4, 2), 8, 0, {});
  fill(e, layer);
  const Tensor y = layer(batch_of_one(e.tensor("X")), pass_of(e));
  e.expect_shape("output_shape", {y.dim(1), y.dim(2)});
  e.expect("output", y);
}

// Returns a block with the weights of a record, gains of 1 and biases of 0.
model::Block block_of(const Example& e, model::StackSpec stack, const char* up, const char* down) {
  stack.norm.epsilon = e.parameter("eps").get<float>();
  stack.ffn.width = e.tensor(up).dim(1);
  model::Block block(stack, {}, 8, 0, false, 0);
  const auto set = [&](const std::string&, model::Parameter& p) {
    if (p.role == model::Role::gain) p.value = ones(8, e.dtype());
    if (p.role == model::Role::bias) p.value = zeros({8}, e.dtype());
  };
  block.each(set, "block");
  fill(e, std::get<model::Attention>(block.mixer));
  block.ffn->up.weight.value = transposed(e.tensor(up));
  block.ffn->down.weight.value = transposed(e.tensor(down));
  return block;
}

const model::Placement kPostNorm = {.input = false, .output = false, .sum = true};

void block_by_hand(Example& e) {
  model::StackSpec stack = stack_of(4, 2);
  stack.placement = kPostNorm;
  const Tensor x = batch_of_one(e.tensor("X"));
  const auto run = [&] { return block_of(e, stack, "W1", "W2")(x, pass_of(e)); };
  const Tensor y = run();
  e.expect_shape("output_shape", {y.dim(1), y.dim(2)});
  e.expect("output_sqrt_var_plus_eps", y);
  stack.norm.epsilon_outside = true;
  e.expect("output_std_plus_eps", run());
}

void pre_norm_block(Example& e) {
  model::StackSpec stack = stack_of(2, 4);
  stack.ffn.activation = Activation::relu;
  const model::Block block = block_of(e, stack, "W_1", "W_2");
  const Tensor x = batch_of_one(e.tensor("X"));
  e.expect("output", block(x, pass_of(e)));
  e.expect("output_causal", block(x, pass_of(e, true)));
}

void post_norm_block(Example& e) {
  model::StackSpec stack = stack_of(2, 4);
  stack.ffn.activation = Activation::relu;
  stack.placement = kPostNorm;
  stack.position.kind = model::PositionKind::sinusoidal;
  const Tensor x = batch_of_one(e.tensor("X"));
  const Tensor placed = model::Positions(stack, x.dim(1), 8, false).add_to(x, {});
  e.expect("output", block_of(e, stack, "W_1", "W_2")(placed, pass_of(e)));
}

void cached(Example& e) {
  model::Attention layer(stack_of(2, 4), 8, 0, {});
  fill(e, layer);
  const Tensor x = e.tensor("X");
  e.expect("mha_causal", layer(batch_of_one(x), pass_of(e, true)));
  const PageLayout page{2, 4, e.dtype()};
  model::KvCache cache({.dtype = e.dtype(), .layers = {{page, page}}}, 1, x.dim(0));
  std::vector<double> rows;
  for (int64_t t = 0; t < x.dim(0); ++t) {
    model::LayerPass pass = pass_of(e, true);
    pass.cache = &cache;
    cache.begin(1, 1);
    for (const double y : to_doubles(layer(batch_of_one(x.rows(t, t + 1)), pass)))
      rows.push_back(y);
    cache.end();
  }
  e.expect("mha_causal", rows);
}

void heads_lie_side_by_side(Example& e) {
  const int64_t heads = e.parameter("num_heads"), width = e.parameter("d_k");
  const Tensor x = e.tensor("X");
  const Tensor split = x.view({x.dim(0), heads, width});
  std::vector<double> by_head;
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t t = 0; t < x.dim(0); ++t)
      for (int64_t i = 0; i < width; ++i)
        by_head.push_back(to_doubles(split)[static_cast<size_t>((t * heads + h) * width + i)]);
  e.expect("heads", by_head);
}

// fovea orders axes [B, T, H, D]; the record has heads before tokens.
Shape heads_in_front(const Tensor& x) { return {x.dim(0), x.dim(2), x.dim(1), x.dim(3)}; }

void shapes_of_heads(Example& e) {
  const int64_t B = e.integer("batch"), T = e.integer("seq"), C = e.integer("d_model"),
                H = e.integer("num_heads"), D = e.integer("d_k");
  const Tensor x = zeros({B, T, C}), square = zeros({C, C});
  const Tensor projected = linear(x, square), split = projected.view({B, T, H, D});
  const Tensor mixed = attention(split, split, split, {});
  const Tensor merged = mixed.view({B, T, C});
  e.expect_shape("input", x.shape());
  e.expect_shape("project_q", projected.shape());
  e.expect_shape("reshape_heads", split.shape());
  e.expect_shape("transpose", heads_in_front(split));
  e.expect_shape("scores", attention_weights(split, split, {}).shape());
  e.expect_shape("attn_times_v", heads_in_front(mixed));
  e.expect_shape("merge_heads", merged.shape());
  e.expect_shape("output_projection", linear(merged, square).shape());
}

void shapes_across(Example& e) {
  const Tensor q = zeros({2, 3, 1, 4}), k = zeros({2, 5, 1, 4});
  EXPECT_EQ(attention_weights(q, k, {}).shape(), (Shape{2, 1, 3, 5}));
  EXPECT_EQ(attention(q, k, k, {}).shape(), q.shape());
  for (const char* key : {"scores", "output", "single_head"})
    e.pass_over(key, "text; its shapes are checked here");
}

void layers_fit(Example& e) {
  model::Attention layer(stack_of(4, 2), 8, 0, {});
  const auto set = [](const std::string&, model::Parameter& p) { p.value = zeros(p.shape); };
  layer.each(set, "attention");
  EXPECT_EQ(layer(zeros({2, 3, 8}), {}).shape(), (Shape{2, 3, 8}));
  e.pass_over("fact", "about other code; fovea takes batches of heads");
}

void means_keep_their_axis(Example& e) {
  Shape shape;
  for (const double extent : e.values("x_shape")) shape.push_back(static_cast<int64_t>(extent));
  const Tensor x = zeros(shape, e.dtype());
  const Tensor mean =
      linear(x, full({1, shape[2]}, 1.0 / static_cast<double>(shape[2]), e.dtype()));
  e.expect_shape("mean_keep", mean.shape());
  e.expect_shape("mean_no_keep", mean.view({shape[0], shape[1]}).shape());
  e.expect_shape("centered",
                 layer_norm(x, ones(shape[2], e.dtype()), {}, 1e-5f, e.dtype()).shape());
}

}  // namespace

Checks layer_checks() {
  model::NormSpec rms;
  rms.kind = model::NormKind::rms;
  const auto norm = [](const model::NormSpec& spec) {
    return [spec](Example& e) { e.expect("y", normed(e, e.tensor("x"), spec)); };
  };
  return {
      {"s003.layernorm.123", norm_in_steps},
      {"s000.layernorm.variant", norm_variants},
      {"d.layernorm.tiny", norms_of_row},
      {"d.layernorm.2x3x4", norm(inside())},
      {"d.rmsnorm.2x3x4", norm(rms)},
      {"s003.ln.keepdims", means_keep_their_axis},
      {"s000.gelu", activations},
      {"s003.pe.4x4", wave_table},
      {"d.pe.6x8", wave_table},
      {"d.pe.512.samples", wave_samples},
      {"s003.pe.properties", wave_properties},
      {"s00x.pe.shift", waves_shift_by_turning},
      {"s004.pe.wavelength", wavelengths},
      {"s002.pe.lowfreq", frequencies_fall},
      {"s00x.pe.added", positions_are_added},
      {"s00x.rope.relative", rotary},
      {"s000.mha.3x8", heads_by_hand},
      {"s000.block.3x8", block_by_hand},
      {"d.s001.preLN.block", pre_norm_block},
      {"d.s003.postLN.block", post_norm_block},
      {"d.kvcache.property", cached},
      {"d.split_heads", heads_lie_side_by_side},
      {"s003.shapes.mha", shapes_of_heads},
      {"s003.shapes.sdpa", shapes_across},
      {"s003.code.bug4d", layers_fit},
  };
}

}  // namespace fovea::worked
