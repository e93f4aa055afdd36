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
  int64_t cache_bytes = 0;      // for keys and values; 0 = a quarter of the memory that is free
  int64_t most_sequences = 64;  // computed at a time; more wait
  int64_t most_waiting = 256;   // requests; one more is refused
  // Tokens of one step: long prompts are read in chunks, so that others go on meanwhile.
  int64_t step_tokens = 512;
  // A smaller model with the same vocabulary, for requests that ask for guesses. Where many are
  // under way there are fewer guesses for each, down to none.
  std::optional<Model> draft = {};
};

// What of the model is to be seen at each token that a request writes. It is computed for these
// rows only, and no bit of the answer changes.
struct Watch {
  struct Attention {
    int64_t layer = 0, head = 0;
    int64_t top_k = 8;  // so many keys, those with the largest weights
  };
  std::optional<Attention> attention;  // of the decoder's tokens to one another
  // The hidden states in front of this layer; the number of layers: behind the final norm.
  std::optional<int64_t> hidden;
};
struct Watched {
  // Keys, counted from the prompt's first token (behind an encoder, the answer's), and the weights
  // that the token's predecessor gave them, largest first.
  std::vector<std::pair<int32_t, float>> keys;
  std::vector<float> hidden;  // [width], of the token's predecessor
};

// What a request's sink receives, on the engine's thread: do little in it.
struct Event {
  int64_t answer = 0;  // which of the request's answers
  int32_t id = -1;     // the new token, or -1 where the event only ends or completes the text
  std::string_view text = {};  // what became sure with it: often empty, never half a character
  const TokenLogprob* logprob = nullptr;  // of id, if asked for
  const Generation* finished = nullptr;   // the whole answer, in its last event
  const char* error = nullptr;            // why there is none; the request's last event
  ErrorKind error_kind = ErrorKind::Failed;
  const Watched* watched = nullptr;  // of id, if asked for
};

struct EngineStatus {
  int64_t running = 0, waiting = 0;  // sequences, requests
  int64_t cache_bytes = 0, cache_used_bytes = 0;
  // Since the start.
  int64_t requests = 0, prompt_tokens = 0, cached_tokens = 0, written_tokens = 0, steps = 0;
  int64_t guessed_tokens = 0, accepted_tokens = 0;
};

// Answers many requests at once: their tokens are rows of the same products (continuous batching,
// Yu et al. 2022), keys and values live in pages (Kwon et al. 2023), and prompts that begin alike
// share them. An answer's bits do not depend on its company. All members are safe from any thread;
// the computing happens on a thread of the engine's own.
class Engine {
 public:
  using Sink = std::function<bool(const Event&)>;  // false cancels the request

  explicit Engine(const Model& model, const EngineOptions& options = {});
  ~Engine();  // cancels what is under way
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The request's number, or 0 where too many are waiting. InvalidArgument where options or prompt
  // cannot be: too long for the model's context or for the cache among them.
  uint64_t submit(const std::vector<int32_t>& prompt, const GenerateOptions& options, Sink sink,
                  const Watch& watch = {});
  void cancel(uint64_t request);
  // Tokens that each of so many answers (or beams) has room for behind a prompt, in the model's
  // context and in the cache; below 1 such a request is refused. Behind an encoder the prompt is
  // one token.
  int64_t room(int64_t prompt_tokens, int64_t answers) const;
  EngineStatus status() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace fovea
