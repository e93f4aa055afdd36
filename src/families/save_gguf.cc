#include "fovea/gguf.h"

#include "base/float_mode.h"
#include "families/gguf.h"
#include "families/model_parts.h"
#include "tokenizer/formats/gguf_tokenizer.h"

namespace fovea {

void save_gguf(const Model& model, const std::string& path, GgufDtype dtype) {
  const FloatMode mode;
  constexpr const char* blocks[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0"};
  Model::Parts& parts = model.parts();
  GgufModel file(parts.transformer, parts.origin.family, blocks[static_cast<size_t>(dtype)]);
  if (parts.tokenizer) {
    const TokenizerFiles& files = parts.tokenizer->state().files;
    write_tokenizer(file.metadata, files, parts.transformer.spec.vocabulary);
    file.metadata.text(kWholeTokenizer, files.tokenizer);
  } else {
    file.metadata.text("tokenizer.ggml.model", "no_vocab");
  }
  write_file_atomically(path, GgufImage(file.metadata, file.tensors()).pieces());
}

}  // namespace fovea
