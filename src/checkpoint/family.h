#pragma once

#include "checkpoint/config.h"
#include "checkpoint/names.h"

namespace fovea {

// A two-way table between a kind of Hugging Face directory and a Spec.
struct Family {
  const char* model_type;
  const char* architecture;
  void (*config)(Config& io, Spec& spec);
  Names names;
  const char* prefix = "";  // of tensor names that some files leave out
  // Parts of tensor names that are no weights (buffers of masks): ignored.
  std::vector<std::string> buffers;
};

}  // namespace fovea
