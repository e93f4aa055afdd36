// The input is a file of torch.save(): the tensors of an accepted one are no larger than the file.

#include "safetensors/torch_file.h"

#include "base/memory_file.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  succeeds([&] {
    size_t bytes = 0;
    for (const auto& [name, tensor] : read_torch_file(file.path())) bytes += tensor.bytes();
    require(bytes <= size, "tensors have no more bytes than their file");
  });
  return 0;
}
