#include "loop/adapters.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/json.h"
#include "families/registry.h"
#include "formats/peft/adapters.h"
#include "fovea/model/convert.h"
#include "loop/stepper.h"
#include "start/evaluate_model.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "support/small_spec.h"
#include "tensor/tape.h"
#include "transformer/adapters.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

// A base model that was trained on a text, and options that train adapters of it.
class AdapterTraining : public testing::Test {
 protected:
  AdapterTraining() {
    TrainOptions first = runs_.options("base");
    first.steps = 10;
    train(small_spec(), first);
    options_.from = first.out;
    options_.lora.rank = 2;
    options_.learning_rate = 1e-2;
    options_.save_every = 4;
  }

  std::map<std::string, Tensor> stored(const std::string& path) const {
    const SafeTensors file(path);
    std::map<std::string, Tensor> all;
    for (const StoredTensor& tensor : file.stored())
      all[tensor.name] = copy(file.tensor(tensor.name));
    return all;
  }
  // Trains, and returns the adapter and the plan.
  std::pair<std::string, TrainPlan> trained(const TrainOptions& options) const {
    TrainPlan plan;
    train(small_spec(), options, [&](const TrainPlan& given) {
      plan = given;
      return true;
    });
    return {read_file(options.out + "/" + model::kAdapterTensors), plan};
  }

  double loss_of(const model::Model& model) const {
    return evaluate_next_tokens(model, {runs_ / "text.txt"}, {}, {}).loss;
  }

  const Runs runs_;
  TrainOptions options_ = runs_.options("out");
};

TEST_F(AdapterTraining, GivesTheSameBitsIfLayersAreComputedAgain) {
  options_.lora.dropout = 0.2;
  const std::string kept = trained(options_).first;
  options_.recompute = -1;
  options_.out = runs_ / "again";
  EXPECT_EQ(trained(options_).first, kept);
}

TEST_F(AdapterTraining, WritesAnAdapterOfTheBase) {
  const std::string before = read_file(options_.from + "/model.safetensors");
  const auto [bytes, plan] = trained(options_);
  EXPECT_EQ(read_file(options_.from + "/model.safetensors"), before);
  EXPECT_FALSE(fs::exists(options_.out + "/model.safetensors"));
  EXPECT_TRUE(fs::exists(options_.out + "/tokenizer.json"));

  // One layer: c_attn holds query, key and value, so its adapter has three times the rank.
  const auto tensors = stored(options_.out + "/" + model::kAdapterTensors);
  EXPECT_EQ(tensors.size(), 8);
  const std::string layer = std::string(model::kPeftPrefix) + "transformer.h.0.";
  EXPECT_EQ(tensors.at(layer + "attn.c_attn.lora_A.weight").shape(), (Shape{6, 16}));
  EXPECT_EQ(tensors.at(layer + "attn.c_attn.lora_B.weight").shape(), (Shape{48, 6}));
  EXPECT_EQ(tensors.at(layer + "mlp.c_fc.lora_A.weight").shape(), (Shape{2, 16}));
  const nlohmann::json config = read_json(options_.out + "/" + model::kAdapterConfig);
  EXPECT_EQ(config["base_model_name_or_path"], options_.from);
  EXPECT_EQ(config["r"], 2);
  EXPECT_EQ(config["lora_alpha"], 4);
  EXPECT_EQ(config["rank_pattern"], nlohmann::json({{"c_attn", 6}}));
  EXPECT_EQ(config["alpha_pattern"], nlohmann::json({{"c_attn", 12}}));
  EXPECT_EQ(config["fan_in_fan_out"], true);
  EXPECT_EQ(config["task_type"], "CAUSAL_LM");

  // Query, key, value, output, up and down: rank (in + out) each.
  EXPECT_EQ(plan.trained_parameters, 2 * (4 * (16 + 16) + 2 * (16 + 64)));
  const TrainPlan full = plan_training(small_spec(), [&] {
    TrainOptions all = options_;
    all.out = runs_ / "other";
    all.lora = {};
    return all;
  }());
  EXPECT_EQ(full.trained_parameters, full.parameters);
  EXPECT_EQ(plan.parameters, full.parameters + plan.trained_parameters);
  EXPECT_EQ(plan.optimizer_bytes, static_cast<uint64_t>(plan.trained_parameters) * 8);
  EXPECT_LT(plan.weight_bytes, full.weight_bytes);
}

TEST_F(AdapterTraining, LearnsAndOpensWithItsBase) {
  train(small_spec(), options_);
  const double before = loss_of(model::Model::open(options_.from)),
               after = loss_of(model::Model::open(options_.out));
  EXPECT_LT(after, before);
  const double added = loss_of(
      model::Model::open(options_.from, model::WeightPrecision::full, {}, {{options_.out}}));
  EXPECT_NEAR(added, after, 1e-6);
}

TEST_F(AdapterTraining, StoresOnlyTrainedWeightsInSnapshots) {
  train(small_spec(), options_, {}, stop_after(4));
  size_t count = 0;
  for (const auto& [name, tensor] :
       stored(model::snapshot_path(options_.out, 4) + "/state.safetensors")) {
    EXPECT_NE(name.find(".adapter."), name.npos) << name;
    ++count;
  }
  EXPECT_EQ(count, 3 * 2 * 6);  // weight, m and v of A and B of six layers
}

TEST_F(AdapterTraining, ResumesWithTheSameBits) {
  for (const bool dora : {false, true}) {
    TrainOptions whole = options_, parts = options_;
    whole.lora.dora = parts.lora.dora = dora;
    whole.lora.dropout = parts.lora.dropout = 0.2;
    whole.average = parts.average = 2;
    whole.evaluate_every = parts.evaluate_every = 5;
    whole.out = runs_ / (dora ? "whole_dora" : "whole");
    parts.out = runs_ / (dora ? "parts_dora" : "parts");
    train(small_spec(), parts, {}, stop_after(7));
    EXPECT_EQ(trained(whole).first, trained(parts).first);
    EXPECT_EQ(state_bytes(whole, whole.steps), state_bytes(parts, parts.steps));
  }
}

TEST_F(AdapterTraining, TrainsOverPackedWeights) {
  const double before = loss_of(model::Model::open(options_.from));
  std::map<BasePrecision, std::string> adapters;
  uint64_t fp32_bytes = 0;
  for (const BasePrecision base : {BasePrecision::fp32, BasePrecision::stored, BasePrecision::bf16,
                                   BasePrecision::int8, BasePrecision::int4}) {
    TrainOptions whole = options_, parts = options_;
    whole.lora.base = parts.lora.base = base;
    whole.out = runs_ / ("whole" + std::to_string(int(base)));
    parts.out = runs_ / ("parts" + std::to_string(int(base)));
    const auto [adapter, plan] = trained(whole);
    adapters[base] = adapter;
    train(small_spec(), parts, {}, stop_after(7));
    EXPECT_EQ(trained(parts).first, adapter);
    EXPECT_LT(loss_of(model::Model::open(whole.out)), before) << int(base);
    if (base == BasePrecision::fp32) fp32_bytes = plan.weight_bytes;
    if (base == BasePrecision::int4) {
      EXPECT_LT(plan.weight_bytes, fp32_bytes);
    }
  }
  // The file is fp32, and products with packed fp32 have the bits of other products.
  EXPECT_EQ(adapters[BasePrecision::stored], adapters[BasePrecision::fp32]);
  EXPECT_NE(adapters[BasePrecision::int4], adapters[BasePrecision::fp32]);
}

TEST_F(AdapterTraining, KeepsTheTypesOfAGgufFile) {
  const std::string file = runs_ / "base.gguf";
  model::convert_model(options_.from, file, {.quantize = model::Quantize::int8});
  options_.from = file;
  const auto [adapter, plan] = trained(options_);
  EXPECT_GT(adapter.size(), 0);
  const double before = loss_of(model::Model::open(file)),
               after = loss_of(model::Model::open(options_.out));
  EXPECT_LT(after, before);
}

TEST_F(AdapterTraining, OpensSnapshots) {
  train(small_spec(), options_);
  const model::Model last = open_snapshot(options_.out, options_.steps);
  EXPECT_EQ(loss_of(last), loss_of(model::Model::open(options_.out)));
}

TEST_F(AdapterTraining, AdaptsTheTargetsOnly) {
  options_.lora.targets = "c_attn,mlp.c_proj";
  train(small_spec(), options_);
  EXPECT_EQ(stored(options_.out + "/" + model::kAdapterTensors).size(), 4);
  const nlohmann::json config = read_json(options_.out + "/" + model::kAdapterConfig);
  // "c_proj" alone would also name the output of attention.
  EXPECT_EQ(config["target_modules"],
            nlohmann::json({"transformer.h.0.attn.c_attn", "transformer.h.0.mlp.c_proj"}));
  options_.out = runs_ / "wrong";
  options_.lora.targets = "q_proj";
  expect_error(ErrorKind::InvalidArgument, {"lora_targets", "\"q_proj\"", "c_attn, c_fc, c_proj"},
               [&] { train(small_spec(), options_); });
}

TEST_F(AdapterTraining, TrainsANewHeadOfLabelsAsAWhole) {
  write_file_atomically(runs_ / "labels.tsv", "the cat\tA\na mat\tB\nthe mat\tA\non a cat\tB\n");
  options_.data.clear();
  options_.labels = {runs_ / "labels.tsv"};
  options_.validation_labels = options_.labels;
  options_.best_by = "loss";
  train({}, options_);
  const auto tensors = stored(options_.out + "/" + model::kAdapterTensors);
  EXPECT_EQ(tensors.size(), 9);
  EXPECT_EQ(tensors.at(std::string(model::kPeftPrefix) + "score.weight").shape(), (Shape{2, 16}));
  const nlohmann::json config = read_json(options_.out + "/" + model::kAdapterConfig);
  EXPECT_EQ(config["modules_to_save"], nlohmann::json({"score"}));
  EXPECT_EQ(config["task_type"], "SEQ_CLS");
  const infer::Evaluation found =
      evaluate_by_task(model::Model::open(options_.out), options_, {}, {});
  EXPECT_GT(found.loss, 0);
}

TEST_F(AdapterTraining, UpdatesBFasterWithLoraPlus) {
  model::Spec spec = small_spec();
  spec.vocabulary = 11;
  model::Transformer model(model::validated(spec)), other = model;
  model::initialise(model, 3);
  TrainOptions o;
  o.lora.rank = 2;
  o.weight_decay = 0;
  add_new_adapters(model, model::gpt2, o.lora, 1);
  other = model;
  const auto moved = [&](model::Transformer& moving, double plus) {
    o.lora.plus = plus;
    for (const auto& [name, parameter] : model::parameters_of(moving))
      parameter->value = copy(parameter->value.detach());
    Optimizer optimizer(model::parameters_of(moving), optimizer_options(o, DType::f32));
    const Tensor ids = zeros({1, 4}, DType::i32);
    backward(cross_entropy(moving.logits(moving.hidden(ids, {})), ids, 4));
    optimizer.update(1, 1e-3, 1);
    std::map<std::string, float> first;
    for (const auto& [name, parameter] : model::parameters_of(moving))
      if (parameter->role == model::Role::adapter_up)
        first[name] = parameter->value.data_as<float>()[0];
    return first;
  };
  const auto slow = moved(model, 1), fast = moved(other, 8);
  ASSERT_EQ(slow.size(), 6);
  for (const auto& [name, value] : slow) EXPECT_NEAR(fast.at(name), 8 * value, 1e-6) << name;
}

TEST_F(AdapterTraining, RefusesOptionsThatDoNotFit) {
  const auto refused = [&](auto&& change, std::initializer_list<std::string> parts) {
    TrainOptions other = options_;
    other.out = runs_ / "refused";
    change(other);
    expect_error(ErrorKind::InvalidArgument, parts, [&] { train(small_spec(), other); });
  };
  refused([](auto& o) { o.from.clear(); }, {"lora: ", "`from`"});
  refused([](auto& o) { o.lora.rank = -1; }, {"lora: -1"});
  refused([](auto& o) { o.lora = {.dora = true}; }, {"dora: ", "`lora`"});
  refused([](auto& o) { o.lora = {.alpha = 3}; }, {"lora_alpha: ", "`lora`"});
  refused([](auto& o) { o.lora = {.targets = "c_fc"}; }, {"lora_targets: ", "`lora`"});
  train(small_spec(), options_);
  const auto further = [&](auto&& change) {
    return [this, change](auto& o) {
      o.from = options_.out;
      change(o.lora);
    };
  };
  refused(further([](auto& lora) { lora.rank = 3; }), {"lora: 3; expected 2"});
  refused(further([](auto& lora) { lora.alpha = 3; }), {"lora_alpha: 3; expected 4"});
  refused(further([](auto& lora) { lora.dora = true; }), {"dora: true; expected false"});
  refused(further([](auto& lora) { lora.targets = "c_fc"; }), {"lora_targets: given with"});
  options_.lora.alpha = 1;
  expect_error(ErrorKind::InvalidArgument, {"lora_alpha was 0.0 and is 1.0"},
               [&] { train(small_spec(), options_); });
}

TEST(AdaptersOfExperts, AreRefusedWithDora) {
  model::Spec spec = test::small_llama({.vocabulary = 9, .context = 8, .width = 16, .heads = 2}, 8);
  spec.decoder->ffn.experts = {.count = 3, .chosen = 2, .width = 8};
  model::Transformer model(model::validated(spec));
  AdapterOptions options;
  options.rank = 2;
  options.dora = true;
  expect_error(ErrorKind::InvalidArgument,
               {"dora: decoder.0.ffn.experts.0", "PEFT", "`lora_targets`"},
               [&] { add_new_adapters(model, model::mixtral, options, 1); });
  model::Transformer other(model.spec);
  options.targets = "q_proj,v_proj";
  add_new_adapters(other, model::mixtral, options, 1);
  EXPECT_TRUE(model::has_adapters(other));
}

}  // namespace
}  // namespace fovea::train
