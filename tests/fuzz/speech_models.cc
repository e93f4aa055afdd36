// The input is a model.bin of CTranslate2, and a .bin file of whisper.cpp: variables and tensors of
// an accepted file lie within it, and are read or refused; so are the tokens.

#include "base/memory_file.h"
#include "checkpoint/ct2_file.h"
#include "checkpoint/gguf_tensors.h"
#include "tokenizer/formats/ranked_tokens.h"
#include "use_tokenizer.h"

namespace fovea {
namespace {

void within(const MappedFile& mapping, const char* data, size_t bytes) {
  require(data >= mapping.data() && data + bytes <= mapping.data() + mapping.size(),
          "a tensor lies within its file");
}

void read_all(const TensorSource& tensors) {
  for (const StoredTensor& stored : tensors.stored()) {
    within(*tensors.file_of(stored), stored.data, stored.bytes);
    succeeds([&] { tensors.tensor(stored.name); });
  }
}

}  // namespace
}  // namespace fovea

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const MemoryFile file({reinterpret_cast<const char*>(data), size});
  succeeds([&] {
    read_all(model::Ct2Tensors(std::make_shared<const model::Ct2File>(file.path()), {}));
  });
  succeeds([&] {
    const GgmlFile ggml(file.path());
    read_all(model::GgufTensors(ggml));
    const text::TokenizerFiles files = text::tokenizer_of_ranks(text::ggml_tokens(ggml));
    use_tokenizer(text::Tokenizer(text::parse_tokenizer(files, file.path(), file.path())));
  });
  return 0;
}
