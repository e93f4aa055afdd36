// The input is a safetensors file: an accepted header describes tensors within the file.

#include "safetensors/safetensors.h"
#include "base/memory_file.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  succeeds([&] {
    const SafeTensors tensors(file.path());
    const MappedFile& mapping = *tensors.files().at(0);
    for (const StoredTensor& stored : tensors.stored()) {
      require(stored.data >= mapping.data() &&
                  stored.data + stored.bytes <= mapping.data() + mapping.size(),
              "a tensor lies within its file");
      succeeds([&] { tensors.tensor(stored.name); });
    }
  });
  return 0;
}
