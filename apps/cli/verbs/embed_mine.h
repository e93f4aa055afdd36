#pragma once

#include "fovea/infer/mine_negatives.h"
#include "options/options.h"

namespace fovea::cli {

// Mines hard negatives of pairs for the training of an embedder: fovea embed --mine.
class MiningRequest {
 public:
  void declare(OptionTable& table);
  // `corpus`: files of further texts. The options that training declares are given by `shared`.
  int run(const infer::Embedder& embedder, const std::vector<std::string>& corpus,
          const std::string& out, const infer::MiningOptions& shared, bool json);

 private:
  infer::MiningOptions options_;
  std::string reranker_;
};

}  // namespace fovea::cli
