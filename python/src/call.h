#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace fovea::python {

// Work that a thread does for the main thread of Python.
struct Job {
  std::function<void()> run;  // throws nothing
  std::atomic<bool> stop = false;
  // What ends the work if the user presses Ctrl-C; empty = its loops find `stop` set.
  std::function<void()> interrupt = {};
  // How long Ctrl-C waits for the work to end, in milliseconds; -1 = until it ends, or until
  // Ctrl-C is pressed again.
  int patience = 60;

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;  // of the work; guarded by the mutex
};

bool in_main_thread();

// Runs a job on another thread, and returns when it is done. Must be called by the main thread with
// the interpreter's lock, which it releases meanwhile. Ctrl-C requests the job to stop, waits for
// its patience, and throws KeyboardInterrupt; a job that is still not done ends by itself.
void run_job(const std::shared_ptr<Job>& job);

// Runs work on a thread of its own. When the interpreter ends, it waits for all such threads;
// is_ending() then tells them to end. `work` throws nothing.
void run_apart(std::function<void()> work);
bool is_ending();

// Registers a function that waits, when the interpreter ends, for threads that Ctrl-C left behind.
void add_end_of_jobs(nanobind::module_& module);

// How Ctrl-C ends a call; see Job.
struct Interruption {
  std::function<void()> interrupt = {};
  int patience = 60;
};

// Returns work(), which runs without the interpreter's lock. `work` must own all that it reads, for
// Ctrl-C may leave it behind. The library's loops end soon after Ctrl-C; `stop` of the work's own
// options is not needed.
template <class Work>
auto call(Work work, Interruption interruption = {}) -> std::invoke_result_t<Work&> {
  using Result = std::invoke_result_t<Work&>;
  using Stored = std::conditional_t<std::is_void_v<Result>, bool, Result>;
  if (!in_main_thread()) {
    const nanobind::gil_scoped_release unlocked;
    return work();
  }
  struct Called : Job {
    explicit Called(Work given) : work(std::move(given)) {}
    std::optional<Work> work;
    std::optional<Stored> result;
    std::exception_ptr error;
  };
  const auto called = std::make_shared<Called>(std::move(work));
  called->interrupt = std::move(interruption.interrupt);
  called->patience = interruption.patience;
  called->run = [self = called.get()] {
    try {
      if constexpr (std::is_void_v<Result>) {
        (*self->work)();
        self->result = true;
      } else {
        self->result.emplace((*self->work)());
      }
    } catch (...) {
      self->error = std::current_exception();
    }
    // Here, since the thread may release the job last, when the interpreter has ended.
    self->work.reset();
  };
  run_job(called);
  if (const std::exception_ptr error = std::move(called->error)) std::rethrow_exception(error);
  if constexpr (!std::is_void_v<Result>) return std::move(*called->result);
}

// A Python object that threads without the interpreter's lock may copy and release.
using Shared = std::shared_ptr<nanobind::object>;
Shared shared(nanobind::object object);

}  // namespace fovea::python
