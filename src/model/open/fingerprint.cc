#include <algorithm>
#include <string_view>

#include "base/files.h"
#include "base/gguf.h"
#include "base/hash.h"
#include "formats/peft/config.h"
#include "fovea/model/model_path.h"
#include "open/open_adapters.h"

namespace fovea::model {
namespace {

// Suffixes of the files with weights, settings and vocabularies.
constexpr std::string_view kDecisive[] = {".json", ".txt", ".safetensors", ".model", ".spm",
                                          ".gguf", ".bin", ".npz",         ".yml"};

}  // namespace

uint64_t model_fingerprint(const std::string& path, bool with_base) {
  Hasher hasher;
  if (is_gguf(path)) {
    const Gguf gguf(path);
    for (const auto& file : gguf.files()) hasher.add(*file);
    return hasher.hash();
  }
  if (!is_folder(path)) {
    hasher.add(MappedFile(path));
    return hasher.hash();
  }
  for (const std::string& name : list_files(path)) {
    const bool decides =
        std::any_of(std::begin(kDecisive), std::end(kDecisive),
                    [&](std::string_view ending) { return name.ends_with(ending); });
    if (decides) hasher.add(MappedFile(path + "/" + name));
  }
  if (with_base && holds_adapter(path))
    hasher.add(hash_text(model_fingerprint(adapted_model(path, {}).base)));
  return hasher.hash();
}

}  // namespace fovea::model
