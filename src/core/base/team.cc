#include "base/team.h"

#include <algorithm>
#include <exception>

#include "base/pause.h"

namespace fovea {
namespace {

using namespace std::chrono_literals;

// Longer than the serial work between most regions, so that workers rarely sleep while a model
// computes; short enough not to waste the CPU time of other programs.
constexpr auto kSpin = 200us;
// The caller sleeps sooner: its core is then free for the worker that it waits for.
constexpr auto kCallerSpin = 50us;
// Savings above the limit are forgotten, so that a thread whose core becomes busy leaves soon.
constexpr std::chrono::steady_clock::duration kMostSaved = 1ms, kMostLost = 500us;
constexpr std::chrono::steady_clock::duration kFirstAbsence = 1ms, kLongestAbsence = 1024ms;

thread_local bool computes_piece = false;

// Waits up to `time` for done() to become true, and returns its last value.
template <class Done>
bool spin(std::chrono::steady_clock::duration time, Done&& done) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      pause_thread();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

}  // namespace

int Team::grow(int threads) {
  const std::lock_guard<std::mutex> lock(caller_);
  try {
    if (ranges_.empty()) ranges_.emplace_back();
    while (std::ssize(workers_) + 1 < threads) {
      called_.reserve(workers_.size() + 1);
      ranges_.emplace_back();
      Worker& worker = workers_.emplace_back();
      worker.thread = std::thread([this, &worker] { work(worker); });
    }
  } catch (const std::exception&) {  // no memory, or the limit of processes
    if (!workers_.empty() && !workers_.back().thread.joinable()) workers_.pop_back();
  }
  return std::min(threads, static_cast<int>(workers_.size()) + 1);
}

Team::~Team() {
  ends_ = true;
  for (Worker& worker : workers_) {
    worker.calls.fetch_add(1);
    worker.calls.notify_one();
  }
  for (Worker& worker : workers_) worker.thread.join();
}

void Team::run(int64_t count, int threads, Piece piece, void* context) {
  threads = static_cast<int>(std::min<int64_t>(count, threads));
  if (threads > 1 && !computes_piece) {
    const std::unique_lock<std::mutex> lock(caller_, std::try_to_lock);
    if (lock) return share(count, threads, piece, context);
  }
  for (int64_t i = 0; i < count; ++i) piece(context, i);
}

// The caller opens the region after its fields are set, and closes it before it looks for workers
// that are inside. A worker enters before it looks whether the region is open. All four operations
// are sequentially consistent, so a worker that sees an open region is seen by the caller. This may
// be a worker that was called to an earlier region, and enters only now.
void Team::share(int64_t count, int threads, Piece piece, void* context) {
  const Clock::time_point begin = Clock::now();
  called_.clear();
  for (Worker& worker : workers_) {
    if (std::ssize(called_) + 1 == threads) break;
    if (worker.back > begin) continue;
    called_.push_back(&worker);
    worker.range = static_cast<int>(called_.size());
  }
  piece_ = piece;
  context_ = context;
  ranges_in_use_ = 1 + static_cast<int>(called_.size());
  for (int64_t i = 0; i < ranges_in_use_; ++i) {
    Range& range = ranges_[static_cast<size_t>(i)];
    range.next.store(count * i / ranges_in_use_, std::memory_order_relaxed);
    range.end = count * (i + 1) / ranges_in_use_;
  }
  open_.store(true);
  for (Worker* worker : called_) {
    worker->calls.fetch_add(1);
    if (worker->sleeping.load()) worker->calls.notify_one();
  }
  compute(0);
  open_.store(false);
  const Clock::time_point own_end = Clock::now();
  Worker* last = nullptr;
  for (Worker& worker : workers_) {
    if (worker.state.load() == outside) continue;
    await(worker);
    last = &worker;
  }
  judge(last, begin, own_end);
}

// Computes pieces of range `first`, then those that are left of the others.
void Team::compute(int first) {
  computes_piece = true;
  for (int i = 0; i < ranges_in_use_; ++i) {
    Range& range = ranges_[static_cast<size_t>((first + i) % ranges_in_use_)];
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      const int64_t index = range.next.fetch_add(1, std::memory_order_relaxed);
      if (index < range.end) piece_(context_, index);
    }
  }
  computes_piece = false;
}

void Team::work(Worker& worker) {
  uint32_t seen = 0;
  const auto called = [&] { return worker.calls.load(std::memory_order_acquire) != seen; };
  while (true) {
    if (!spin(kSpin, called)) {
      worker.sleeping = true;
      worker.calls.wait(seen);
      worker.sleeping = false;
    }
    seen = worker.calls.load();
    if (ends_) return;
    worker.state.store(inside);
    if (open_.load()) compute(worker.range);
    if (worker.state.exchange(outside) == awaited) worker.state.notify_one();
  }
}

void Team::await(Worker& worker) {
  if (spin(kCallerSpin, [&] { return worker.state.load() == outside; })) return;
  uint32_t expected = inside;
  if (worker.state.compare_exchange_strong(expected, awaited)) worker.state.wait(awaited);
}

// Without one of the workers, the others would have needed longer by a share of its work. `last` is
// the worker for which the caller waited last; null = none. Its wait counts against all that the
// region saved, before the limit: pieces of 100 ms end milliseconds apart.
void Team::judge(Worker* last, Clock::time_point begin, Clock::time_point own_end) {
  const Clock::duration saved = (own_end - begin) / std::max<int64_t>(1, std::ssize(called_));
  const Clock::time_point now = Clock::now();
  for (Worker* worker : called_) worker->saved += saved;
  if (last != nullptr) last->saved -= now - own_end;
  for (Worker* worker : called_) worker->saved = std::min(worker->saved, kMostSaved);
  if (last == nullptr || last->saved > -kMostLost) return;
  // The shorter its last stay, the longer it stays away.
  const bool left_soon = now - last->back < 4 * last->absence;
  last->absence = left_soon ? std::min(4 * last->absence, kLongestAbsence) : kFirstAbsence;
  last->back = now + last->absence;
  last->saved = {};
}

}  // namespace fovea
