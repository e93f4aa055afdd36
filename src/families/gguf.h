#pragma once

// A model's part of a GGUF file: metadata and weights.

#include <string>
#include <vector>

#include "base/gguf.h"
#include "families/directory.h"

namespace fovea {

extern const Family gguf_llama;
extern const Family gguf_qwen2;
extern const Family gguf_qwen3;
extern const Family gguf_qwen3_moe;
extern const Family gguf_phi3;
extern const Family gguf_olmo2;
extern const Family gguf_gemma2;
extern const Family gguf_gemma3;
extern const Family gguf_gpt2;
extern const Family gguf_bloom;
extern const Family gguf_gpt_neox;

// As open_model_files() does it for a folder. The origin is the family of Hugging Face's files that
// these stand for.
ModelFiles open_gguf_files(const std::string& path, const Loading& loading);

// What a model is in a GGUF file, beside its tokenizer. Unsupported where no architecture can
// express its Spec; what only training asks for (dropout, deviations) is left out.
class GgufModel {
 public:
  // `family` is what the model was read from, so that siblings keep their names; `block` is what
  // matrices are stored in: F32, F16, BF16, Q8_0 or Q4_0.
  GgufModel(Transformer& model, const Family* family, const std::string& block);

  GgufMetadata metadata;
  const std::vector<GgufTensor>& tensors() const { return tensors_; }  // valid with this object

 private:
  void add(const std::string& name, const Tensor& values, const std::string& block);

  std::vector<GgufTensor> tensors_;
  std::vector<std::shared_ptr<const std::string>> encoded_;
};

}  // namespace fovea
