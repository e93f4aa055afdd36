// The input is model.safetensors.index.json, in a folder with two shards of one tensor each.

#include "base/files.h"
#include "fuzz.h"
#include "safetensors/safetensors.h"
#include "support/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  static const TemporaryFolder folder;
  [[maybe_unused]] static const bool written = [] {
    write_safetensors(folder / "a.safetensors", {{"x", zeros({2})}});
    write_safetensors(folder / "b.safetensors", {{"y", zeros({1, 3})}});
    return true;
  }();
  write_file_atomically(folder / "model.safetensors.index.json", text_of(data, size));
  succeeds([&] {
    const SafeTensors model = SafeTensors::open_model(folder.path());
    for (const StoredTensor& stored : model.stored()) model.tensor(stored.name);
  });
  return 0;
}
