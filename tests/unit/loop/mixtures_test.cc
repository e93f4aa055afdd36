// For many mixtures of the fields of a Spec: the gradients are exact, a cache gives the same bits,
// saving and opening preserves the model, and training reduces the loss.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "open/directory.h"
#include "ops/units.h"
#include "optim/optimizer.h"
#include "support/gpu.h"
#include "support/gradient_check.h"
#include "support/has_gradient.h"
#include "support/random_parameters.h"
#include "support/second_device.h"
#include "support/temporary_folder.h"
#include "unit/loop/all_mixtures.h"

namespace fovea::train {
namespace {

using test::Mixture;

constexpr int64_t kBatch = 2, kTokens = test::kMixtureTokens;
constexpr int kShards = 8;

Tensor ids_below(int64_t most, Shape shape, uint64_t seed) {
  Tensor ids = empty(std::move(shape), DType::i32);
  Random random(seed, Stream::init);
  for (int64_t i = 0; i < ids.size(); ++i)
    ids.data_as<int32_t>()[i] = static_cast<int32_t>(random.word() % static_cast<uint32_t>(most));
  return ids;
}

// The inputs of a model: `source` for its encoder, `tokens` for its decoder.
struct TextBatch {
  model::Sequence source, tokens;
  std::vector<Interval> valid;  // valid tokens of each source

  explicit TextBatch(const model::Spec& s) {
    const int64_t words = s.source_vocabulary > 0 ? s.source_vocabulary : s.vocabulary;
    if (s.input.kind == model::InputKind::image)
      source.signal = noise({kBatch, s.input.channels, s.input.size, s.input.size});
    else if (s.input.kind == model::InputKind::audio)
      source.signal = noise({kBatch, s.input.bins, 2 * s.input.frames});
    else
      source.ids = ids_below(words, {kBatch, kTokens}, 1), valid = {{0, kTokens}, {0, kTokens - 3}};
    if (s.decoder) tokens.ids = ids_below(s.vocabulary, {kBatch, kTokens}, 2);
    if (s.token_types > 0) source.types = ids_below(s.token_types, {kBatch, kTokens}, 3);
  }
  static Tensor noise(Shape shape) {
    return convert(test::normal(std::move(shape), 4), DType::f32);
  }
};

// Returns `pass`, with the encoder's output if a decoder attends to it.
model::Pass with_memory(const model::Transformer& model, const TextBatch& batch, model::Pass pass) {
  if (!model.spec.encoder || !model.spec.decoder) return pass;
  model::Pass encoding = pass;
  encoding.mask.valid = batch.valid;
  pass.memory = model.encode(batch.source, encoding);
  pass.memory_valid = batch.valid;
  return pass;
}

Tensor outputs(const model::Transformer& model, const TextBatch& batch, model::Pass pass) {
  if (model.spec.decoder) {
    const model::Pass across = with_memory(model, batch, pass);
    return model.logits(model.decode(batch.tokens, across));
  }
  pass.mask.valid = batch.valid;
  return model.logits(model.encode(batch.source, pass), batch.valid);
}

Tensor loss_of(const model::Transformer& model, const TextBatch& batch, model::Pass pass) {
  std::vector<Tensor> side_losses;
  pass.side_losses = &side_losses;
  const Tensor logits = outputs(model, batch, pass);
  const Shape rows(logits.shape().begin(), logits.shape().end() - 1);
  Tensor loss = cross_entropy(logits, ids_below(logits.dim(-1), rows, 5));
  for (const Tensor& side : side_losses) loss = add(loss, side);
  return loss;
}

Tensor loss_of(const model::Transformer& model, const TextBatch& batch, DType compute) {
  model::Pass pass;
  pass.compute = compute;
  return loss_of(model, batch, pass);
}

std::vector<Tensor> values_of(model::Transformer& model) {
  std::vector<Tensor> values;
  model.each([&](const std::string&, model::Parameter& p) { values.push_back(p.value); });
  return values;
}

model::Transformer random_model(const model::Spec& spec) {
  model::Transformer model(spec);
  test::randomise(model, 1);
  return model;
}

class Mixtures : public testing::TestWithParam<int> {
 protected:
  // Calls f(spec) for the mixtures of this shard.
  template <class Check>
  static void each(Check&& f) {
    const std::vector<Mixture> all = test::all_mixtures();
    for (size_t i = static_cast<size_t>(GetParam()); i < all.size(); i += kShards) {
      SCOPED_TRACE(all[i].name);
      try {
        f(all[i].spec);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Shard, Mixtures, testing::Range(0, kShards));

TEST(AllMixtures, AreAtLeastSixty) { EXPECT_GE(test::all_mixtures().size(), 60u); }

TEST_P(Mixtures, MatchCentralDifferences) {
  each([](const model::Spec& spec) {
    model::Transformer model = random_model(spec);
    const TextBatch batch(spec);
    std::vector<Tensor> parameters;
    model.each([&](const std::string&, model::Parameter& p) {
      p.value = convert(p.value, DType::f64);
      if (test::has_gradient(p.role)) parameters.push_back(p.value);
    });
    const auto loss = [&](const std::vector<Tensor>& values) {
      size_t n = 0;
      model.each([&](const std::string&, model::Parameter& p) {
        if (test::has_gradient(p.role)) p.value = values[n++];
      });
      return loss_of(model, batch, DType::f64);
    };
    test::check_gradients(parameters, loss, 12);
  });
}

// Returns the loss and the gradients of a training pass with dropout.
std::vector<std::vector<float>> gradients_of(const model::Spec& spec, DType compute,
                                             int64_t recompute) {
  model::Transformer model = random_model(spec);
  for (const Tensor& value : values_of(model)) EXPECT_FALSE(value.wants_gradient());
  model.each([](const std::string&, model::Parameter& p) { p.value.want_gradient(); });
  model::Pass pass;
  pass.compute = compute;
  pass.training = true;
  pass.recompute = recompute;
  pass.dropout.seed = 3;
  pass.dropout.units = kBatch;
  std::vector<std::vector<float>> found;
  {
    const UnitScope units({kBatch, nullptr});
    const Tensor loss = loss_of(model, TextBatch(spec), pass);
    found.push_back(to_floats(loss));
    const UnitScope none({1, nullptr});  // backward() runs outside of the scope of the layers
    backward(loss);
  }
  model.each([&](const std::string&, model::Parameter& p) {
    found.push_back(p.value.gradient() ? to_floats(p.value.gradient()) : std::vector<float>());
  });
  return found;
}

TEST_P(Mixtures, HaveTheSameGradientsIfLayersAreComputedAgain) {
  each([](model::Spec spec) {
    spec.dropout = {0.1f, 0.2f, 0.3f};
    for (const DType compute : {DType::f32, DType::bf16}) {
      const auto kept = gradients_of(spec, compute, 0);
      for (const int64_t layers : {-1, 1})
        EXPECT_EQ(gradients_of(spec, compute, layers), kept)
            << name_of(compute) << ", " << layers << " layers";
    }
  });
}

// Returns the logits when the decoder reads its tokens in pieces of `piece` tokens.
std::vector<float> read_in_pieces(const model::Transformer& model, const TextBatch& batch,
                                  const model::Pass& pass, int64_t piece) {
  const Tensor ids = batch.tokens.ids;
  model::KvCache cache(model::page_layout(*model.spec.decoder, pass.compute), 1, model.spec.context,
                       model.token_embedding.device());
  model::Pass cached = pass;
  cached.cache = &cache;
  std::vector<float> all;
  for (int64_t begin = 0; begin < kTokens; begin += piece) {
    const int64_t end = std::min(kTokens, begin + piece);
    model::Sequence part;
    part.ids = ids.view({kTokens}).rows(begin, end).view({1, end - begin});
    const std::vector<float> logits = to_floats(model.logits(model.decode(part, cached)));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

TEST_P(Mixtures, GiveTheSameBitsWithACache) {
  const NoGradient off;
  each([](const model::Spec& spec) {
    if (!spec.decoder || spec.head.kind != model::HeadKind::language_model) return;
    const model::Transformer model = random_model(spec);
    TextBatch batch(spec);
    batch.tokens.ids = batch.tokens.ids.rows(1, 2);
    if (batch.source.ids) batch.source.ids = batch.source.ids.rows(1, 2);
    if (batch.source.signal) batch.source.signal = batch.source.signal.rows(1, 2);
    if (!batch.valid.empty()) batch.valid.erase(batch.valid.begin());
    for (const DType compute : {DType::f32, DType::bf16}) {
      model::Pass pass;
      pass.compute = compute;
      pass = with_memory(model, batch, pass);
      // Attention to keys cached in bf16 rounds queries and weights, attention without a cache not.
      const auto whole = compute == DType::f32
                             ? to_floats(model.logits(model.decode(batch.tokens, pass)))
                             : read_in_pieces(model, batch, pass, batch.tokens.ids.dim(1));
      for (const int64_t piece : {1, 2, 4, 7})
        EXPECT_EQ(read_in_pieces(model, batch, pass, piece), whole)
            << name_of(compute) << ", pieces of " << piece;
    }
  });
}

TEST_P(Mixtures, SurviveSavingAndOpening) {
  const NoGradient off;
  each([](const model::Spec& spec) {
    const TemporaryFolder folder;
    model::Transformer model = random_model(spec);
    model::save_model_files(folder.path(), model, 3);
    const model::ModelFiles files = model::open_model_files(folder.path(), model::Weights::mapped);
    EXPECT_EQ(model::write_spec(files.model.spec), model::write_spec(spec));
    EXPECT_TRUE(files.warnings.empty());
    const TextBatch batch(spec);
    EXPECT_EQ(to_floats(outputs(files.model, batch, {})), to_floats(outputs(model, batch, {})));
  });
}

TEST_P(Mixtures, LearnABatch) {
  each([](const model::Spec& spec) {
    for (const DType compute : {DType::f32, DType::bf16}) {
      model::Transformer model(spec);
      model::initialise(model, 1);
      const TextBatch batch(spec);
      Optimizer optimizer(model::parameters_of(model), {});
      float first = 0, last = 0;
      for (int step = 1; step <= 12; ++step) {
        const Tensor loss = loss_of(model, batch, compute);
        last = to_floats(loss)[0];
        if (step == 1) first = last;
        backward(loss);
        const double norm = optimizer.gradient_norm();
        EXPECT_TRUE(std::isfinite(norm));
        optimizer.update(step, 1e-2, norm);
      }
      EXPECT_LT(last, 0.98f * first) << name_of(compute);
    }
  });
}

// Returns the loss, the norm of the gradients, the updated parameters and the new logits.
std::vector<std::vector<float>> trained(model::Transformer& model, const TextBatch& batch,
                                        DType compute) {
  std::vector<std::vector<float>> results;
  Optimizer optimizer(model::parameters_of(model), {});
  const Tensor loss = loss_of(model, batch, compute);
  backward(loss);
  const double norm = optimizer.gradient_norm();
  optimizer.update(1, 1e-2, norm);
  results.push_back({to_floats(loss)[0], static_cast<float>(norm)});
  for (const Tensor& value : values_of(model)) results.push_back(to_floats(value));
  const NoGradient off;
  model::Pass pass;
  pass.compute = compute;
  results.push_back(to_floats(outputs(model, batch, pass)));
  return results;
}

TEST_P(Mixtures, GiveTheBitsOfTheReferenceOnAnotherDevice) {
  use_isa("reference");
  each([](const model::Spec& spec) {
    const TextBatch batch(spec);
    for (const DType compute : {DType::f32, DType::bf16}) {
      model::Transformer host = random_model(spec), other = random_model(spec);
      model::move_to(test::second_device(), other);
      EXPECT_EQ(trained(other, batch, compute), trained(host, batch, compute)) << name_of(compute);
    }
  });
  use_isa("auto");
}

// The entries of the table that the GPU device lacks, and that some mixtures need.
constexpr const char* kMissingOnGpu[] = {"attention_backward", "recurrent_cell", "distance_terms",
                                         "linear_attention", "causal_conv"};

// In fp32, and refuses what needs a kernel that is missing.
TEST_P(Mixtures, GiveTheBitsOfTheCpuOnTheGpu) {
  int compared = 0, refused = 0;
  each([&](const model::Spec& spec) {
    const TextBatch batch(spec);
    model::Transformer host = random_model(spec), other = random_model(spec);
    model::move_to(test::gpu_device(), other);
    try {
      const auto found = trained(other, batch, DType::f32);
      EXPECT_EQ(found, trained(host, batch, DType::f32));
      ++compared;
    } catch (const Error& error) {
      ++refused;
      const std::string_view message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::Unsupported) << message;
      EXPECT_TRUE(std::ranges::any_of(kMissingOnGpu, [&](const char* name) {
        return message.starts_with(std::string(name) + ":");
      })) << message;
    }
  });
  EXPECT_GT(compared, refused);
}

}  // namespace
}  // namespace fovea::train
