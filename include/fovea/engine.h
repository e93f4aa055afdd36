#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fovea/error.h"
#include "fovea/generate.h"

namespace fovea {

struct EngineOptions {
  uint64_t cache_bytes = 0;     // for keys and values; 0 = a quarter of the free memory
  int64_t most_sequences = 64;  // at most this many sequences run at the same time; others wait
  int64_t most_waiting = 256;   // at most this many requests wait; further ones are refused
  // Tokens per step. Long prompts are read in chunks, so that other requests continue meanwhile.
  int64_t step_tokens = 512;
  // A smaller model with the same vocabulary, for requests with `guesses` > 0. Under load, each
  // request gets fewer guesses, down to none.
  std::optional<Model> draft = {};
};
void visit(EngineOptions& options, OptionVisitor& visitor);  // fovea/options.h

// Selects attention weights or hidden states to report for each generated token. They are computed
// for these rows only, and the generated tokens keep their bits.
struct AttentionTraceOptions {
  struct Attention {
    int64_t layer = 0, head = 0;
    int64_t top_k = 8;  // the number of keys to report, those with the largest weights
  };
  std::optional<Attention> attention;  // self-attention of the decoder
  // The hidden states before this layer; the number of layers selects those after the final norm.
  std::optional<int64_t> hidden;
};
struct AttentionTrace {
  // Keys and the attention weights that the preceding token gave them, largest first. Keys count
  // from the first token of the prompt, or of the generated text in an encoder-decoder.
  std::vector<std::pair<int32_t, float>> keys;
  std::vector<float> hidden;  // [width], of the preceding token
};

// What a request's sink receives, on the engine's thread. The sink should return quickly.
struct Event {
  int64_t answer = 0;  // index of the generation within the request
  int32_t id = -1;  // the new token; -1 = the event only completes the text or ends the generation
  // text completed by this token; often empty, never a partial character
  std::string_view text = {};
  const TokenLogprob* logprob = nullptr;  // of `id`, if requested
  const Generation* finished = nullptr;   // the whole result, in the generation's last event
  const char* error = nullptr;            // why the request failed; its last event
  ErrorKind error_kind = ErrorKind::Failed;
  const AttentionTrace* trace = nullptr;  // of `id`, if requested
};

struct EngineStatus {
  int64_t running = 0, waiting = 0;  // sequences, requests
  int64_t cache_bytes = 0, cache_used_bytes = 0;
  // Totals since construction.
  int64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, written_tokens = 0, steps = 0;
  int64_t guessed_tokens = 0, accepted_tokens = 0;
};

// Serves many requests at once. Their tokens are rows of the same matrix products (continuous
// batching, Yu et al. 2022), keys and values are stored in pages (Kwon et al. 2023), and prompts
// with a common prefix share pages. A result's bits do not depend on concurrent requests. All
// members are safe to call from any thread; the computation runs on the engine's own thread.
class Engine {
 public:
  using Sink = std::function<bool(const Event&)>;  // return false to cancel the request

  explicit Engine(const Model& model, const EngineOptions& options = {});
  ~Engine();  // cancels all requests
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Returns the request's number, or 0 if too many requests wait. Throws InvalidArgument if the
  // options or the prompt are invalid, such as a prompt that exceeds the model's context or the
  // cache.
  uint64_t submit(const std::vector<int32_t>& prompt, const GenerateOptions& options, Sink sink,
                  const AttentionTraceOptions& trace = {});
  void cancel(uint64_t request);
  // Returns how many tokens each of `answers` generations (or beams) can have after a prompt,
  // limited by the model's context and the cache. Below 1, submit() refuses such a request. In an
  // encoder-decoder the decoder's prompt is one token.
  int64_t room(int64_t prompt_tokens, int64_t answers) const;
  EngineStatus status() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace fovea
