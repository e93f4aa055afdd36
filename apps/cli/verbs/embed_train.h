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
  // `arguments`: as typed after the verb, for the command that resumes the run.
  int run(const std::string& model, const std::string& out, bool json,
          const std::vector<std::string>& arguments);

 private:
  void report(const TrainResult& result, const TrainPlan& plan, bool json) const;

  EmbedderTraining training_;
  bool dry_run_ = false;
  int64_t seed_ = 1337;
};

}  // namespace fovea::cli
