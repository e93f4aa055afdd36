#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "nn/stack.h"
#include "support/expect_error.h"
#include "support/random_parameters.h"

namespace fovea::model {
namespace {

StackSpec small_stack() {
  StackSpec spec;
  spec.layers = 2;
  spec.attention = {.heads = 4, .kv_heads = 2, .head_width = 3, .value_width = 3};
  spec.ffn.width = 20;
  return spec;
}

Tensor normal(Shape shape, uint64_t seed) {
  Tensor x = empty(std::move(shape));
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < x.size(); ++i) x.data_as<float>()[i] = random.normal();
  return x;
}

template <class Layer>
std::vector<std::string> names_of(Layer& layer) {
  std::vector<std::string> names;
  const auto f = [&](const std::string& name, Parameter&) { names.push_back(name); };
  layer.each(f, "x");
  return names;
}

const PagePool::Layout kLayout{
    .layers = {{{3, 4, DType::f32}, {3, 4, DType::f32}}, {{3, 4, DType::f32}, {3, 4, DType::f32}}}};

TEST(KvCaches, RefuseMismatchedShapes) {
  KvCache cache(kLayout, 2, 5);
  const Tensor k = zeros({2, 4, 3, 4});
  cache.begin(2, 4);
  cache.append(0, k, k);
  EXPECT_EQ(cache.length(), 0);  // the length grows in end(), after all layers
  cache.append(1, k, k);
  cache.end();
  EXPECT_EQ(cache.length(), 4);
  expect_error(ErrorKind::InvalidArgument, {"KV cache: 4 tokens and 4 more", "at most 5"},
               [&] { cache.begin(2, 4); });
  cache.clear();
  expect_error(ErrorKind::InvalidArgument, {"KV cache: 1 texts; expected 2"},
               [&] { cache.begin(1, 4); });
  cache.begin(2, 4);
  for (const Tensor& wrong : {zeros({2, 4, 3, 5}), zeros({2, 4, 3, 4}, DType::bf16)}) {
    expect_error(ErrorKind::InvalidArgument,
                 {"KV cache", "expected [rows, 3, 4] and [rows, 3, 4], of one dtype"},
                 [&] { cache.append(0, k, wrong); });
  }
}

// Returns keys [2, T, 3, 4]: all elements of key t of row b are 1000 b + t.
Tensor numbered(int64_t begin, int64_t end) {
  const Tensor k = empty({2, end - begin, 3, 4});
  for (int64_t i = 0; i < k.size(); ++i)
    k.data_as<float>()[i] =
        static_cast<float>(i / (k.size() / 2) * 1000 + begin + i % (k.size() / 2) / 12);
  return k;
}

// Returns the keys or values of token t of a text: [12], 3 heads of width 4.
std::vector<double> held(const PagedText& text, PagePart part, int64_t t) {
  std::vector<double> all(12);
  const auto* pages = part == PagePart::keys ? text.key_pages : text.value_pages;
  for (int64_t head = 0; head < 3; ++head)
    get_from_page(kLayout.layers[0].keys, part, pages[t / kPageTokens], t % kPageTokens, head,
                  all.data() + 4 * head);
  return all;
}

TEST(KvCaches, AppendTokensToTheirRow) {
  KvCache cache(kLayout, 2, 200);
  int64_t begin = 0;
  for (const int64_t end : {3, 64, 65, 130, 200}) {
    cache.begin(2, end - begin);
    cache.append(1, numbered(begin, end), numbered(begin, end));
    const std::vector<PagedText> texts = cache.spans(1, {});
    for (size_t row = 0; row < 2; ++row) {
      ASSERT_EQ(texts[row].keys, end);
      for (int64_t t = 0; t < end; ++t) {
        const double expected = 1000.0 * static_cast<double>(row) + static_cast<double>(t);
        for (const PagePart part : {PagePart::keys, PagePart::values})
          for (const double x : held(texts[row], part, t)) ASSERT_EQ(x, expected);
      }
    }
    cache.end();
    begin = end;
  }
}

TEST(KvCaches, ShareThePagesOfAForkUntilOneIsWrittenTo) {
  PagePool pool(kLayout, {.pages = 4});
  CachedText text;
  ASSERT_TRUE(make_room(pool, text, 70));
  text.length = 70;
  *static_cast<float*>(pool.keys(1, text.pages[0][1]).data) = 5;
  CachedText other = forked(pool, text);
  EXPECT_EQ(pool.free_pages(), 2);
  ASSERT_TRUE(make_room(pool, other, 71));  // writes into the second page
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_EQ(other.pages[0][0], text.pages[0][0]);
  EXPECT_NE(other.pages[0][1], text.pages[0][1]);
  EXPECT_EQ(*static_cast<float*>(pool.keys(1, other.pages[0][1]).data), 5);
  ASSERT_TRUE(make_room(pool, text, 71));  // no copy: no other text uses its pages
  EXPECT_EQ(pool.free_pages(), 1);
  EXPECT_FALSE(make_room(pool, text, 200));
  EXPECT_EQ(pool.free_pages(), 1);
  shorten(pool, other, 0);
  shorten(pool, text, 64);
  EXPECT_EQ(pool.free_pages(), 3);
}

TEST(Layers, ListTheirParameters) {
  Linear plain(3, 4, false), biased(3, 4, true);
  EXPECT_EQ(names_of(plain), (std::vector<std::string>{"x.weight"}));
  EXPECT_EQ(names_of(biased), (std::vector<std::string>{"x.weight", "x.bias"}));
  NormSpec rms{.kind = NormKind::rms};
  Norm norm(rms, 4), absent(rms, 4, false);
  EXPECT_EQ(names_of(norm), (std::vector<std::string>{"x.weight"}));
  EXPECT_TRUE(names_of(absent).empty());
  StackSpec spec = small_stack();
  spec.ffn = {.gated = true, .width = 6, .bias = false};
  FeedForward gated(spec, 4, 0);
  EXPECT_EQ(names_of(gated),
            (std::vector<std::string>{"x.gate.weight", "x.up.weight", "x.down.weight"}));
  EXPECT_EQ(gated.down.weight.role, Role::residual_matrix);
  EXPECT_EQ(gated.up.weight.shape, (Shape{6, 4}));
  spec.attention.output_bias = false;
  Attention attention(spec, 8, 0, {});
  EXPECT_EQ(names_of(attention).size(), 7u);
  EXPECT_EQ(attention.key.weight.shape, (Shape{6, 8}));
  EXPECT_EQ(attention.output.weight.shape, (Shape{8, 12}));
}

TEST(Layers, ListOptionalParameters) {
  StackSpec spec = small_stack();
  spec.attention.key_bias = false;
  spec.attention.norm = QueryKeyNorm::head;
  spec.norm.kind = NormKind::rms;
  Attention heads(spec, 8, 0, {});
  EXPECT_EQ(names_of(heads),
            (std::vector<std::string>{"x.query.weight", "x.query.bias", "x.key.weight",
                                      "x.value.weight", "x.value.bias", "x.query_norm.weight",
                                      "x.key_norm.weight", "x.output.weight", "x.output.bias"}));
  EXPECT_EQ(heads.query_norm.weight.shape, (Shape{3}));
  spec.attention.norm = QueryKeyNorm::all;
  Attention all(spec, 8, 0, {});
  EXPECT_EQ(all.query_norm.weight.shape, (Shape{12}));
  EXPECT_EQ(all.key_norm.weight.shape, (Shape{6}));
  spec.ffn.experts = {.count = 2, .width = 5, .dense_layers = {1}};
  spec.ffn.bias = false;
  FeedForward mixture(spec, 8, 0), dense(spec, 8, 1);
  EXPECT_EQ(names_of(mixture),
            (std::vector<std::string>{"x.router.weight", "x.experts.0.up.weight",
                                      "x.experts.0.down.weight", "x.experts.1.up.weight",
                                      "x.experts.1.down.weight"}));
  EXPECT_EQ(mixture.experts[1].up.weight.shape, (Shape{5, 8}));
  EXPECT_EQ(names_of(dense), (std::vector<std::string>{"x.up.weight", "x.down.weight"}));
}

TEST(Layers, ListTheParametersOfSharedExpertsAndDynamicTanh) {
  StackSpec spec = small_stack();
  spec.ffn.bias = false;
  spec.ffn.experts = {.count = 1,
                      .chosen = 1,
                      .width = 5,
                      .dense_layers = {1},
                      .selection_bias = true,
                      .shared = 2,
                      .shared_width = 10,
                      .shared_gate = true};
  FeedForward mixture(spec, 8, 0), dense(spec, 8, 1);
  EXPECT_EQ(names_of(mixture),
            (std::vector<std::string>{"x.router.weight", "x.router.selection_bias",
                                      "x.experts.0.up.weight", "x.experts.0.down.weight",
                                      "x.shared.up.weight", "x.shared.down.weight",
                                      "x.shared_gate.weight"}));
  EXPECT_EQ(mixture.shared.up.weight.shape, (Shape{10, 8}));
  EXPECT_EQ(mixture.shared_gate.weight.shape, (Shape{1, 8}));
  EXPECT_FALSE(mixture.selection_bias.trainable);
  EXPECT_EQ(names_of(dense), (std::vector<std::string>{"x.up.weight", "x.down.weight"}));
  NormSpec dyt{.kind = NormKind::dyt};
  Norm norm(dyt, 4), absent(dyt, 4, false);
  EXPECT_EQ(names_of(norm), (std::vector<std::string>{"x.weight", "x.bias", "x.alpha"}));
  EXPECT_EQ(norm.alpha.shape, (Shape{1}));
  EXPECT_TRUE(names_of(absent).empty());
}

TEST(Layers, UseSeparateDropoutStreams) {
  std::set<uint32_t> substreams;
  for (const uint32_t first : {kDecoderSubstreams, kCrossSubstreams, kEncoderSubstreams}) {
    substreams.insert(first);  // of the embedding's dropout
    for (int64_t layer = 0; layer < 4096; ++layer)
      for (const auto which : {Sublayer::attention_weights, Sublayer::attention, Sublayer::ffn})
        substreams.insert(dropout_substream(first, layer, which));
  }
  EXPECT_EQ(substreams.size(), 3u * (1 + 3 * 4096));
  Pass pass;
  EXPECT_EQ(pass.dropout_at(0.5f, 3).probability, 0);
  pass.training = true;
  pass.dropout.step = 7;
  EXPECT_EQ(pass.dropout_at(0.5f, 3).probability, 0.5f);
  EXPECT_EQ(pass.dropout_at(0.5f, 3).substream, 3u);
  EXPECT_EQ(pass.dropout_at(0.5f, 3).step, 7u);
}

TEST(Norms, AreOptional) {
  const Tensor x = normal({3, 4}, 1);
  const Norm absent({}, 4, false);
  EXPECT_EQ(absent(x, DType::f32).data(), x.data());
  EXPECT_EQ(absent(x, DType::bf16).dtype(), DType::bf16);
}

TEST(FeedForwards, MultiplyByTheActivatedGate) {
  StackSpec spec = small_stack();
  spec.ffn = {.activation = Activation::relu, .gated = true, .width = 1, .bias = false};
  FeedForward gated(spec, 1, 0);
  gated.gate.weight.value = full({1, 1}, 2);
  gated.up.weight.value = full({1, 1}, 5);
  gated.down.weight.value = full({1, 1}, 10);
  EXPECT_EQ(to_floats(gated(tensor_of({3, -3}, {2, 1}), {})), (std::vector<float>{900, 0}));
}

// y = sum over the chosen experts of weight * expert(x) + sigmoid(gate x) * shared(x), computed
// expert by expert for one token.
TEST(FeedForwards, AddTheSharedExperts) {
  StackSpec spec = small_stack();
  spec.ffn.experts = {.count = 3,
                      .width = 5,
                      .score = ExpertScore::sigmoid,
                      .selection_bias = true,
                      .scale = 3,
                      .shared = 1,
                      .shared_width = 7,
                      .shared_gate = true};
  FeedForward mixture(spec, 8, 0);
  test::randomise(mixture, 3);
  const Tensor x = normal({1, 8}, 1);
  const auto through = [&](const FeedForward::Expert& expert) {
    return to_floats(expert.down(activation(expert.up(x), mixture.kind)));
  };
  const Routing routing = mixture.routing(mixture.router_logits(x));
  const float gate = to_floats(activation(mixture.shared_gate(x), Activation::sigmoid))[0];
  std::vector<float> expected = through(mixture.shared);
  for (float& y : expected) y *= gate;
  for (int64_t j = 0; j < 2; ++j) {
    const int32_t e = routing.experts.data_as<int32_t>()[j];
    const auto y = through(mixture.experts[static_cast<size_t>(e)]);
    for (size_t i = 0; i < y.size(); ++i) expected[i] += routing.weights.data_as<float>()[j] * y[i];
  }
  const auto actual = to_floats(mixture(x.view({1, 1, 8}), {}));
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

TEST(Norms, OfTheKindDytAreScaledTanhs) {
  Norm norm({.kind = NormKind::dyt}, 2);
  norm.weight.value = tensor_of({2, -1}, {2});
  norm.bias.value = tensor_of({0.5f, 0}, {2});
  norm.alpha.value = tensor_of({0.25f}, {1});
  const auto y = to_floats(norm(tensor_of({4, -2}, {1, 2}), DType::f32));
  EXPECT_NEAR(y[0], 2 * std::tanh(1.0) + 0.5, 1e-6);
  EXPECT_NEAR(y[1], -std::tanh(-0.5), 1e-6);
}

// DeepNorm (Wang et al. 2022, 2.1): y = norm(alpha x + sublayer(x)).
TEST(Blocks, ScaleTheResidual) {
  StackSpec spec = small_stack();
  spec.placement = {false, false, true};
  spec.residual_scale = 1.75f;
  Block block(spec, {}, 8, 0, false, kDecoderSubstreams);
  test::randomise(block, 3);
  const Tensor x = normal({2, 3, 8}, 1);
  const DType f32 = DType::f32;
  const Tensor h =
      block.attention_norm.sum(add(scale(x, 1.75f), std::get<Attention>(block.mixer)(x, {})), f32);
  const Tensor y = block.ffn_norm.sum(add(scale(h, 1.75f), (*block.ffn)(h, {})), f32);
  EXPECT_EQ(to_floats(block(x, {})), to_floats(y));
}

// A block computes the formula of Placement in spec.h for every placement of the norms.
TEST(Blocks, PlaceNormsByTheSpec) {
  for (int placement = 0; placement < 8; ++placement) {
    StackSpec spec = small_stack();
    spec.placement = {(placement & 1) != 0, (placement & 2) != 0, (placement & 4) != 0};
    Block block(spec, {}, 8, 0, false, kDecoderSubstreams);
    test::randomise(block, 3);
    const Tensor x = normal({2, 3, 8}, 1);
    LayerPass pass;
    pass.mask.causal = true;
    const DType f32 = DType::f32;
    const Norms &a = block.attention_norm, &f = block.ffn_norm;
    const Tensor h =
        a.sum(add(x, a.output(std::get<Attention>(block.mixer)(a.input(x, f32), pass), f32)), f32);
    const Tensor y = f.sum(add(h, f.output((*block.ffn)(f.input(h, f32), pass), f32)), f32);
    EXPECT_EQ(to_floats(block(x, pass)), to_floats(y)) << placement;
  }
}

TEST(Blocks, ReadTheSameStreamInParallel) {
  StackSpec spec = small_stack();
  spec.parallel = true;
  Block block(spec, {}, 8, 0, false, kDecoderSubstreams);
  test::randomise(block, 3);
  const Tensor x = normal({2, 3, 8}, 1);
  const DType f32 = DType::f32;
  const Tensor a = std::get<Attention>(block.mixer)(block.attention_norm.input(x, f32), {});
  const Tensor b = (*block.ffn)(block.ffn_norm.input(x, f32), {});
  EXPECT_EQ(to_floats(block(x, {})), to_floats(add(add(x, a), b)));
}

// Grouped attention equals attention with one key-value head per query head and repeated weights.
TEST(Attentions, ShareKeysAndValuesAmongGroupedHeads) {
  constexpr int64_t kHeads = 4, kGroups = 2, kWidth = 3, kModel = 8;
  StackSpec spec = small_stack();
  spec.attention = {
      .heads = kHeads, .kv_heads = kGroups, .head_width = kWidth, .value_width = kWidth};
  Attention grouped(spec, kModel, 0, {});
  test::randomise(grouped, 3);
  spec.attention.kv_heads = kHeads;
  Attention full_heads(spec, kModel, 0, {});
  full_heads.query = grouped.query;
  full_heads.output = grouped.output;
  const auto repeat = [](const Tensor& x) {
    const int64_t row = x.size() / (kGroups * kWidth);
    Tensor y = empty({kHeads * kWidth, row});
    for (int64_t i = 0; i < kHeads * kWidth; ++i) {
      const int64_t source = i / kWidth / (kHeads / kGroups) * kWidth + i % kWidth;
      std::memcpy(y.data_as<float>() + i * row, x.data_as<float>() + source * row,
                  static_cast<size_t>(row) * sizeof(float));
    }
    return x.rank() == 1 ? y.view({kHeads * kWidth}) : y;
  };
  full_heads.key.weight.value = repeat(grouped.key.weight.value);
  full_heads.key.bias.value = repeat(grouped.key.bias.value);
  full_heads.value.weight.value = repeat(grouped.value.weight.value);
  full_heads.value.bias.value = repeat(grouped.value.bias.value);
  const Tensor x = normal({2, 5, kModel}, 1);
  LayerPass pass;
  pass.mask.causal = true;
  const std::vector<float> a = to_floats(grouped(x, pass)), b = to_floats(full_heads(x, pass));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
}

TEST(Probes, ReceiveEachLayerAndTheRequestedWeights) {
  StackSpec spec = small_stack();
  Stack stack(spec, {}, {8, 0}, 4, Stack::Kind::decoder);
  test::randomise(stack, 3);
  std::vector<std::string> seen;
  Probe probe;
  probe.see = [&](const ProbePoint& point, const Tensor& value) {
    seen.push_back(name_of(point) + describe(value.shape()));
  };
  probe.wants_weights = [](const ProbePoint& point) { return point.layer == 1; };
  Pass pass;
  pass.probe = &probe;
  stack(normal({2, 3, 8}, 1), pass, {});
  const std::vector<std::string> expected = {
      "embedding[2, 3, 8]",       "hidden.0[2, 3, 8]",       "mixer_input.0[2, 3, 8]",
      "query.0[2, 3, 4, 3]",      "key.0[2, 3, 2, 3]",       "value.0[2, 3, 2, 3]",
      "heads.0[2, 3, 4, 3]",      "mixer_output.0[2, 3, 8]", "hidden_mid.0[2, 3, 8]",
      "mlp_input.0[2, 3, 8]",     "mlp_pre.0[2, 3, 20]",     "mlp_hidden.0[2, 3, 20]",
      "mlp_output.0[2, 3, 8]",    "hidden.1[2, 3, 8]",       "mixer_input.1[2, 3, 8]",
      "query.1[2, 3, 4, 3]",      "key.1[2, 3, 2, 3]",       "value.1[2, 3, 2, 3]",
      "scores.1[2, 4, 3, 3]",     "attention.1[2, 4, 3, 3]", "heads.1[2, 3, 4, 3]",
      "mixer_output.1[2, 3, 8]",  "hidden_mid.1[2, 3, 8]",   "mlp_input.1[2, 3, 8]",
      "mlp_pre.1[2, 3, 20]",      "mlp_hidden.1[2, 3, 20]",  "mlp_output.1[2, 3, 8]",
      "hidden.unnormed[2, 3, 8]", "hidden.2[2, 3, 8]"};
  EXPECT_EQ(seen, expected);
}

TEST(Probes, MayReplaceAValue) {
  const StackSpec spec = small_stack();
  Stack stack(spec, {}, {8, 0}, 4, Stack::Kind::decoder);
  test::randomise(stack, 3);
  const ProbePoint start{ProbePoint::What::hidden, 0};
  Tensor kept;
  Probe probe;
  Pass pass;
  pass.probe = &probe;
  probe.see = [&](const ProbePoint& point, Tensor& value) {
    if (point == start) kept = value;
  };
  const std::vector<float> expected = to_floats(stack(normal({2, 3, 8}, 1), pass, {}));
  probe.see = [&](const ProbePoint& point, Tensor& value) {
    if (point == start) value = kept;
  };
  EXPECT_EQ(to_floats(stack(normal({2, 3, 8}, 2), pass, {})), expected);
}

TEST(RotaryFrequencies, FollowTheLengthWithDynamicScaling) {
  RotarySpec spec;
  spec.scaling = RotaryScaling::dynamic;
  spec.factor = 2;
  spec.original_context = 8;
  const std::vector<float> short_text = rotary_frequencies(spec, 8, 8),
                           long_text = rotary_frequencies(spec, 8, 16);
  for (int i = 0; i < 4; ++i) {
    const double theta = 10000 * std::pow(2.0 * 16 / 8 - 1, 8.0 / 6);
    EXPECT_NEAR(short_text[size_t(i)], std::pow(10000, -i / 4.0), 1e-7);
    EXPECT_NEAR(long_text[size_t(i)], std::pow(theta, -i / 4.0), 1e-7);
  }
}

// By build_relative_position() of transformers for DeBERTa-v2.
TEST(DistanceRows, AreSingleDistancesAndThenRanges) {
  const auto rows_of = [](int64_t rows, int64_t largest, const std::vector<int64_t>& distances) {
    std::vector<int64_t> found;
    for (const int64_t distance : distances) found.push_back(distance_row(distance, rows, largest));
    return found;
  };
  const std::vector<int64_t> distances = {-10, -9, -6, -4, -3, 0, 1, 2, 3, 4, 5, 6, 9, 10, 99};
  EXPECT_EQ(rows_of(12, 10, distances),
            (std::vector<int64_t>{0, 1, 1, 2, 3, 6, 7, 8, 9, 10, 10, 11, 11, 11, 11}));
  EXPECT_EQ(rows_of(12, 6, distances),
            (std::vector<int64_t>{0, 0, 0, 2, 3, 6, 7, 8, 9, 10, 11, 11, 11, 11, 11}));
  EXPECT_EQ(rows_of(512, 512, {-511, -200, 128, 129, 200, 511, 600}),
            (std::vector<int64_t>{1, 87, 384, 385, 425, 511, 511}));
}

}  // namespace
}  // namespace fovea::model
