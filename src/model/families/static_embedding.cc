#include "families/static_embedding.h"

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "safetensors/safetensors.h"
#include "tokenizer/formats/vocab_files.h"

namespace fovea::model {

namespace {

Tensor as_floats(const Tensor& x) {
  return x.dtype() == DType::f16 ? widen_halves(x) : convert(x, DType::f32);
}

}  // namespace

Spec static_spec(int64_t vocabulary, int64_t width) {
  constexpr int64_t kLongest = int64_t{1} << 20;  // no positions limit a text
  Spec spec;
  spec.vocabulary = vocabulary;
  spec.context = kLongest;
  spec.width = width;
  spec.decoder.reset();
  StackSpec& stack = spec.encoder.emplace();
  stack.layers = 0;
  stack.position.kind = PositionKind::none;
  stack.final_norm = false;
  stack.attention.heads = stack.attention.head_width = 1;  // of no layer
  stack.ffn.present = false;
  spec.head = {.kind = HeadKind::pooled};
  return validated(spec);
}

Spec static_spec(int64_t vocabulary, const Spec& spec) {
  Spec table = static_spec(vocabulary, spec.width);
  table.context = spec.context;
  table.init_deviation = spec.init_deviation;
  table.head = {.tied = false};
  return table;
}

Transformer open_static(const std::string& folder) {
  const auto tensors = SafeTensors::open_model(folder);
  for (const char* name : {"mapping", "weights"})
    if (tensors.find(name) != nullptr)
      fail(ErrorKind::Unsupported,
           "{}/model.safetensors: has {}; expected a row of the table for each token", folder,
           name);
  const char* const name =
      tensors.find("embedding.weight") != nullptr ? "embedding.weight" : "embeddings";
  const StoredTensor* const stored = tensors.find(name);
  if (stored == nullptr || stored->shape.size() != 2)
    fail(ErrorKind::BadFile,
         "{}/model.safetensors: embedding.weight is {}; expected [vocabulary, width]", folder,
         stored == nullptr ? "missing" : describe(stored->shape));
  const Tensor table = tensors.tensor(name);
  Transformer model(static_spec(stored->shape[0], stored->shape[1]));
  model.token_embedding.value = as_floats(table);
  return model;
}

void write_static(const std::string& folder, const Tensor& table,
                  const text::Tokenizer& tokenizer) {
  write_safetensors(folder + "/model.safetensors",
                    {{"embedding.weight", as_floats(table.detach())}});
  tokenizer.save(folder);
}

void write_static_model(const std::string& folder, const Tensor& table,
                        const text::Tokenizer& tokenizer) {
  const std::string name = "0_StaticEmbedding";
  make_directories(folder + "/" + name);
  write_static(folder + "/" + name, table, tokenizer);
  const nlohmann::json module = {{"idx", 0},
                                 {"name", "0"},
                                 {"path", name},
                                 {"type", "sentence_transformers.models.StaticEmbedding"}};
  write_file_atomically(folder + "/modules.json", pretty(nlohmann::json::array({module})));
}

}  // namespace fovea::model
