#include "call.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <thread>

#include "base/stop.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

using namespace std::chrono_literals;

// A thread that does one job after another. It is used by the main thread only, and never ends.
class Worker {
 public:
  Worker() : process_(getpid()) {
    std::thread([this] { work(); }).detach();
  }
  // A child of fork() has no threads of its parent.
  bool lives() const { return process_ == getpid(); }

  void start(const std::shared_ptr<Job>& job) {
    const std::scoped_lock lock(mutex_);
    next_ = job;
    given_.notify_one();
  }

 private:
  [[noreturn]] void work() {
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock lock(mutex_);
        given_.wait(lock, [&] { return next_ != nullptr; });
        job = std::move(next_);
        next_ = nullptr;
      }
      {
        const StopScope scope([&] { return job->stop.load() || is_ending(); });
        job->run();
      }
      job->run = nullptr;
      const std::scoped_lock lock(job->mutex);
      job->done = true;
      job->changed.notify_all();
    }
  }

  pid_t process_;
  std::mutex mutex_;
  std::condition_variable given_;
  std::shared_ptr<Job> next_;
};

Worker* idle = nullptr;                      // used by the main thread only, as `left_behind`
std::set<std::shared_ptr<Job>> left_behind;  // jobs that Ctrl-C did not wait for

bool wait_for(Job& job, std::chrono::milliseconds time) {
  const nb::gil_scoped_release unlocked;
  std::unique_lock lock(job.mutex);
  return job.changed.wait_for(lock, time, [&] { return job.done; });
}

bool is_done(Job& job) {
  const std::scoped_lock lock(job.mutex);
  return job.done;
}

// Waits, with the error of the signal put aside. Returns whether the job is done.
bool end_job(Job& job) {
  nb::error_scope kept;
  if (job.interrupt)
    job.interrupt();
  else
    job.stop = true;
  if (job.patience >= 0) return wait_for(job, std::chrono::milliseconds(job.patience));
  while (!wait_for(job, 50ms))
    if (PyErr_CheckSignals() != 0) {
      PyErr_Clear();
      return false;
    }
  return true;
}

std::atomic<bool> ending = false;
std::mutex apart_mutex;
std::condition_variable apart_changed;
int64_t apart = 0;  // threads of run_apart(); guarded by the mutex

void wait_for_all() {
  ending = true;
  for (const std::shared_ptr<Job>& job : left_behind)
    while (!wait_for(*job, 20ms)) {
    }
  left_behind.clear();
  const nb::gil_scoped_release unlocked;
  std::unique_lock lock(apart_mutex);
  apart_changed.wait(lock, [] { return apart == 0; });
}

// A child of fork() has none of these threads.
void forget_threads() {
  left_behind.swap(*new std::set<std::shared_ptr<Job>>());
  apart = 0;
}

}  // namespace

bool in_main_thread() { return syscall(SYS_gettid) == getpid(); }

void run_job(const std::shared_ptr<Job>& job) {
  std::erase_if(left_behind, [](const auto& old) { return is_done(*old); });
  // A handler of a signal may call while another call waits, which then has its own worker.
  Worker* const worker = idle != nullptr && idle->lives() ? idle : new Worker();
  idle = nullptr;
  worker->start(job);
  while (!wait_for(*job, 20ms)) {
    if (PyErr_CheckSignals() == 0) continue;
    if (end_job(*job))
      idle = worker;
    else
      left_behind.insert(job);
    throw nb::python_error();
  }
  idle = worker;
}

void run_apart(std::function<void()> work) {
  {
    const std::scoped_lock lock(apart_mutex);
    ++apart;
  }
  std::thread([work = std::move(work)]() mutable {
    work();
    work = nullptr;
    const std::scoped_lock lock(apart_mutex);
    --apart;
    apart_changed.notify_all();
  }).detach();
}

bool is_ending() { return ending; }

void add_end_of_jobs(nb::module_& module) {
  pthread_atfork(nullptr, nullptr, forget_threads);
  module.def("_wait_for_jobs", wait_for_all);
  nb::module_::import_("atexit").attr("register")(module.attr("_wait_for_jobs"));
}

Shared shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* last) {
            if (!nb::is_alive()) return;  // the interpreter has ended
            const nb::gil_scoped_acquire locked;
            delete last;
          }};
}

}  // namespace fovea::python
