#pragma once

#include <deque>
#include <exception>
#include <list>
#include <memory>
#include <mutex>

#include "cache/prefix_cache.h"
#include "generate/attention_trace.h"
#include "generate/request.h"
#include "transformer/transformer.h"

namespace fovea::infer {

struct SchedulerOptions {
  DType compute = DType::f32, cache = DType::f32;  // dtype of products; dtype of keys and values
  int64_t pages = 0;  // see PagePool::Size; a draft model's cache has as many
  int64_t most_sequences = 64;
  int64_t step_tokens = 512;
  const model::Transformer* draft = nullptr;  // draft model, for requests with `speculative_tokens`
  size_t most_adapters = 1 << 20;             // each is a kind of the prefix cache
};

// Advances all requests step by step: each step is one pass of the model over the new tokens of
// every text (continuous batching, Yu et al. 2022). Not thread-safe.
class Scheduler {
 public:
  Scheduler(const model::Transformer& model, GenerationRules rules,
            const text::Tokenizer* tokenizer, const SchedulerOptions& options);

  // Creates a request; throws InvalidArgument if it cannot be served. Does not change the
  // scheduler: safe to call from any thread.
  std::unique_ptr<Request> request(Task task);
  // Throws InvalidArgument if there are as many adapters as options permit.
  void expect_room_for_adapter() const;
  // Adds the rules of requests that use one more adapter, which the model's layers have. Returns
  // its number.
  size_t add_adapter(GenerationRules rules);
  void add(std::unique_ptr<Request> request);
  void cancel(uint64_t number);
  bool step();  // returns false if no requests are left
  // See Engine::room(). Safe to call from any thread.
  int64_t room(int64_t prompt_tokens, int64_t generations) const;
  EngineStatus status() const;
  model::PrefixCache& prefixes() { return prefixes_; }
  const model::PagePool& pool() const { return pool_; }
  int64_t waiting() const { return std::ssize(waiting_); }

 private:
  struct Row {  // one branch of a step's batch, and the number of its tokens to read
    Request* request;
    size_t branch;
    int64_t tokens;
  };
  const GenerationRules& rules_for(size_t adapter);
  bool has_room(const Request& request) const;
  void admit();
  void propose();
  std::vector<Row> plan();
  static void encode_images(const std::vector<Row>& rows);
  void begin_reading(Branch& branch);
  void share_prefix(Request& request, Branch& branch);
  bool reserve(const Request& request, Branch& branch, int64_t tokens, std::vector<Row>& rows);
  bool preempt(const Request& request, std::vector<Row>& rows);
  void compute(const std::vector<Row>& rows);
  void deliver(const std::vector<Row>& rows, const Tensor& hidden, AttentionTracer& tracer);
  static std::vector<std::exception_ptr> process_logits(const std::vector<const Row*>& drawing,
                                                        const float* logits, int64_t vocabulary);
  void sweep();

  const model::Transformer& model_;
  std::deque<GenerationRules> rules_;  // of requests without an adapter, then of each adapter
  mutable std::mutex rules_mutex_;     // of rules_
  const text::Tokenizer* tokenizer_;
  SchedulerOptions options_;
  model::PagePool pool_;
  model::PrefixCache prefixes_;
  std::optional<Drafter> drafter_;
  double draft_time_ = 0;  // see PassLoad::draft
  std::deque<std::unique_ptr<Request>> waiting_;
  std::list<std::unique_ptr<Request>> running_;  // in order of arrival
  EngineStatus status_;
};

// Returns the bytes of the pools of the model and of the draft model.
int64_t cache_bytes(const model::Transformer& model, const SchedulerOptions& options);
// Returns the largest number of pages, at most options.pages, with which the pools take at most
// `bytes`.
int64_t pages_within(uint64_t bytes, const model::Transformer& model, SchedulerOptions options);

}  // namespace fovea::infer
