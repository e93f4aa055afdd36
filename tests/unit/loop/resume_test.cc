#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "kernels/isa.h"
#include "loop/settings.h"
#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

class Resume : public testing::Test {
 protected:
  Resume() {
    options_.save_every = 4;
    options_.evaluate_every = 5;
  }

  void stop_at(int64_t step) const { train(small_spec(), options_, {}, stop_after(step)); }
  TrainPlan resume() const {
    TrainPlan plan;
    const TrainResult result = train(small_spec(), options_, [&](const TrainPlan& told) {
      plan = told;
      return true;
    });
    EXPECT_EQ(result.step, options_.steps);
    return plan;
  }
  std::string file(int64_t step) const {
    return model::snapshot_path(options_.out, step) + "/state.safetensors";
  }
  std::string log() const { return options_.out + "/log.jsonl"; }

  // Checks that every step and evaluation is logged once and in order.
  void expect_whole_log() const {
    std::vector<int64_t> steps, evaluations;
    std::ifstream lines(log());
    for (std::string line; std::getline(lines, line);) {
      const nlohmann::json json = parse_json(line, log());
      if (json.contains("loss")) steps.push_back(json["step"]);
      if (json.contains("eval_loss")) evaluations.push_back(json["step"]);
    }
    std::vector<int64_t> all(static_cast<size_t>(options_.steps));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i + 1);
    EXPECT_EQ(steps, all);
    EXPECT_EQ(evaluations, (std::vector<int64_t>{5, 10, 15, 20}));
  }

  Runs runs_;
  TrainOptions options_ = runs_.options("out");
};

TEST_F(Resume, NamesEveryChangedSetting) {
  stop_at(6);
  TrainOptions other = options_;
  other.batch = 5;
  other.learning_rate = 0.5;
  model::Spec spec = small_spec();
  spec.decoder->ffn.width = 24;
  expect_error(ErrorKind::InvalidArgument,
               {"out: ", "batch was 4 and is 5", "learning_rate was 0.001 and is 0.5", "spec.",
                "was 64 and is 24", "`allow_change`"},
               [&] { train(spec, other); });
  write_file_atomically(runs_ / "text.txt", words(601));
  expect_error(ErrorKind::InvalidArgument, {"data was"}, [&] { train(small_spec(), options_); });
}

using Change = std::function<void(TrainOptions&)>;
using Changes = std::vector<std::pair<const char*, Change>>;

// Those of reinforcement learning.
Changes decisive_changes_of_reinforcement() {
  return {{"evaluation_prompts", [](auto& o) { o.reinforcement.evaluation_prompts += 1; }},
          {"prompts", [](auto& o) { o.reinforcement.prompts += 1; }},
          {"generations", [](auto& o) { o.reinforcement.generations += 1; }},
          {"answer_tokens", [](auto& o) { o.reinforcement.answer_tokens += 1; }},
          {"sampling_temperature", [](auto& o) { o.reinforcement.sampling_temperature = 2; }},
          {"batch_epochs", [](auto& o) { o.reinforcement.batch_epochs += 1; }},
          {"minibatches", [](auto& o) { o.reinforcement.minibatches += 1; }},
          {"mask_truncated", [](auto& o) { o.reinforcement.mask_truncated = true; }},
          {"rewards", [](auto& o) { o.reinforcement.rewards = {"exact"}; }},
          {"reward_command", [](auto& o) { o.reinforcement.reward_command = "true"; }},
          {"advantage", [](auto& o) { o.reinforcement.advantage = AdvantageKind::rloo; }},
          {"policy_average", [](auto& o) { o.reinforcement.policy_average = PolicyAverage::dapo; }},
          {"clip_ratio", [](auto& o) { o.reinforcement.clip_ratio *= 2; }},
          {"clip_ratio_high", [](auto& o) { o.reinforcement.clip_ratio_high = 0.3; }},
          {"kl_weight", [](auto& o) { o.reinforcement.kl_weight = 0.1; }},
          {"kl_target", [](auto& o) { o.reinforcement.kl_target = 6; }},
          {"kl_horizon", [](auto& o) { o.reinforcement.kl_horizon *= 2; }},
          {"gamma", [](auto& o) { o.reinforcement.gamma = 0.5; }},
          {"gae_lambda", [](auto& o) { o.reinforcement.lambda = 0.5; }},
          {"clip_value", [](auto& o) { o.reinforcement.clip_value *= 2; }},
          {"value_weight", [](auto& o) { o.reinforcement.value_weight *= 2; }},
          {"whiten", [](auto& o) { o.reinforcement.whiten = false; }},
          {"score_clip", [](auto& o) { o.reinforcement.score_clip = 1; }},
          {"reward_clip", [](auto& o) { o.reinforcement.reward_clip = 1; }}};
}

Changes decisive_changes_of_preferences() {
  return {{"preference_beta", [](auto& o) { o.preferences.beta = 1; }},
          {"preference_loss", [](auto& o) { o.preferences.loss = PreferenceLoss::ipo; }},
          {"reference_free", [](auto& o) { o.preferences.reference_free = true; }},
          {"desirable_weight", [](auto& o) { o.preferences.desirable = 2; }},
          {"undesirable_weight", [](auto& o) { o.preferences.undesirable = 2; }},
          {"chosen_weight", [](auto& o) { o.preferences.chosen = 2; }},
          {"orpo_lambda", [](auto& o) { o.preferences.odds = 2; }},
          {"simpo_gamma", [](auto& o) { o.preferences.gamma = 2; }}};
}

// Those of the optimiser and of growing steps.
Changes decisive_changes_of_steps() {
  return {{"gradients", [](auto& o) { o.sharing.gradients = GradientPrecision::bf16; }},
          {"sync_every", [](auto& o) { o.sharing.sync_every += 9; }},
          {"outer_rate", [](auto& o) { o.sharing.outer_rate = 1; }},
          {"outer_momentum", [](auto& o) { o.sharing.outer_momentum = 0; }},
          {"optimizer", [](auto& o) { o.optimizer.kind = OptimizerKind::lion; }},
          {"momentum", [](auto& o) { o.optimizer.momentum = 0.5; }},
          {"nesterov", [](auto& o) { o.optimizer.nesterov = false; }},
          {"muon_scale", [](auto& o) { o.optimizer.muon_scale = MuonScale::spectral; }},
          {"muon_rate", [](auto& o) { o.optimizer.muon_rate = 2; }},
          {"relative_rate", [](auto& o) { o.optimizer.relative_rate = false; }},
          {"accumulate_from", [](auto& o) { o.accumulate_from += 1; }},
          {"window_from", [](auto& o) { o.window_from += 1; }},
          {"growth", [](auto& o) { o.growth /= 2; }}};
}

Changes decisive_changes_of_texts() {
  return {{"neighbours", [](auto& o) { o.neighbours += 1; }},
          {"negatives", [](auto& o) { o.negatives += 1; }},
          {"subsampling", [](auto& o) { o.subsampling *= 2; }},
          {"generator_size", [](auto& o) { o.generator_size *= 2; }},
          {"detection_weight", [](auto& o) { o.detection_weight *= 2; }}};
}

Changes decisive_changes_of_images() {
  return {{"image_crop", [](auto& o) { o.augmentation.crop = 0.5; }},
          {"mixup", [](auto& o) { o.augmentation.mixup = 0.2; }},
          {"rand_augment", [](auto& o) { o.augmentation.operations = 1; }},
          {"rand_augment_magnitude", [](auto& o) { o.augmentation.magnitude = 5; }},
          {"image_flip", [](auto& o) { o.augmentation.flip = true; }}};
}

// Returns a change of each option that affects the results. Options that the objective does not use
// are not compared.
Changes decisive_changes() {
  Changes all = {
      {"objective", [](auto& o) { o.objective = Objective::spans; }},
      {"from", [](auto& o) { o.from = "elsewhere"; }},
      {"steps", [](auto& o) { o.steps += 1; }},
      {"batch", [](auto& o) { o.batch += 1; }},
      {"batch_tokens", [](auto& o) { o.batch_tokens += 1; }},
      {"length", [](auto& o) { o.length += 1; }},
      {"document_mask", [](auto& o) { o.document_mask = true; }},
      {"accumulate", [](auto& o) { o.accumulate += 1; }},
      {"validation", [](auto& o) { o.validation = 0.3; }},
      {"source_prefix", [](auto& o) { o.source_prefix = "to Latin: "; }},
      {"problem_type", [](auto& o) { o.problem_type = model::ProblemType::multi_label; }},
      {"class_weights", [](auto& o) { o.class_weights = "balanced"; }},
      {"tokenizer", [](auto& o) { o.tokenizer = "bpe:300"; }},
      {"max_vocabulary", [](auto& o) { o.max_vocabulary = 12; }},
      {"chat_template", [](auto& o) { o.chat_template = "chatml"; }},
      {"train_on", [](auto& o) { o.train_on = TrainOn::last; }},
      {"too_long", [](auto& o) { o.too_long = TooLong::skip; }},
      {"learning_rate", [](auto& o) { o.learning_rate *= 2; }},
      {"final_rate", [](auto& o) { o.final_rate *= 2; }},
      {"warmup", [](auto& o) { o.warmup += 1; }},
      {"schedule", [](auto& o) { o.schedule = Schedule::trapezoid; }},
      {"decay_fraction", [](auto& o) { o.decay_fraction *= 2; }},
      {"beta1", [](auto& o) { o.beta1 = 0.8; }},
      {"beta2", [](auto& o) { o.beta2 = 0.8; }},
      {"epsilon", [](auto& o) { o.epsilon *= 2; }},
      {"weight_decay", [](auto& o) { o.weight_decay *= 2; }},
      {"clip", [](auto& o) { o.clip *= 2; }},
      {"moments", [](auto& o) { o.moments = MomentPrecision::bits8; }},
      {"label_smoothing", [](auto& o) { o.label_smoothing = 0.1; }},
      {"mask", [](auto& o) { o.mask *= 2; }},
      {"mean_span", [](auto& o) { o.mean_span *= 2; }},
      {"average", [](auto& o) { o.average += 1; }},
      {"average_of", [](auto& o) { o.average_of = Averaged::best; }},
      {"lora", [](auto& o) { o.lora.rank += 1; }},
      {"lora_alpha", [](auto& o) { o.lora.alpha += 1; }},
      {"lora_targets", [](auto& o) { o.lora.targets = "query"; }},
      {"lora_dropout", [](auto& o) { o.lora.dropout = 0.1; }},
      {"rslora", [](auto& o) { o.lora.rslora = true; }},
      {"dora", [](auto& o) { o.lora.dora = true; }},
      {"lora_plus", [](auto& o) { o.lora.plus = 4; }},
      {"lora_base", [](auto& o) { o.lora.base = BasePrecision::int4; }},
      {"temperature", [](auto& o) { o.distillation.temperature = 2; }},
      {"distillation_alpha", [](auto& o) { o.distillation.alpha = 0.7; }},
      {"teacher_top_k", [](auto& o) { o.distillation.top_k = 5; }},
      {"on_policy", [](auto& o) { o.distillation.on_policy += 0.1; }},
      {"divergence_beta", [](auto& o) { o.distillation.divergence_beta = 0.1; }},
      {"freeze", [](auto& o) { o.freeze = {"0"}; }},
      {"seed", [](auto& o) { o.seed += 1; }},
      {"evaluate_every", [](auto& o) { o.evaluate_every += 1; }},
      {"evaluate_windows", [](auto& o) { o.evaluate_windows += 1; }},
      {"best_by", [](auto& o) { o.best_by = "accuracy"; }},
      {"bleu_lines", [](auto& o) { o.bleu_lines += 1; }}};
  for (const Changes& more :
       {decisive_changes_of_preferences(), decisive_changes_of_reinforcement(),
        decisive_changes_of_steps(), decisive_changes_of_texts(), decisive_changes_of_images()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

// Returns changes of options that are not compared when a run is resumed: the locations of files
// (the settings contain hashes of their contents), the precision, limits, how often something is
// saved or reported, when a run ends, and the epochs, which become a number of steps.
Changes indifferent_changes() {
  return {
      {"data", [](auto& o) { o.data = {"elsewhere"}; }},
      {"validation_chats", [](auto& o) { o.validation_chats = {"elsewhere"}; }},
      {"pairs", [](auto& o) { o.pairs = {"elsewhere"}; }},
      {"validation_pairs", [](auto& o) { o.validation_pairs = {"elsewhere"}; }},
      {"labels", [](auto& o) { o.labels = {"elsewhere"}; }},
      {"validation_labels", [](auto& o) { o.validation_labels = {"elsewhere"}; }},
      {"images", [](auto& o) { o.images = {"elsewhere"}; }},
      {"validation_images", [](auto& o) { o.validation_images = {"elsewhere"}; }},
      {"out", [](auto& o) { o.out = "elsewhere"; }},
      {"validation_prompts", [](auto& o) { o.reinforcement.validation_prompts = {"elsewhere"}; }},
      {"reward_timeout", [](auto& o) { o.reinforcement.reward_timeout += 1; }},
      {"teacher", [](auto& o) { o.distillation.teacher = "elsewhere"; }},
      {"teacher_cache", [](auto& o) { o.distillation.cache = "elsewhere"; }},
      {"reference_cache", [](auto& o) { o.preferences.cache = "elsewhere"; }},
      {"epochs", [](auto& o) { o.epochs = 3; }},
      {"precision", [](auto& o) { o.precision = Precision::bf16; }},
      {"recompute", [](auto& o) { o.recompute = -1; }},
      {"sample_every", [](auto& o) { o.sample_every += 1; }},
      {"tensorboard", [](auto& o) { o.tensorboard = true; }},
      {"csv", [](auto& o) { o.csv = true; }},
      {"sample_tokens", [](auto& o) { o.sample_tokens += 1; }},
      {"save_every", [](auto& o) { o.save_every += 1; }},
      {"keep", [](auto& o) { o.keep += 1; }},
      {"patience", [](auto& o) { o.patience += 1; }},
      {"bad_steps", [](auto& o) { o.bad_steps += 1; }},
      {"shard", [](auto& o) { o.sharing.shard = Sharded::optimizer; }},
      {"stall_timeout", [](auto& o) { o.sharing.stall_timeout += 1; }},
      {"keep_going", [](auto& o) { o.keep_going = true; }},
      {"memory_limit", [](auto& o) { o.memory_limit += 1; }},
      {"shard_size", [](auto& o) { o.shard_size += 1; }},
      {"token_cache", [](auto& o) { o.token_cache += 1; }},
      {"allow_change", [](auto& o) { o.allow_change = true; }}};
}

// Regression: a run with a character tokenizer silently continued with --tokenizer bpe:300, since
// that option was not among the settings. If TrainOptions gets a new field, this test does not
// compile until it counts the field, and fails until one of the two lists above contains it.
TEST(Settings, IncludeEveryOptionThatAffectsTheResults) {
  TrainOptions options;
  options.average = 2;
  options.best_by = "bleu";
  options.lora.rank = 4;
  options.distillation.teacher = "teacher";
  options.images = {"images"};
  options.augmentation.operations = 2;
  options.optimizer.kind = OptimizerKind::muon;
  options.accumulate_from = 1;
  options.sharing.sync_every = 2;
  [[maybe_unused]] const auto& [f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, f12, f13, f14, f15,
                                f16, f17, f18, f19, f20, f21, f22, f23, f24, f25, f26, f27, f28,
                                f29, f30, f31, f32, f33, f34, f35, f36, f37, f38, f39, f40, f41,
                                f42, f43, f44, f45, f46, f47, f48, f49, f50, f51, f52, f53, f54,
                                f55, f56, f57, f58, f59, f60, f61, f62, f63, f64, f65, f66, f67,
                                f68, f69, f70, f71, f72, f73, f74, f75, f76, f77, f78, f79, f80,
                                f81, f82, f83] = options;
  [[maybe_unused]] const auto& [s1, s2, s3, s4, s5, s6] = options.sharing;
  [[maybe_unused]] const auto& [i1, i2, i3, i4, i5] = options.augmentation;
  [[maybe_unused]] const auto& [l1, l2, l3, l4, l5, l6, l7, l8] = options.lora;
  [[maybe_unused]] const auto& [o1, o2, o3, o4, o5, o6] = options.optimizer;
  [[maybe_unused]] const auto& [d1, d2, d3, d4, d5, d6, d7] = options.distillation;
  [[maybe_unused]] const auto& [p1, p2, p3, p4, p5, p6, p7, p8, p9] = options.preferences;
  [[maybe_unused]] const auto& [r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14, r15,
                                r16, r17, r18, r19, r20, r21, r22, r23, r24, r25, r26, r27, r28,
                                r29] = options.reinforcement;
  // The loss, the names of what is given, the command, the ranks and three callbacks are no
  // options.
  constexpr size_t kFields = 72 + 6 + 5 + 8 + 6 + 7 + 9 + 26;  // the groups count as their fields
  const Changes decisive = decisive_changes(), indifferent = indifferent_changes();
  EXPECT_EQ(decisive.size() + indifferent.size(), kFields);
  TrainOptions on_policy = options;
  on_policy.distillation.on_policy = 0.5;
  const auto noticed_from = [](const TrainOptions& base, const Change& change) {
    TrainOptions other = base;
    change(other);
    const std::vector all = {
        Objective::next_token, Objective::masked,         Objective::spans, Objective::pairs,
        Objective::labels,     Objective::chats,          Objective::dpo,   Objective::kto,
        Objective::orpo,       Objective::simpo,          Objective::ppo,   Objective::grpo,
        Objective::skip_gram,  Objective::replaced_tokens};
    return std::count_if(all.begin(), all.end(), [&](Objective objective) {
      const Objective now = other.objective == Objective::automatic ? objective : other.objective;
      return settings_of(base, objective) != settings_of(other, now);
    });
  };
  const auto noticed = [&](const Change& change) {
    return noticed_from(options, change) + noticed_from(on_policy, change);
  };
  for (const auto& [name, change] : decisive) EXPECT_GT(noticed(change), 0) << name;
  for (const auto& [name, change] : indifferent) EXPECT_EQ(noticed(change), 0) << name;
}

// Snapshots contain these keys and values, and runs must remain resumable from them.
TEST(Settings, KeepTheirKeysAndValues) {
  EXPECT_EQ(nlohmann::json(settings_of(TrainOptions(), Objective::next_token)),
            nlohmann::json::parse(R"({"objective": "next_token", "from": "", "steps": 0,
                "batch": 12, "length": 0, "document_mask": false, "accumulate": 1,
                "validation": 0.1, "tokenizer": "char", "max_vocabulary": 0,
                "learning_rate": -1.0, "final_rate": 0.1, "warmup": -1,
                "schedule": 0, "decay_fraction": 0.2, "beta1": 0.9, "beta2": 0.99,
                "epsilon": 1e-8, "optimizer": "adamw", "relative_rate": true,
                "accumulate_from": 0, "window_from": 0,
                "weight_decay": 0.1, "clip": 1.0, "moments": "fp32",
                "label_smoothing": 0.0, "lora": 0, "freeze": [], "seed": 1337, "average": 1,
                "best_by": "automatic", "evaluate_windows": 256, "gradients": "fp32",
                "sync_every": 1})"));
  TrainOptions pairs;
  pairs.average = 3;
  pairs.best_by = "bleu";
  nlohmann::json settings = settings_of(pairs, Objective::pairs);
  EXPECT_EQ(settings["average_of"], "last");
  EXPECT_EQ(settings["evaluate_every"], -1);
  EXPECT_EQ(settings["bleu_lines"], 1000);
  EXPECT_EQ(settings["batch_tokens"], 4096);
  EXPECT_EQ(settings["source_prefix"], "");
  EXPECT_FALSE(settings.contains("evaluate_windows") || settings.contains("mask"));
  for (const char* metric : {"chrf", "rouge_l", "loss"}) {
    pairs.best_by = metric;
    EXPECT_EQ(settings_of(pairs, Objective::pairs).contains("bleu_lines"), pairs.best_by != "loss");
  }
  EXPECT_EQ(settings_of(TrainOptions(), Objective::spans)["mean_span"], 3.0);
  EXPECT_EQ(nlohmann::json(settings_of(EmbedderTraining())),
            nlohmann::json::parse(R"({"objective": "embedding", "from": "", "epochs": 1,
                "batch": 64, "learning_rate": 2e-5, "warmup": 0.1, "weight_decay": 0.01,
                "loss": "automatic", "temperature": 0.0, "kind": "automatic",
                "query_weight": 5e-5, "document_weight": 3e-5, "regulariser": "flops",
                "token_width": 128, "guide": "", "dimensions": [],
                "learn_pooling": "none", "lora": 0,
                "freeze": [], "moments": "fp32", "seed": 1337})"));
}

TEST_F(Resume, CanBeStoppedWhileReading) {
  const auto stop = [](double) { return false; };
  const TrainResult result = train(small_spec(), options_, {}, {}, stop);
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.step, 0);
  EXPECT_FALSE(fs::exists(options_.out));
  resume();
}

TEST_F(Resume, AllowsChangesOnRequest) {
  stop_at(6);
  options_.learning_rate = 1e-4;
  options_.steps = 12;
  options_.allow_change = true;
  EXPECT_EQ(resume().first_step, 6);
}

TEST_F(Resume, AllowsChangesThatDoNotAffectTheResults) {
  stop_at(6);
  options_.save_every = 3;
  options_.keep = 5;
  EXPECT_EQ(resume().first_step, 6);
}

TEST_F(Resume, ReportsACpuOfAnotherClass) {
  options_.precision = Precision::bf16;
  use_isa(available_isas().back());
  stop_at(6);
  use_isa("amx-model");
  const TrainPlan plan = resume();
  use_isa("auto");
  const std::string note =
      "the run continues in bf16 of CPU class amx (before: common), so its results no longer "
      "have the same bits as those of an uninterrupted run";
  EXPECT_EQ(plan.first_step, 6);
  EXPECT_EQ(plan.notes, std::vector<std::string>{note});
  EXPECT_NE(read_file(log()).find("{\"step\":6,\"note\":\"" + note + "\"}"), std::string::npos);
  const nlohmann::json state = read_json(model::snapshot_path(options_.out, 20) + "/state.json");
  EXPECT_EQ(state["numeric_class"], "amx");
}

TEST_F(Resume, FallsBackToAnOlderSnapshot) {
  stop_at(20);
  const std::string last = read_file(file(20));
  for (const bool cut : {true, false}) {
    std::string damaged = last;
    if (cut)
      damaged.resize(damaged.size() - 1);
    else
      damaged[damaged.size() / 2] ^= 4;
    write_file_atomically(file(20), damaged);
    const TrainPlan plan = resume();
    EXPECT_EQ(plan.first_step, 16);
    EXPECT_NE(plan.from.find("checkpoint-16"), std::string::npos) << plan.from;
    ASSERT_FALSE(plan.notes.empty());
    EXPECT_NE(plan.notes[0].find("checkpoint-20 is skipped"), std::string::npos) << plan.notes[0];
    EXPECT_EQ(read_file(file(20)), last);  // written again
    expect_whole_log();
  }
}

TEST_F(Resume, LogsEachStepOnce) {
  stop_at(11);
  fs::remove_all(
      model::snapshot_path(options_.out, 11));  // as after a kill: steps 9 to 11 are repeated
  std::ofstream(log(), std::ios::app) << "{\"step\": 12, \"lo";
  EXPECT_EQ(resume().first_step, 8);
  expect_whole_log();
}

TEST_F(Resume, KeepsTheNewestSnapshots) {
  options_.save_every = 3;
  options_.keep = 3;
  resume();
  EXPECT_EQ(model::find_snapshots(options_.out), (std::vector<int64_t>{20, 18, 15}));
}

// Returns the name, modification time and contents of everything in a folder except its lock.
std::map<std::string, std::pair<fs::file_time_type, std::string>> contents(
    const std::string& folder) {
  std::map<std::string, std::pair<fs::file_time_type, std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().string();
    if (entry.path().filename() == ".lock") continue;
    files[path] = {entry.last_write_time(), entry.is_regular_file() ? read_file(path) : ""};
  }
  return files;
}

TEST_F(Resume, DoesNotChangeAFinishedRun) {
  const TrainResult first = train(small_spec(), options_);
  const auto before = contents(options_.out);
  bool stepped = false;
  const TrainResult again = train(small_spec(), options_, {}, [&](const TrainProgress&) {
    stepped = true;
    return true;
  });
  EXPECT_FALSE(stepped);
  EXPECT_EQ(again.step, 20);
  EXPECT_FALSE(again.interrupted);
  EXPECT_DOUBLE_EQ(again.loss, first.loss);
  EXPECT_DOUBLE_EQ(again.best_loss, first.best_loss);
  EXPECT_DOUBLE_EQ(again.bits_per_byte, first.bits_per_byte);
  const auto after = contents(options_.out);
  EXPECT_EQ(after.size(), before.size());
  for (const auto& [path, state] : before)
    EXPECT_TRUE(after.contains(path) && after.at(path) == state) << path;
}

TEST_F(Resume, RefusesAFolderWithDamagedSnapshotsOnly) {
  stop_at(6);
  for (const int64_t step : model::find_snapshots(options_.out))
    write_file_atomically(file(step), "nothing");
  expect_error(ErrorKind::BadFile, {options_.out, "damaged"}, [&] { resume(); });
}

}  // namespace
}  // namespace fovea::train
