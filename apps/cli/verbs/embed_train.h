#pragma once

#include "fovea/train_embedder.h"
#include "options/options.h"

namespace fovea::cli {

// Trains an embedder: fovea embed --train.
class EmbedderTrainRequest {
 public:
  void declare(OptionTable& table);
  // Throws UsageError if an option was given that requires --train.
  static void refuse_without_train(const OptionTable& table);
  int run(const std::string& model, const std::string& out, bool json);

 private:
  EmbedderTraining training_;
  int64_t seed_ = 1337;
};

}  // namespace fovea::cli
