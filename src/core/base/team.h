#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea {

// Threads that share the pieces of one region of work after another. Each begins with a contiguous
// range of the pieces, and then takes pieces of other ranges that nobody has begun. The caller
// computes as well, and waits only for threads that are inside a piece: a thread that gets no CPU
// does not delay a region that it has not entered. Idle threads spin for a moment, then sleep.
//
// A thread that loses its CPU inside a piece, because another program uses the core, does delay the
// region. The team weighs these delays against the time that the thread saves, and does without a
// thread that costs more.
class Team {
 public:
  using Piece = void (*)(void* context, int64_t index);

  Team() = default;
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Starts threads until there are `threads` with the caller's, or the system allows no more.
  // Returns the smaller of `threads` and their number.
  int grow(int threads);
  // Calls piece(context, i) for each i in [0, count), on the calling thread and `threads` - 1
  // others; a thread that comes late from an earlier region may join them. Calls all pieces on the
  // calling thread if it already computes a piece, or if the team works for another caller. `piece`
  // must not throw and must not call grow().
  void run(int64_t count, int threads, Piece piece, void* context);

 private:
  using Clock = std::chrono::steady_clock;
  enum State : uint32_t { outside, inside, awaited };  // awaited: inside, and the caller sleeps

  struct alignas(64) Worker {
    std::atomic<uint32_t> calls = 0;  // regions that this worker was called to
    std::atomic<bool> sleeping = false;
    std::atomic<uint32_t> state = outside;
    int range = 0;                 // the range with which it begins in this region
    Clock::duration saved = {};    // time that it saved, minus time that the caller waited for it
    Clock::duration absence = {};  // how long the team did without it the last time
    Clock::time_point back = {};   // when this ended or will end
    std::thread thread;
  };
  struct alignas(64) Range {
    std::atomic<int64_t> next = 0;
    int64_t end = 0;
  };

  void share(int64_t count, int threads, Piece piece, void* context);
  void work(Worker& worker);
  void compute(int range);
  static void await(Worker& worker);
  void judge(Worker* last, Clock::time_point begin, Clock::time_point own_end);

  std::deque<Worker> workers_;
  std::mutex caller_;  // held by the thread for which the team works
  std::atomic<bool> open_ = false, ends_ = false;
  Piece piece_ = nullptr;
  void* context_ = nullptr;
  int ranges_in_use_ = 0;
  std::deque<Range> ranges_;     // one for the caller and each worker
  std::vector<Worker*> called_;  // in this region
};

}  // namespace fovea
