// Compares fine-tuning on conversations with PyTorch: the loss of each token in packed rows, and 20
// steps of AdamW of all weights and of an adapter of PEFT. tools/goldens/make_fine_tuning.py wrote
// the goldens.

#include <gtest/gtest.h>

#include <cmath>

#include "formats/peft/adapters.h"
#include "formats/peft/save.h"
#include "fovea/train/train.h"
#include "loop/passes.h"
#include "open/directory.h"
#include "optim/optimizer.h"
#include "safetensors/safetensors.h"
#include "support/temporary_folder.h"
#include "support/updates.h"
#include "tasks/packed_examples.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

const std::string kFineTuning = "tests/goldens/fine_tuning/";
constexpr int64_t kRow = 128;         // two conversations share a row
constexpr double kSameUpdate = 1e-4;  // of the norm of the update
constexpr double kSameTokenLoss = 1e-5;

class FineTuning : public testing::Test {
 protected:
  struct Number {
    int64_t operator()(int64_t i) const { return values.data_as<int64_t>()[i]; }
    Tensor values;
  };

  // Returns all conversations as one batch.
  train::PackedExamples examples() const {
    const Number ids{expected_.tensor("ids")}, mask{expected_.tensor("mask")},
        lengths{expected_.tensor("lengths")};
    train::LabelledSequences texts;
    for (int64_t text = 0, begin = 0; text < lengths.values.size(); begin += lengths(text++)) {
      std::vector<int32_t> tokens, labels;
      for (int64_t i = begin; i < begin + lengths(text); ++i) {
        tokens.push_back(static_cast<int32_t>(ids(i)));
        const bool asks = i + 1 < begin + lengths(text) && mask(i + 1) == 1;
        labels.push_back(asks ? static_cast<int32_t>(ids(i + 1)) : -1);
      }
      texts.ids.add(tokens);
      texts.labels.add(labels);
    }
    const int64_t count = texts.ids.count();
    return {texts, texts, {{0, count, 1}}, {.length = kRow, .batch = count / 2}};
  }

  // Takes the steps of the goldens.
  void train_steps(model::Transformer& model, const std::string& run) const {
    const train::PackedExamples all = examples();
    const Tensor losses = expected_.tensor(run + ".losses");
    train::Optimizer optimizer(model::parameters_of(model),
                               {.beta2 = 0.999, .weight_decay = 0.1, .clip = 1});
    for (int64_t step = 0; step < losses.size(); ++step) {
      const auto loss_of = [&](const train::Batch& batch, const model::Pass& pass, double divisor) {
        return train::label_loss(model, batch, pass, divisor);
      };
      const double loss = train::backward_by_passes(all, step, {}, loss_of).loss;
      EXPECT_NEAR(loss, losses.data_as<float>()[step], 1e-5 * loss) << run << ", step " << step;
      optimizer.update(step + 1, 1e-3, optimizer.gradient_norm());
    }
  }

  const SafeTensors expected_{kFineTuning + "expected.safetensors"};
  const TemporaryFolder folder_;
};

TEST_F(FineTuning, HasTheTokenLossesOfPyTorch) {
  const model::ModelFiles files =
      model::open_model_files(kFineTuning + "model", model::Weights::mapped);
  const train::PackedExamples all = examples();
  const train::Batch batch = all.validation(0);  // the conversations in their order
  const NoGradient off;
  const Tensor logits = train::all_logits(files.model, batch, {});  // of the rows with labels
  const Tensor token_losses = expected_.tensor("token_losses");
  const Number lengths{expected_.tensor("lengths")};
  const int64_t V = logits.dim(-1);
  double sum = 0;
  int64_t compared = 0;
  for (int64_t text = 0, begin = 0; text < lengths.values.size(); begin += lengths(text++)) {
    for (int64_t i = 0; i + 1 < lengths(text); ++i) {
      const int64_t at = text * train::PackedRows::kTile + i;  // within the rows
      const int32_t label = batch.labels.data_as<int32_t>()[at];
      const double want = token_losses.data_as<float>()[begin + i + 1];
      ASSERT_EQ(label >= 0, want != 0) << text << ": " << i;
      if (label < 0) continue;
      const float* const row = logits.data_as<float>() + compared * V;
      double total = 0;
      for (int64_t v = 0; v < V; ++v) total += std::exp(double{row[v]});
      EXPECT_NEAR(std::log(total) - row[label], want, kSameTokenLoss * want) << text << ": " << i;
      sum += want;
      ++compared;
    }
  }
  EXPECT_EQ(compared, batch.predictions);
  const double mean =
      number_of(train::label_loss(files.model, batch, {}, double(batch.predictions)));
  EXPECT_NEAR(mean, sum / static_cast<double>(compared), kSameTokenLoss * mean);
}

TEST_F(FineTuning, OfAllWeightsTakesTheStepsOfPyTorch) {
  model::ModelFiles files = model::open_model_files(kFineTuning + "model", model::Weights::owned);
  const auto tensors = [&] { return model::checkpoint_tensors(files.model, *files.origin.family); };
  const auto start = copied(tensors());
  train_steps(files.model, "full");
  EXPECT_LE(update_difference(start, tensors(), expected_, "full"), kSameUpdate);
}

TEST_F(FineTuning, OfAnAdapterTakesTheStepsOfPyTorch) {
  model::ModelFiles files = model::open_model_files(kFineTuning + "model", model::Weights::mapped,
                                                    {}, {{kFineTuning + "adapter", 1}});
  const auto tensors = [&] { return model::adapter_tensors(files.model, *files.origin.family); };
  const auto start = copied(tensors());
  EXPECT_EQ(start.size(), 28u);
  train_steps(files.model, "lora");
  EXPECT_LE(update_difference(start, tensors(), expected_, "lora"), kSameUpdate);
}

// The whole way from the text: the template, the masks, the packing, the order and the optimiser.
TEST_F(FineTuning, OfConversationsTakesTheStepsOfPyTorch) {
  train::TrainOptions o;
  o.data = {kFineTuning + "chats.jsonl"};
  o.from = kFineTuning + "model";
  o.out = folder_ / "out";
  o.steps = 20;
  o.batch = 3;
  o.length = kRow;
  o.learning_rate = 1e-3;
  o.schedule = train::Schedule::constant;
  o.warmup = 0;
  o.beta2 = 0.999;
  o.validation = 0;
  o.sample_tokens = 0;
  o.precision = train::Precision::fp32;
  train::train({}, o);
  const auto tensors_of = [](const std::string& folder) {
    model::ModelFiles files = model::open_model_files(folder, model::Weights::owned);
    return model::checkpoint_tensors(files.model, *files.origin.family);
  };
  EXPECT_LE(update_difference(tensors_of(o.from), tensors_of(o.out), expected_, "full"),
            kSameUpdate);
}

}  // namespace
}  // namespace fovea
