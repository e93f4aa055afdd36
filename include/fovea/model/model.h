#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/array.h"
#include "fovea/model/spec.h"
#include "fovea/text/tokenizer.h"

namespace fovea::nn {
class Transformer;
}

namespace fovea::model {

// Precision of a model's matrices in memory. full: fp32, mapped from the file if possible; required
// for gradients. The others are packed for fast inference. stored: the file's precision, except
// that fp16 becomes fp32; blocks of GGUF files keep their numbers. The rest convert to the named
// format. Weights that are quantised in the file (quantization_config) always stay so.
enum class WeightPrecision { full, stored, fp32, bf16, int8, int4 };

// The weights that have a format in memory: "fp32", "bf16", "int8" (Q8_0 of a GGUF file too),
// "int4" (Q4_0 too), or the name of another block type of GGUF files, such as "Q4_K".
struct FormatBytes {
  std::string format;
  int64_t bytes = 0;
};

// A low-rank adapter in the format of PEFT (a directory with adapter_config.json) or of llama.cpp
// (a .gguf file), and its weight in the sum of a model's adapters; a negative weight subtracts it.
struct AdapterUse {
  std::string folder;
  double weight = 1;
};

// Selects an attention. self: self-attention, of the decoder if there are two stacks. encoder:
// self-attention of the encoder of an encoder-decoder. cross: from the decoder to the encoder.
enum class AttentionKind { self, encoder, cross };

struct HeadIndex {
  AttentionKind kind = AttentionKind::self;
  int64_t layer = 0, head = 0;
  bool operator==(const HeadIndex&) const = default;
};
void visit(HeadIndex& head, OptionVisitor& visitor);  // fovea/core/options.h

struct ModelParts;

// A Transformer with its tokenizer. Cheap to copy: copies share the weights. Functions that take a
// const Model, such as generate(), evaluate() and trace(), are safe to call from several threads.
// References that its functions return are valid as long as a copy of the model exists. The files
// of an opened model may stay mapped: do not change them before its last copy is destroyed.
class Model {
 public:
  // Opens a Hugging Face directory (config.json, *.safetensors and optionally a tokenizer), a .gguf
  // file, or the directory of an adapter, whose adapter_config.json names the base model (relative
  // to the adapter's directory or to the current one). The weighted sum of `adapters` is added;
  // they stay fp32 beside packed weights. `cache` is the type of the cached keys and values of a
  // decoder: f32, bf16, or i8 with one scale per head and token; unset: f32 for fp32 weights, else
  // bf16. Throws BadFile if a file is damaged or inconsistent, or
  // if an adapter belongs to another base; Unsupported if the model is not supported.
  static Model open(const std::string& folder, WeightPrecision precision = WeightPrecision::full,
                    std::optional<DType> cache = {}, const std::vector<AdapterUse>& adapters = {});
  // Returns this model with the weighted sum of the adapters, which shares the weights with this
  // one. Throws the errors of open(), InvalidArgument if this model has adapters already, and
  // Unsupported if an adapter replaces parameters (modules_to_save) or has a head.
  Model with_adapters(const std::vector<AdapterUse>& adapters) const;
  // Returns this model of texts with the encoder of images in a .gguf file of llama.cpp (mmproj),
  // so that prompts may have images; it shares the weights with this one. Throws BadFile if the
  // file is damaged or does not fit, and Unsupported if the encoder is not supported.
  Model with_image_encoder(const std::string& mmproj,
                           WeightPrecision precision = WeightPrecision::stored) const;
  // Returns this model with heads of attention (fovea/study/inspect.h) whose output is zero (Michel
  // et al. 2019, "Are Sixteen Heads Really Better than One?", 2.2); it shares the weights with this
  // one. Throws InvalidArgument if a head does not exist.
  Model without_heads(const std::vector<HeadIndex>& muted) const;
  // Creates a model with random weights. A spec.vocabulary of 0 is replaced by the tokenizer's
  // size. Throws the errors of validated().
  static Model create(const Spec& spec, const text::Tokenizer& tokenizer, uint64_t seed);

  // Writes a Hugging Face directory, with adapters merged into the weights. Each file is written
  // atomically. Throws Failed if a file cannot be written.
  void save(const std::string& folder) const;

  // Suspicious but harmless contents of the files, one message each.
  const std::vector<std::string>& warnings() const;
  const Spec& spec() const;
  bool has_tokenizer() const;
  const text::Tokenizer& tokenizer() const;  // throws InvalidArgument if the model has none
  const void* identity() const { return parts_.get(); }  // the same for copies
  int64_t parameters() const;                            // tied weights count once
  int64_t weight_bytes() const;                          // in memory or in the mapped file
  std::vector<FormatBytes> weight_formats() const;  // their sum is weight_bytes(); largest first

  // The same model with other weights of the same shapes, such as those of nn::Transformer after
  // training. Throws InvalidArgument if the Spec is another one.
  Model with_weights(const nn::Transformer& weights) const;

 private:
  friend struct ModelParts;
  explicit Model(std::shared_ptr<ModelParts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<ModelParts> parts_;
};

// The languages that speech models know: codes and English names.
struct SpeechLanguage {
  const char* code;
  const char* name;
};
const std::vector<SpeechLanguage>& speech_languages();

}  // namespace fovea::model
