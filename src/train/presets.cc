#include "base/error.h"
#include "fovea/train.h"

namespace fovea {

TrainOptions preset_training(const std::string& name) {
  preset(name);  // refuses a name that is none
  TrainOptions o;
  if (name == "tiny") {
    o.batch = 16;
    o.steps = 1000;
    o.learning_rate = 3e-3;
  } else if (name == "baby") {
    o.batch = 64;
    o.steps = 5000;
  } else if (name == "gpt2") {
    o.batch = 4;
    o.accumulate = 16;
    o.steps = 20000;
    o.learning_rate = 6e-4;
    o.warmup = 700;
    o.beta2 = 0.95;
  }
  return o;
}

}  // namespace fovea
