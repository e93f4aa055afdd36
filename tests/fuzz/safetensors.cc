// A safetensors file: the header that is accepted describes tensors within the file.

#include <sys/mman.h>
#include <unistd.h>

#include "checkpoint/safetensors.h"
#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const int file = memfd_create("fuzz", 0);
  require(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size), "a file in memory");
  succeeds([&] {
    const SafeTensors tensors("/proc/self/fd/" + std::to_string(file));
    const MappedFile& mapping = *tensors.files().at(0);
    for (const StoredTensor& stored : tensors.stored()) {
      require(stored.data >= mapping.data() &&
                  stored.data + stored.bytes <= mapping.data() + mapping.size(),
              "a tensor lies in its file");
      succeeds([&] { tensors.tensor(stored.name); });
    }
  });
  close(file);
  return 0;
}
