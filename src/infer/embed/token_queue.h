#pragma once

// Runs the texts of many callers through one model: waiting texts of similar length share a batch,
// regardless of their caller.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "embed/sentence_model.h"
#include "fovea/infer/embed_queue.h"

namespace fovea::infer {

class TokenQueue {
 public:
  // [B, T] -> f32 [B, width]; the bits of a row do not depend on the other rows. Only texts of the
  // same `group` share a batch.
  using Model = std::function<Tensor(const TokenBatch& batch, int64_t group)>;
  // Receives either rows [texts, width], of which row i is the output of the model for text i
  // (zeros if it has no tokens), or an error. Called once, on the queue's thread, unless the job
  // was cancelled or the queue was destroyed.
  using Done = std::function<void(std::vector<float> rows, const Error* error)>;

  TokenQueue(Model model, int64_t width, const QueueOptions& options);
  ~TokenQueue();  // drops waiting texts

  bool full() const;
  // Returns the job's number, or 0 if too many jobs or tokens wait.
  uint64_t add(std::vector<TokenizedText> texts, int64_t group, Done done);
  void cancel(uint64_t number);
  QueueStatus status() const;

 private:
  struct Job {
    std::vector<TokenizedText> texts;  // emptied as they are computed
    std::vector<float> rows;
    int64_t group = 0;
    size_t left = 0, next = 0;  // number of texts without a result; no text before `next` waits
    Done done;
  };
  // A waiting text. Waiting texts are sorted, so that texts of similar length are adjacent.
  struct Place {
    int64_t group, length;
    uint64_t job;
    size_t text;
    auto operator<=>(const Place&) const = default;
  };
  using Places = std::set<Place>;
  struct Batch {
    std::set<uint64_t> jobs;
    std::vector<Place> places;
    std::vector<TokenizedText> texts;
  };

  using Jobs = std::map<uint64_t, Job>;

  bool too_much() const;
  void run();
  Job taken_out(Jobs::iterator job);
  Batch take();
  Places::iterator next_text();
  std::pair<Places::iterator, Places::iterator> like(Places::iterator text) const;
  void compute(const Batch& batch);
  void finish(const std::set<uint64_t>& jobs, const Error* error);

  const Model model_;
  const int64_t width_;
  const QueueOptions options_;

  mutable std::mutex mutex_;  // guards the following members
  std::condition_variable wake_;
  Jobs jobs_;
  std::deque<uint64_t> turns_;  // the next batch is built around a text of the first job
  Places waiting_;
  uint64_t numbers_ = 0;
  int64_t waiting_tokens_ = 0;
  bool stopping_ = false;
  QueueStatus status_;

  std::thread thread_;  // declared last, since it uses the other members
};

}  // namespace fovea::infer
