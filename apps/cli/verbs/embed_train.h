#pragma once

#include "fovea/infer/mine_negatives.h"
#include "fovea/train/train_embedder.h"
#include "options/options.h"

namespace fovea::cli {

// Trains an embedder: fovea embed --train.
class EmbedderTrainRequest {
 public:
  void declare(OptionTable& table);
  // `arguments` are those typed after the verb; they are printed in the command that resumes the
  // run.
  int run(const std::string& model, const std::string& out, train::TrainedKind kind, bool json,
          const std::vector<std::string>& arguments);
  // The options that mining has too.
  infer::MiningOptions mining() const;

 private:
  void report(const train::TrainResult& result, const train::TrainPlan& plan, bool json) const;

  train::EmbedderTraining training_;
  bool dry_run_ = false;
};

}  // namespace fovea::cli
