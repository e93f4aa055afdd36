#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/spec.h"
#include "fovea/tokenizer.h"

namespace fovea {

// How a model's matrices are kept. full: as fp32, in the file where that has them; can be trained,
// and inspected with gradients. All others are packed for inference, which is what makes it fast:
// stored, as bf16 where the file has bf16 or fp16 becomes fp32; or rounded to what is named. Files
// with quantised weights (quantization_config) keep those in any case.
enum class WeightPrecision { full, stored, fp32, bf16, int8, int4 };

// How a decoder keeps the keys and values of the tokens that it has read. automatic: as fp32 where
// its weights are that, else as bf16; int8: with a scale for each head and token.
enum class CachePrecision { automatic, fp32, bf16, int8 };

// A Transformer with its tokenizer. Cheap to copy: copies share the weights. Reading (generate,
// evaluate, trace) is safe from several threads at a time; training is not.
class Model {
 public:
  // A Hugging Face directory (config.json, *.safetensors and, if there, tokenizer.json) or a .gguf
  // file. BadFile or Unsupported, in one line, where it does not hold together; `warnings` receives
  // what is odd but harmless.
  static Model open(const std::string& folder, std::vector<std::string>* warnings = nullptr,
                    WeightPrecision precision = WeightPrecision::full,
                    CachePrecision cache = CachePrecision::automatic);
  // Random weights; the Spec's vocabulary comes from the tokenizer where it is 0.
  static Model create(const Spec& spec, const Tokenizer& tokenizer, uint64_t seed);

  // Writes a Hugging Face directory; every file appears whole or not at all.
  void save(const std::string& folder) const;

  const Spec& spec() const;
  bool has_tokenizer() const;
  const Tokenizer& tokenizer() const;  // InvalidArgument where the directory has none
  int64_t parameters() const;          // tied weights once
  int64_t weight_bytes() const;        // in memory or in the mapped file

  struct Parts;  // what is inside, for the library itself
  Parts& parts() const { return *parts_; }

 private:
  explicit Model(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<Parts> parts_;
};

}  // namespace fovea
