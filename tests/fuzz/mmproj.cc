// The input is a .gguf file with an encoder of images for a model of texts: it is opened, and an
// accepted one turns an image into vectors, or it is refused.

#include "formats/gguf/mmproj.h"

#include "base/memory_file.h"
#include "fuzz.h"
#include "image/tiles.h"

namespace fovea {
namespace {

constexpr int64_t kWidth = 16;      // of the text model, as of the seeds
constexpr int64_t kSmallSide = 64;  // a larger image only costs the fuzzer time

media::Image grey_image(int64_t height, int64_t width) {
  return {height, width, std::vector<uint8_t>(static_cast<size_t>(3 * height * width), 99)};
}

void see(const std::string& path) {
  model::Spec text;
  text.width = kWidth;
  const auto encoder = model::open_mmproj(path, text, model::Weights::mapped, {});
  if (encoder->side() > kSmallSide || encoder->processor.longest > kSmallSide) return;
  for (const media::Image& tile :
       media::tiles_of(encoder->processor, grey_image(5, 9), "image").images)
    require((*encoder)(tile).shape() == Shape{encoder->tokens(), kWidth},
            "a vector for each token");
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  succeeds_soon([&] { see(file.path()); });
  return 0;
}
