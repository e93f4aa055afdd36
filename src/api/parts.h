#pragma once

#include <optional>

#include "families/directory.h"
#include "fovea/model.h"

namespace fovea {

struct Model::Parts {
  Transformer transformer;
  Origin origin;
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> end_ids;
};

}  // namespace fovea
