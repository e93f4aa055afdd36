#pragma once

#include "generate/sampler.h"
#include "model/transformer.h"

namespace fovea {

// Continues one sequence of tokens with a model, on a KV cache.
class Engine {
 public:
  Engine(const Transformer& model, DType compute);

  // Reads tokens behind what was read before; afterwards logits() are those of the last one. Past
  // the model's context the oldest half is forgotten and the rest read again, with positions from
  // 0.
  void read(const std::vector<int32_t>& tokens);
  const float* logits() const { return logits_.data_as<float>(); }  // [V]
  int64_t vocabulary() const { return model_.spec.vocabulary; }

 private:
  void forward(const std::vector<int32_t>& tokens);

  const Transformer& model_;
  DType compute_;
  KvCache cache_;
  std::vector<int32_t> window_;  // what the cache holds
  Tensor logits_;
};

// Looks for stop strings in a text that grows piece by piece, and holds back what may become one.
class StopWatch {
 public:
  explicit StopWatch(std::vector<std::string> stops) : stops_(std::move(stops)) {}
  std::string add(std::string_view piece);  // what is sure to come before any stop string
  std::string finish();                     // what was held back for nothing
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

// The loop itself, on ids; `next` sees each new token and says whether to go on. Returns why it
// ended.
std::string continue_tokens(Engine& engine, const std::vector<int32_t>& prompt,
                            const GenerateOptions& options, const std::vector<int32_t>& end_ids,
                            Generation& result, const std::function<bool(int32_t)>& next);

// The whole job for a text: what an empty prompt becomes, decoding, stop strings, streaming.
Generation generate_text(const Transformer& model, const Tokenizer& tokenizer, DType compute,
                         const std::vector<int32_t>& end_ids, const std::string& prompt,
                         const GenerateOptions& options, const TextSink& stream);
Generation generate_ids(const Transformer& model, DType compute,
                        const std::vector<int32_t>& end_ids, const std::vector<int32_t>& prompt,
                        const GenerateOptions& options);

}  // namespace fovea
