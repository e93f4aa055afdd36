// The input is a pickle of a state dict: an accepted one has tensors with names.

#include "safetensors/state_pickle.h"

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  succeeds([&] {
    for (const auto& [name, tensor] : tensors_in_pickle(text_of(data, size), "a pickle"))
      require(tensor.shape.size() == tensor.strides.size(), "each axis has a stride");
  });
  return 0;
}
