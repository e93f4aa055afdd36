#include "transformer/transformer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "ops/units.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"
#include "support/has_gradient.h"
#include "support/mixtures.h"
#include "support/small_spec.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

using test::causal_pass;
using test::made;
using test::some_ids;

Spec tiny() { return test::small_decoder({.vocabulary = 7, .context = 6, .width = 6}); }

std::vector<Tensor> values_of(Transformer& model) {
  std::vector<Tensor> values;
  model.each([&](const std::string&, Parameter& p) { values.push_back(p.value); });
  return values;
}

Pass training_pass(DType compute) {
  Pass pass = causal_pass(compute);
  pass.training = true;
  pass.dropout = {.seed = 3, .step = 4};
  return pass;
}

TEST(Transformers, HaveTheGradientsOfFiniteDifferences) {
  for (const auto& [name, spec] : test::mixtures(tiny())) {
    SCOPED_TRACE(name);
    Transformer model = made(spec);
    std::vector<Tensor> parameters;
    model.each([&](const std::string&, Parameter& p) {
      p.value = convert(p.value, DType::f64);
      if (test::has_gradient(p.role)) parameters.push_back(p.value);
    });
    const Tensor ids = some_ids({2, 5}, 7), targets = some_ids({2, 5}, 7, 6);
    targets.data_as<int32_t>()[3] = -100;
    const auto loss = [&](const std::vector<Tensor>& values) {
      size_t n = 0;
      model.each([&](const std::string&, Parameter& p) {
        if (test::has_gradient(p.role)) p.value = values[n++];
      });
      const Tensor logits = model.logits(model.hidden(ids, training_pass(DType::f64)));
      return cross_entropy(logits, targets);
    };
    test::check_gradients(parameters, loss, 12);
  }
}

// The loss of large logits, which are computed in blocks, and its gradients: two halves of the
// rows, whose logits are computed at once, are the two units of the whole.
TEST(Transformers, ComputeLargeLogitsInBlocksWithTheSameBits) {
  constexpr int64_t kRows = 2000, kHalf = kRows / 2, kVocabulary = 70000, kWidth = 8;
  static_assert(kRows * kVocabulary > kLogitsAtOnce && kHalf * kVocabulary <= kLogitsAtOnce);
  Spec spec = test::small_decoder(
      {.vocabulary = kVocabulary, .context = 8, .width = kWidth, .layers = 1, .heads = 2});
  spec.head.bias = true;
  Transformer model = made(validated(spec));
  const Tensor& weight = model.token_embedding.value.want_gradient();
  const Tensor& bias = model.head.output.bias.value.want_gradient();
  const Tensor hidden = convert(test::normal({kRows, kWidth}, 3), DType::f32);
  const Tensor labels = some_ids({kRows}, kVocabulary, 6);
  struct Found {
    double loss = 0;
    std::vector<std::vector<float>> gradients;
    bool operator==(const Found&) const = default;
  };
  const auto found = [&](int64_t parts) {
    Found all;
    std::vector<float> of_rows;
    weight.clear_gradient();
    bias.clear_gradient();
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = part * kRows / parts, end = (part + 1) * kRows / parts;
      const Tensor x = copy(hidden.rows(begin, end)).want_gradient();
      const UnitScope units({2 / parts, nullptr});
      const Tensor loss =
          model.loss(x, {}, labels.rows(begin, end), {.divisor = kRows, .smoothing = 0.1f});
      all.loss += number_of(loss);
      backward(loss);
      const std::vector<float> own = to_floats(x.gradient());
      of_rows.insert(of_rows.end(), own.begin(), own.end());
    }
    all.gradients = {of_rows, to_floats(weight.gradient()), to_floats(bias.gradient())};
    return all;
  };
  const Found whole = found(1), halves = found(2);
  EXPECT_EQ(whole.loss, halves.loss);
  EXPECT_TRUE(whole == halves);
}

// The initial table has the sines and cosines that a model without a table computes.
TEST(Transformers, TurnQueriesAndKeysByAStoredTable) {
  const NoGradient off;
  Spec spec = tiny();
  spec.decoder->position.kind = PositionKind::rotary;
  spec.decoder->attention.head_width = 4;
  Transformer computed(validated(spec));
  spec.decoder->position.stored = true;
  Transformer stored(validated(spec));
  initialise(stored, 1);
  std::map<std::string, Tensor> values;
  stored.each([&](const std::string& name, Parameter& p) { values[name] = p.value; });
  computed.each([&](const std::string& name, Parameter& p) { p.value = values.at(name); });
  const Tensor ids = some_ids({2, 5}, 7);
  const std::vector<float> expected = to_floats(computed.hidden(ids, causal_pass()));
  const std::vector<float> found = to_floats(stored.hidden(ids, causal_pass()));
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
}

// Gradients in fp32 and bf16 are close to those in double precision.
TEST(Transformers, HaveGradientsNearThoseInDouble) {
  Spec base = tiny();
  base.width = 16;
  for (const auto& [name, spec] : test::mixtures(base)) {
    const auto gradients = [&, &chosen = spec](DType parameters, DType compute) {
      Transformer model = made(chosen);
      model.each([&](const std::string&, Parameter& p) {
        p.value = convert(p.value, parameters);
        p.value.want_gradient();
      });
      const Tensor hidden = model.hidden(some_ids({2, 5}, 7), training_pass(compute));
      backward(cross_entropy(model.logits(hidden), some_ids({2, 5}, 7, 6)));
      return values_of(model);
    };
    const auto exact = gradients(DType::f64, DType::f64);
    for (const auto& [compute, allowed] : {std::pair{DType::f32, 1e-4}, {DType::bf16, 0.06}}) {
      const auto actual = gradients(DType::f32, compute);
      double error = 0, square = 0;
      for (size_t n = 0; n < exact.size(); ++n) {
        // Experts that no token chose, and selection biases, have no gradient.
        ASSERT_EQ(bool(exact[n].gradient()), bool(actual[n].gradient())) << name;
        if (!exact[n].gradient()) continue;
        for (int64_t i = 0; i < exact[n].size(); ++i) {
          const double e = test::at(exact[n].gradient(), i);
          error += std::pow(test::at(actual[n].gradient(), i) - e, 2);
          square += e * e;
        }
      }
      // Updates that overshoot amplify the rounding of keys.
      const double most = compute == DType::bf16 && spec.decoder->delta.doubled ? 0.15 : allowed;
      EXPECT_LE(std::sqrt(error / square), most) << name << ' ' << name_of(compute);
    }
  }
}

// With packed bf16 weights, operands of products are bf16 in inference; a probe, with which each
// step has its own kernel, does not change the bits.
TEST(Transformers, InferWithPackedBf16CloseToFp32) {
  const NoGradient off;
  Spec base = tiny();
  base.width = 16;
  for (const auto& [name, spec] : test::mixtures(base)) {
    Transformer model = made(spec);
    const Tensor ids = some_ids({2, 5}, 7);
    Pass pass = causal_pass(DType::f32);
    const Tensor exact = model.hidden(ids, pass);
    pack(model, WeightFormat::bf16);
    const Tensor rounded = model.hidden(ids, pass);
    EXPECT_EQ(rounded.dtype(), DType::f32) << name;
    double error = 0, square = 0;
    for (int64_t i = 0; i < exact.size(); ++i) {
      error += std::pow(test::at(rounded, i) - test::at(exact, i), 2);
      square += std::pow(test::at(exact, i), 2);
    }
    EXPECT_LE(std::sqrt(error / square), 0.03) << name;
    const Probe probe{.see = [](const ProbePoint&, Tensor&) {}};
    pass.probe = &probe;
    EXPECT_EQ(to_floats(model.hidden(ids, pass)), to_floats(rounded)) << name;
  }
}

TEST(Transformers, TrainWithDropoutThatDependsOnSeedAndStepOnly) {
  Spec spec = tiny();
  spec.dropout = {0.2f, 0.2f, 0.2f};
  const Transformer model = made(validated(spec));
  const Tensor ids = some_ids({2, 5}, 7);
  const auto hidden = [&](uint64_t seed, uint64_t step, bool training = true) {
    Pass pass = training_pass(DType::f32);
    pass.dropout.seed = seed;
    pass.dropout.step = step;
    pass.training = training;
    return to_floats(model.hidden(ids, pass));
  };
  const NoGradient off;
  const auto first = hidden(1, 1);
  EXPECT_EQ(hidden(1, 1), first);
  EXPECT_NE(hidden(2, 1), first);
  EXPECT_NE(hidden(1, 2), first);
  EXPECT_NE(hidden(1, 1, false), first);
  EXPECT_EQ(hidden(1, 1, false), hidden(2, 2, false));
  // Each dropout has an effect: setting any of them to 0 changes the result.
  for (float DropoutSpec::* field :
       {&DropoutSpec::embedding, &DropoutSpec::attention, &DropoutSpec::residual}) {
    Spec other = spec;
    other.dropout.*field = 0;
    EXPECT_NE(to_floats(made(validated(other)).hidden(ids, training_pass(DType::f32))),
              to_floats(model.hidden(ids, training_pass(DType::f32))));
  }
}

TEST(Transformers, CountTheirParameters) {
  const auto count = [](Spec spec) {
    Transformer model(validated(spec));
    return parameter_count(model);
  };
  Spec gpt = preset("gpt2");
  gpt.vocabulary = 50257;
  EXPECT_EQ(count(gpt), 124439808);  // as published
  gpt.head.tied = false;
  EXPECT_EQ(count(gpt), 124439808 + 50257 * 768);
  const Spec s = tiny();
  constexpr int64_t kAttention = 4 * (6 * 6 + 6), kFfn = 2 * 24 * 6 + 24 + 6, kNorm = 12;
  EXPECT_EQ(count(s), 7 * 6 + 6 * 6 + 2 * (kAttention + kFfn + 2 * kNorm) + kNorm);
  for (const auto& [name, spec] : test::mixtures(s)) {
    Transformer model = made(spec);
    int64_t elements_held = 0;
    std::set<std::string> names;
    model.each([&](const std::string& parameter, Parameter& p) {
      elements_held += p.value.size();
      EXPECT_TRUE(names.insert(parameter).second) << parameter;
      EXPECT_EQ(p.value.shape(), p.shape);
    });
    EXPECT_EQ(parameter_count(model), elements_held) << name;
  }
}

TEST(Transformers, InitialiseFromTheSeed) {
  Spec spec = tiny();
  spec.width = 64;
  spec.init_deviation = 0.1f;
  Transformer a(validated(spec)), b(validated(spec)), c(validated(spec));
  initialise(a, 1);
  initialise(b, 1);
  initialise(c, 2);
  EXPECT_EQ(to_floats(a.token_embedding.value), to_floats(b.token_embedding.value));
  EXPECT_NE(to_floats(a.token_embedding.value), to_floats(c.token_embedding.value));
  a.each([&](const std::string& name, Parameter& p) {
    double square = 0;
    for (const float w : to_floats(p.value)) square += w * w;
    const double deviation = std::sqrt(square / static_cast<double>(p.value.size()));
    if (p.role == Role::gain) {
      EXPECT_EQ(to_floats(p.value), std::vector<float>(p.value.size(), 1)) << name;
    } else if (p.role == Role::bias) {
      EXPECT_EQ(deviation, 0) << name;
    } else {
      EXPECT_NEAR(deviation, p.role == Role::residual_matrix ? 0.05 : 0.1, 0.01) << name;
    }
  });
}

// DeepNorm (Wang et al. 2022, 2.2): the weights of values, outputs and feed-forward layers are
// multiplied by beta.
TEST(Transformers, InitialiseWithTheGainOfDeepNorm) {
  Spec spec = tiny();
  spec.width = 64;
  spec.init_deviation = 0.1f;
  spec.decoder->init_scale = 0.5f;
  spec.decoder->norm = {.kind = NormKind::dyt, .alpha = 0.75f};
  spec.decoder->ffn.experts = {.count = 2, .chosen = 1, .selection_bias = true, .shared = 1};
  spec.decoder->ffn.experts.dense_layers = {0};
  Transformer model(validated(spec));
  initialise(model, 1);
  model.each([&](const std::string& name, Parameter& p) {
    double square = 0;
    for (const float w : to_floats(p.value)) square += w * w;
    const double size = std::sqrt(square / static_cast<double>(p.value.size()));
    const auto ends = [&](const char* part) { return name.find(part) != std::string::npos; };
    if (p.role == Role::tanh_scale) {
      EXPECT_EQ(size, 0.75) << name;
    } else if (p.role == Role::selection_bias || p.role == Role::bias) {
      EXPECT_EQ(size, 0) << name;
    } else if (p.role != Role::gain) {
      const bool scaled =
          ends(".value.") || ends("attention.output.") || ends(".up.") || ends(".down.");
      EXPECT_NEAR(size, scaled ? 0.05 : 0.1, ends(".router.") ? 0.02 : 0.01) << name;
    }
  });
}

TEST(Transformers, InitialiseOutputsWithZeros) {
  Spec spec = tiny();
  spec.decoder->zero_outputs = true;
  Transformer model(validated(spec));
  initialise(model, 1);
  model.each([&](const std::string& name, Parameter& p) {
    const std::vector<float> w = to_floats(p.value);
    const bool zero = std::all_of(w.begin(), w.end(), [](float x) { return x == 0; });
    EXPECT_EQ(zero, p.role == Role::residual_matrix || p.role == Role::bias) << name;
  });
}

TEST(Transformers, KeepRoutersAndGatesOfSharedExpertsInFp32WhenPacked) {
  Spec spec = tiny();
  spec.decoder->ffn.experts = {
      .count = 2, .selection_bias = true, .shared = 1, .shared_gate = true};
  Transformer model(validated(spec));
  std::map<std::string, std::optional<WeightFormat>> formats;
  model.each([&](const std::string& name, Parameter& p) {
    if (name.starts_with("decoder.0.ffn."))
      formats[name.substr(14)] = packed_format(model.spec, name, p, WeightFormat::int4);
  });
  EXPECT_EQ(formats.at("router.weight"), WeightFormat::f32);
  EXPECT_EQ(formats.at("router.selection_bias"), std::nullopt);
  EXPECT_EQ(formats.at("shared_gate.weight"), WeightFormat::f32);
  EXPECT_EQ(formats.at("shared.up.weight"), WeightFormat::int4);
  EXPECT_EQ(formats.at("experts.1.down.weight"), WeightFormat::int4);
}

TEST(Transformers, PackTheMatricesOfTheInputAsFloats) {
  const Parameter matrix{{16, 12}, Role::matrix, {}};
  const auto format = [&](WeightFormat wanted) {
    return packed_format(tiny(), "input.patch.weight", matrix, wanted);
  };
  EXPECT_EQ(format(WeightFormat::f32), WeightFormat::f32);
  EXPECT_EQ(format(WeightFormat::bf16), WeightFormat::bf16);
  EXPECT_EQ(format(WeightFormat::int8), WeightFormat::f32);
  EXPECT_EQ(format(WeightFormat::q4_k), WeightFormat::f32);
}

TEST(Transformers, RefuseIdsAndLengthsOutOfRange) {
  const Transformer model = made(validated(tiny()));
  const NoGradient off;
  expect_error(ErrorKind::InvalidArgument, {"7 tokens", "at most 6"},
               [&] { model.hidden(zeros({1, 7}, DType::i32), causal_pass()); });
  Tensor ids = zeros({1, 2}, DType::i32);
  ids.data_as<int32_t>()[1] = 7;
  expect_error(ErrorKind::InvalidArgument, {"id 7 at position 1", "0 to 6"},
               [&] { model.hidden(ids, causal_pass()); });
  ids.data_as<int32_t>()[1] = -1;
  expect_error(ErrorKind::InvalidArgument, {"id -1"}, [&] { model.hidden(ids, causal_pass()); });
}

}  // namespace
}  // namespace fovea::model
