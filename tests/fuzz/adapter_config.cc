// The input is adapter_config.json, in a folder with the adapters of two modules of a small model.

#include <filesystem>
#include <map>

#include "base/files.h"
#include "fuzz.h"
#include "safetensors/safetensors.h"
#include "small_model.h"
#include "support/temporary_folder.h"
#include "tensor/tensor.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  static const TemporaryFolder folder;
  static const std::string base = folder / "base", adapter = folder / "adapter";
  [[maybe_unused]] static const bool written = [] {
    constexpr int64_t kWidth = 4, kRank = 2;
    small_model(test::small_llama({.width = kWidth, .heads = 1}, 8)).save(base);
    std::filesystem::create_directory(adapter);
    std::map<std::string, Tensor> tensors;
    for (const char* layer : {"0", "1"}) {
      const std::string module =
          fmt::format("base_model.model.model.layers.{}.self_attn.q_proj.lora_", layer);
      tensors[module + "A.weight"] = zeros({kRank, kWidth});
      tensors[module + "B.weight"] = zeros({kWidth, kRank});
    }
    write_safetensors(adapter + "/adapter_model.safetensors", tensors);
    return true;
  }();
  write_file_atomically(adapter + "/adapter_config.json", text_of(data, size));
  succeeds_soon(
      [&] { model::Model::open(base, model::WeightPrecision::full, {}, {{adapter, 1}}); });
  return 0;
}
