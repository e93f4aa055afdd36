#pragma once

// The model in a GGUF file: metadata and weights.

#include <string>
#include <vector>

#include "base/gguf.h"
#include "families/directory.h"
#include "fovea/model.h"

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

// Like open_model_files() for a folder. The origin's family is the corresponding family of Hugging
// Face files.
ModelFiles open_gguf_files(const std::string& path, const Loading& loading);

Spec read_gguf_spec(const std::string& path);
// The contents of a GGUF file without its tokenizer. Throws Unsupported if no architecture can
// express the Spec. Fields that only training uses, such as dropout, are omitted.
class GgufModel {
 public:
  // `family` is the family that the model was read from, so that related families keep their names;
  // `block` is the format of matrices: F32, F16, BF16, Q8_0 or Q4_0.
  GgufModel(Transformer& model, const Family* family, const std::string& block);

  GgufMetadata metadata;
  // valid during the lifetime of this object
  const std::vector<GgufTensor>& tensors() const { return tensors_; }

 private:
  void add(const std::string& name, const Tensor& values, const std::string& block);

  std::vector<GgufTensor> tensors_;
  std::vector<std::shared_ptr<const std::string>> encoded_;
};

}  // namespace fovea
