#pragma once

#include <string>
#include <vector>

#include "fovea/train/train_tokenizer.h"
#include "options/options.h"

namespace fovea::cli {

// Trains a tokenizer: fovea tokenize --train.
class TokenizerTrainRequest {
 public:
  void declare(OptionTable& table);
  int run(const std::vector<std::string>& files, const OptionTable& table, bool json);

 private:
  text::TokenizerTraining training_;
  bool characters_ = false;
  std::string out_;
};

}  // namespace fovea::cli
