#pragma once

#include "fovea/train_embedder.h"
#include "options/options.h"

namespace fovea::cli {

// fovea embed --train: teaches an embedder by examples.
class EmbedderTrainRequest {
 public:
  void declare(OptionTable& table);
  // Whether an option was typed that means nothing without --train.
  static void refuse_without_train(const OptionTable& table);
  int run(const std::string& model, const std::string& out, bool json);

 private:
  EmbedderTraining training_;
  int64_t seed_ = 1337;
};

}  // namespace fovea::cli
