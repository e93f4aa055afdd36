// The input is a .gguf file: the values and tensors of an accepted file lie within it. Its tensors,
// its Spec and its tokenizer are then used or refused.

#include "base/memory_file.h"
#include "checkpoint/gguf_tensors.h"
#include "checkpoint/gguf_weights.h"
#include "checkpoint/packing_queue.h"
#include "formats/gguf/model.h"
#include "safetensors/safetensors.h"
#include "tokenizer/formats/gguf_tokenizer.h"
#include "use_tokenizer.h"

namespace fovea {
namespace {

void within(const Gguf& file, const char* data, size_t bytes) {
  const MappedFile& mapping = *file.file();  // hostile files have no other parts
  require(data >= mapping.data() && data + bytes <= mapping.data() + mapping.size(),
          "a value or a tensor lies within its file");
}

void pack_as_stored(const StoredTensor& stored, const TensorSource& file) {
  const model::FileTensor plain = {stored.name, model::Stored::plain, {stored.name}};
  const std::vector<Shape> shapes = {stored.shape};
  if (!model::format_as_stored(plain, stored, shapes)) return;
  const auto weights = model::blocks_from_file(plain, stored, shapes, file);
  model::PackingQueue queue;
  int64_t counted = 0;
  queue.add_to_count(weights, [&](int64_t nonfinite) { counted = nonfinite; });
  queue.run();
  queue.add_to_pack(weights, [&](int64_t nonfinite) {
    require(nonfinite == counted && count_nonfinite(weights[0].floats()) == nonfinite,
            "packing and counting count NaN and infinity");
  });
  queue.run();
}

void use(const std::string& path) {
  const auto file = std::make_shared<const Gguf>(path);
  for (const GgufValue& value : file->values())
    within(*file, value.bytes.data(), value.bytes.size());
  for (const GgufTensor& tensor : file->tensors()) within(*file, tensor.data, tensor.bytes);
  succeeds([&] {
    const model::GgufTensors tensors(file);
    for (const StoredTensor& stored : tensors.stored()) {
      succeeds([&] { tensors.tensor(stored.name); });
      succeeds([&] { pack_as_stored(stored, tensors); });
    }
  });
  succeeds([&] { model::read_gguf_spec(path); });
  succeeds([&] {
    use_tokenizer(text::Tokenizer(text::parse_tokenizer(text::tokenizer_files(*file), path, path)));
  });
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  succeeds([&] { use(file.path()); });
  return 0;
}
