#include "fovea/model/gguf.h"

#include "base/float_mode.h"
#include "formats/gguf/model.h"
#include "open/model_parts.h"
#include "tokenizer/formats/gguf_tokenizer.h"
#include "transformer/adapters.h"

namespace fovea::model {

std::vector<std::string> write_gguf_file(const std::string& path, GgufModel& file,
                                         const std::optional<text::Tokenizer>& tokenizer,
                                         int64_t vocabulary, const GgufValues& values) {
  if (tokenizer) {
    const text::TokenizerFiles& files = tokenizer->state().files;
    text::write_tokenizer(file.metadata, files, vocabulary);
    file.metadata.text(text::kWholeTokenizer, files.tokenizer);
  } else {
    file.metadata.text("tokenizer.ggml.model", "no_vocab");
  }
  std::vector<std::string> warnings = file.warnings(values);
  std::string elements;
  write_gguf(path, file.metadata, file.tensors(), [&](size_t index) -> std::string_view {
    return elements = file.elements(index, values, warnings);
  });
  return warnings;
}

FileDType file_dtype(const Origin& origin) {
  if (origin.dtype == DType::bf16) return FileDType::bf16;
  return origin.dtype == DType::f16 ? FileDType::fp16 : FileDType::fp32;
}

void save_gguf(const Model& model, const std::string& path, FileDType dtype) {
  const FloatMode mode;
  ModelParts& parts = parts_of(model);
  Transformer merged = parts.transformer;
  if (has_adapters(merged)) merge_adapters(merged);
  if (dtype == FileDType::automatic) dtype = file_dtype(parts.origin);
  GgufModel file(merged, parts.origin.family, dtype);
  file.add_labels(parts.origin);
  if (merged.spec.head.kind != HeadKind::sequence && !parts.path.empty())
    file.add_modules(modules_at(parts.path));
  write_gguf_file(path, file, parts.tokenizer, merged.spec.vocabulary, values_of(merged));
}

}  // namespace fovea::model
