#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/train/train.h"

namespace fovea::train {
namespace {

void set_translation(TrainOptions& o, bool tiny) {
  // The peak is close to the rate that Wu et al. 2021 (appendix B) use for a narrow model. It is
  // constant for half of the steps and then falls; docs/performance.md shows the results.
  o.tokenizer = "bpe:8000";
  o.steps = 5000;
  o.learning_rate = 4e-3;
  o.warmup = 600;
  o.schedule = Schedule::trapezoid;
  o.decay_fraction = 0.5;
  o.beta2 = 0.98;
  o.weight_decay = 0;
  o.label_smoothing = 0.1;
  o.average = 3;
  o.evaluate_every = o.save_every = 250;
  o.evaluate_windows = 0;
  if (tiny) {
    o.tokenizer = "bpe:500";
    o.steps = 400;
    o.batch_tokens = 1024;
    o.learning_rate = 3e-3;
    o.warmup = 100;
    o.schedule = Schedule::inverse_root;
    o.evaluate_every = 50;
  }
}

}  // namespace

TrainOptions preset_training(const std::string& name) {
  const FloatMode mode;
  model::preset(name);  // refuses an unknown name
  TrainOptions o;
  // Small models tolerate a higher rate than the usual 1e-3, and benefit from a long decay to 0.
  // After 2,000 steps on Shakespeare, the held-out loss of nano is 1.737; with a cosine from 1e-3,
  // it is 1.886.
  if (name == "nano") {
    o.learning_rate = 3e-3;
    o.schedule = Schedule::trapezoid;
    o.decay_fraction = 0.4;
    o.final_rate = 0;
  } else if (name == "speedrun" || name == "speedrun-large") {
    // Seven seconds and eleven minutes on two cores. The recipes were found on the King James
    // Bible; docs/performance.md has their losses on Shakespeare.
    const bool large = name == "speedrun-large";
    o.batch = 16;
    o.steps = large ? 1200 : 240;
    o.optimizer.kind = OptimizerKind::muon;
    o.learning_rate = large ? 5e-3 : 1.5e-2;
    if (large) o.weight_decay = 1.5;  // the run reads 1 MB of text five times
    o.schedule = Schedule::trapezoid;
    o.decay_fraction = 1;
    o.final_rate = 0;
  } else if (name == "tiny") {
    o.batch = 16;
    o.steps = 1000;
    o.learning_rate = 3e-3;
  } else if (name == "baby") {
    o.batch = 64;
    o.steps = 5000;
  } else if (name == "rnn" || name == "gru" || name == "lstm") {
    o.batch = 32;
  } else if (name == "gpt2") {
    o.batch = 4;
    o.accumulate = 16;
    o.steps = 20000;
    o.learning_rate = 6e-4;
    o.warmup = 700;
    o.beta2 = 0.95;
  } else if (name == "vit-tiny" || name == "vit-small" || name == "clip-tiny" ||
             name == "siglip-tiny") {
    o.batch = 64;
    o.weight_decay = 0.05;
    o.beta2 = 0.999;
  } else if (name == "translate" || name == "translate-tiny") {
    set_translation(o, name == "translate-tiny");
  }
  return o;
}

TrainOptions fine_tuning_options(const std::string& name) {
  TrainOptions o = preset_training(name);
  const TrainOptions open;
  o.steps = open.steps;
  o.learning_rate = open.learning_rate;
  o.final_rate = open.final_rate;
  o.warmup = open.warmup;
  o.schedule = open.schedule;
  o.decay_fraction = open.decay_fraction;
  o.evaluate_every = open.evaluate_every;
  o.save_every = open.save_every;
  return o;
}

}  // namespace fovea::train
