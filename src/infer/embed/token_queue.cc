#include "embed/token_queue.h"

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/float_mode.h"
#include "embed/batching.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Limits padding: the lengths of a batch's texts differ by at most about a quarter.
bool alike(int64_t shortest, int64_t longest) { return longest <= shortest + shortest / 4 + 1; }
// In batches of at most this many tokens, the lengths may differ more, since reading the weights
// dominates the time of such a pass.
constexpr int64_t kSmallBatch = 128;

}  // namespace

TokenQueue::TokenQueue(Model model, int64_t width, const QueueOptions& options)
    : model_(std::move(model)), width_(width), options_(options), thread_([this] { run(); }) {}

TokenQueue::~TokenQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

bool TokenQueue::too_much() const {
  return std::ssize(jobs_) >= options_.most_waiting || waiting_tokens_ > options_.most_tokens;
}

bool TokenQueue::full() const {
  const std::lock_guard lock(mutex_);
  return too_much();
}

uint64_t TokenQueue::add(std::vector<TokenizedText> texts, int64_t group, Done done) {
  Job job;
  job.rows.resize(texts.size() * static_cast<size_t>(width_));
  job.texts = std::move(texts);
  job.group = group;
  job.done = std::move(done);
  uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    if (too_much()) return 0;
    number = ++numbers_;
    for (size_t i = 0; i < job.texts.size(); ++i) {
      const int64_t length = std::ssize(job.texts[i].ids);
      if (length == 0) continue;
      waiting_.insert({group, length, number, i});
      waiting_tokens_ += length;
      ++job.left;
    }
    ++status_.requests;
    turns_.push_back(number);
    jobs_.emplace(number, std::move(job));
  }
  wake_.notify_one();
  return number;
}

// Removes a job and its waiting texts. The caller must hold the mutex.
TokenQueue::Job TokenQueue::taken_out(Jobs::iterator found) {
  const uint64_t number = found->first;
  Job job = std::move(found->second);
  for (size_t i = 0; i < job.texts.size(); ++i) {
    const int64_t length = std::ssize(job.texts[i].ids);
    if (waiting_.erase({job.group, length, number, i}) > 0) waiting_tokens_ -= length;
  }
  std::erase(turns_, number);
  jobs_.erase(found);
  return job;
}

void TokenQueue::cancel(uint64_t number) {
  Job dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  if (const auto found = jobs_.find(number); found != jobs_.end()) dropped = taken_out(found);
}

QueueStatus TokenQueue::status() const {
  const std::lock_guard lock(mutex_);
  QueueStatus status = status_;
  status.waiting = std::ssize(jobs_);
  status.waiting_tokens = waiting_tokens_;
  return status;
}

// Returns the first waiting text of the job whose turn it is; waiting_.end() if it has none.
TokenQueue::Places::iterator TokenQueue::next_text() {
  const uint64_t number = turns_.front();
  turns_.pop_front();
  turns_.push_back(number);
  Job& job = jobs_.at(number);
  if (job.left == 0) return waiting_.end();
  while (job.texts[job.next].ids.empty()) ++job.next;
  return waiting_.find({job.group, std::ssize(job.texts[job.next].ids), number, job.next});
}

// Returns the range [first, end) of texts that share a batch with `text`: those closest in length,
// as many as fit.
std::pair<TokenQueue::Places::iterator, TokenQueue::Places::iterator> TokenQueue::like(
    Places::iterator text) const {
  const int64_t most = options_.batch_tokens > 0 ? options_.batch_tokens : kFastBatchTokens;
  auto first = text, end = std::next(text);
  int64_t shortest = text->length, longest = text->length, count = 1;
  const auto fits = [&](const Place& other) {
    const int64_t low = std::min(shortest, other.length), high = std::max(longest, other.length);
    const int64_t tokens = high * (count + 1);
    return other.group == text->group && tokens <= most &&
           (alike(low, high) || tokens <= kSmallBatch);
  };
  while (true) {
    const bool below = first != waiting_.begin() && fits(*std::prev(first));
    const bool above = end != waiting_.end() && fits(*end);
    if (!below && !above) return {first, end};
    const bool down =
        below && (!above || text->length - std::prev(first)->length <= end->length - text->length);
    if (down) {
      shortest = (--first)->length;
    } else {
      longest = (end++)->length;
    }
    ++count;
  }
}

TokenQueue::Batch TokenQueue::take() {
  Batch batch;
  const auto text = next_text();
  batch.jobs.insert(turns_.back());
  if (text == waiting_.end()) return batch;
  const auto [first, end] = like(text);
  for (auto place = first; place != end; ++place) {
    batch.jobs.insert(place->job);
    batch.places.push_back(*place);
    batch.texts.push_back(std::exchange(jobs_.at(place->job).texts[place->text], {}));
    waiting_tokens_ -= place->length;
    status_.tokens += place->length;
  }
  waiting_.erase(first, end);
  ++status_.batches;
  return batch;
}

void TokenQueue::compute(const Batch& batch) {
  const NoGradient off;
  std::vector<size_t> all(batch.texts.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const Tensor rows = model_(token_batch(batch.texts, all), batch.places[0].group);  // [B, width]
  const std::lock_guard lock(mutex_);
  for (size_t b = 0; b < batch.places.size(); ++b) {
    const auto job = jobs_.find(batch.places[b].job);
    if (job == jobs_.end()) continue;  // cancelled in the meantime
    std::copy_n(rows.data_as<float>() + static_cast<int64_t>(b) * width_, width_,
                job->second.rows.data() + batch.places[b].text * static_cast<size_t>(width_));
    --job->second.left;
  }
}

// Finishes those of `jobs` that are complete, or all of `jobs` after an error.
void TokenQueue::finish(const std::set<uint64_t>& jobs, const Error* error) {
  for (const uint64_t number : jobs) {
    Job job;
    {
      const std::lock_guard lock(mutex_);
      const auto found = jobs_.find(number);
      if (found == jobs_.end() || (found->second.left > 0 && error == nullptr)) continue;
      job = taken_out(found);
    }
    job.done(std::move(job.rows), error);
  }
}

void TokenQueue::run() {
  const FloatMode mode;
  while (true) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      batch = take();
    }
    try {
      if (!batch.texts.empty()) compute(batch);
      finish(batch.jobs, nullptr);
    } catch (const Error& error) {
      finish(batch.jobs, &error);
    } catch (const std::bad_alloc&) {
      const Error error(ErrorKind::OutOfMemory,
                        "no memory is left for this request; expected more");
      finish(batch.jobs, &error);
    } catch (const std::exception& unexpected) {
      const Error error(ErrorKind::Internal, unexpected.what());
      finish(batch.jobs, &error);
    }
  }
}

}  // namespace fovea::infer
