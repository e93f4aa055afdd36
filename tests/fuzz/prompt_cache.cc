// The input is a prompt cache of a small model, which then continues the prompt of that cache.

#include <filesystem>

#include "base/files.h"
#include "fovea/infer/generate.h"
#include "fuzz.h"
#include "small_model.h"
#include "support/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  static const TemporaryFolder folder;
  static const model::Model model =
      small_model(test::small_decoder({.context = 256, .width = 4, .layers = 1, .heads = 1}));
  static const std::vector<int32_t> prompt(200, 1);
  const infer::PromptCache cache{folder / "prompt", "small"};
  infer::GenerateOptions options;
  options.max_tokens = 1;
  write_file_atomically(cache.path, text_of(data, size));
  const bool known =
      succeeds_soon([&] { infer::generate(model, prompt, options, {}, nullptr, &cache); });
  if (known) return 0;
  std::filesystem::remove(cache.path);
  require(succeeds([&] { infer::generate(model, prompt, options, {}, nullptr, &cache); }),
          "a refused cache does not change the model");
  return 0;
}
