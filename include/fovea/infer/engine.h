#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/core/error.h"
#include "fovea/infer/generate.h"

namespace fovea::infer {

struct EngineOptions {
  uint64_t cache_bytes = 0;     // for keys and values; 0 = a quarter of the free memory
  int64_t most_sequences = 64;  // maximum sequences in progress; further requests wait
  int64_t most_waiting = 256;   // maximum waiting requests; further ones are refused
  // Tokens per step. Longer prompts are read in chunks, so that other requests continue meanwhile.
  int64_t step_tokens = 512;
  // A draft model with the same vocabulary, for requests whose `speculative_tokens` is not 0. The
  // more sequences are in progress, the fewer speculative tokens each one gets, down to none; this
  // also applies without a draft model.
  std::optional<model::Model> draft = {};
};
void visit(EngineOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// Selects attention weights or hidden states to report for each generated token. This does not
// change the generated tokens.
struct AttentionTraceOptions {
  struct Attention {
    int64_t layer = 0, head = 0;
    int64_t top_k = 8;  // maximum number of keys to report: those with the largest weights
  };
  std::optional<Attention> attention;  // self-attention of the decoder
  // The hidden state before this layer; the number of layers selects that after the final norm.
  std::optional<int64_t> hidden;
};
struct AttentionTrace {
  // Pairs (key, attention weight) for the preceding token as query, largest weight first. A key is
  // a position in the decoder's text, from 0: the prompt and the generated tokens or, in an
  // encoder-decoder, the start token and the output.
  std::vector<std::pair<int32_t, float>> keys;
  std::vector<float> hidden;  // [width]: hidden state of the preceding token
};

// What a request's sink receives, on the engine's thread. `text` and the pointers are valid during
// the call only; null = not applicable. The sink should return quickly.
struct Event {
  int64_t generation = 0;  // index of the generation within the request
  int32_t id = -1;  // the new token; -1 = the event only completes the text or ends the generation
  // The text that became final; often empty, never a partial character.
  std::string_view text = {};
  const TokenLogprob* logprob = nullptr;  // of `id`, if requested
  const Generation* finished = nullptr;   // the whole result, in the generation's last event
  const Error* error = nullptr;           // why the request failed, in its last event
  const AttentionTrace* trace = nullptr;  // of `id`, if requested
};

struct EngineStatus {
  int64_t running = 0, waiting = 0;  // sequences in progress; waiting requests
  int64_t cache_bytes = 0, cache_used_bytes = 0;
  // Totals since construction.
  int64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0, steps = 0;
  int64_t speculative_tokens = 0, accepted_tokens = 0;
};

// Serves many requests at once. Their tokens are rows of the same matrix products (continuous
// batching, Yu et al. 2022), keys and values are stored in pages (Kwon et al. 2023), and prompts
// with a common prefix share pages. A result's bits do not depend on concurrent requests. All
// members are safe to call from any thread; the model runs on the engine's own thread. The engine
// keeps a copy of the model and the draft model. Do not destroy it in a sink.
class Engine {
 public:
  // Receives the events of a request; return false to cancel the request. If it throws, the request
  // fails.
  using Sink = std::function<bool(const Event&)>;

  // Throws InvalidArgument if the model generates no text, if an option is out of range, if the
  // cache is smaller than one page, or if the draft model does not fit the model.
  explicit Engine(const model::Model& model, const EngineOptions& options = {});
  ~Engine();  // cancels all requests; their sinks receive no further events
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Adds a model that requests may choose: a result of Model::with_adapters() for the engine's
  // model. All models read the same weights, in the same passes. Requests in progress continue.
  // Returns the model's number. Throws InvalidArgument if the model does not share the weights of
  // the engine's model, and Unsupported if an adapter changes experts.
  size_t add(const model::Model& adapted);

  // Returns the request's number, or 0 if too many requests wait. Throws InvalidArgument if the
  // options or the prompt are invalid, such as a prompt that exceeds the model's context or the
  // cache. `model`: 0 for the engine's model, or a number returned by add().
  uint64_t submit(const std::vector<int32_t>& prompt, const GenerateOptions& options, Sink sink,
                  const AttentionTraceOptions& trace = {}, size_t model = 0);
  // Does the same for a prompt with images. The vectors of the images are computed on the
  // engine's thread, unless the keys and values of the same pixels and tokens are in the cache.
  uint64_t submit(const ImagePrompt& prompt, const GenerateOptions& options, Sink sink,
                  const AttentionTraceOptions& trace = {}, size_t model = 0);
  // Ends a request without a last event; the event in progress may still arrive. Does nothing if
  // the request does not exist or has ended.
  void cancel(uint64_t request);
  // Returns how many tokens each of `generations` generations (or beams) can have after a prompt,
  // limited by the model's context and the cache. submit() refuses a request that exceeds the
  // context, or for which the cache has no room. For an encoder-decoder, `prompt_tokens` is 1: the
  // start token.
  int64_t room(int64_t prompt_tokens, int64_t generations) const;
  EngineStatus status() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace fovea::infer
