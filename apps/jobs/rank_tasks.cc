#include "jobs/rank_tasks.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "fovea/core/error.h"

namespace fovea::jobs {
namespace {

using Json = Ranks::Json;

}  // namespace

bool RankTasks::read(const Ranks::Message& message, const TaskDone& done) {
  waiting_.push_back(message.from);
  const Json& content = message.content;
  if (content.contains("key") && content["key"] != key_)
    throw Error(ErrorKind::BadFile,
                fmt::format("{}: its work is {}; expected that of rank 0, {}",
                            ranks_.name(message.from), content["key"].get<std::string>(), key_));
  if (!content.contains("task")) return false;
  done(content["task"], content["result"]);
  return true;
}

void RankTasks::serve(const std::vector<Json>& tasks, const std::function<size_t()>& take,
                      const TaskDone& done, const std::stop_token& failed) {
  int busy = 0;
  for (bool more = true; (more || busy > 0) && !failed.stop_requested();) {
    const auto message = ranks_.receive();
    if (message && read(*message, done)) --busy;
    if (more && !waiting_.empty()) {
      const size_t task = take();
      more = task < tasks.size();
      if (more) {
        ranks_.send(waiting_.front(), {{"task", task}, {"content", tasks[task]}});
        waiting_.pop_front();
        ++busy;
      }
    } else if (!message) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

void RankTasks::run(const std::vector<Json>& tasks, const Task& compute, const TaskDone& done) {
  std::mutex mutex;  // of `done` and `error`
  std::exception_ptr error;
  std::atomic<size_t> next = 0;
  const auto take = [&] { return next++; };
  const auto finish = [&](size_t task, const Json& result) {
    const std::lock_guard lock(mutex);
    if (error) std::rethrow_exception(error);
    done(task, result);
  };
  {
    std::jthread server([&](const std::stop_token& failed) {
      try {
        serve(tasks, take, finish, failed);
      } catch (...) {
        const std::lock_guard lock(mutex);
        error = std::current_exception();
      }
    });
    try {
      for (size_t task = take(); task < tasks.size(); task = take())
        finish(task, compute(tasks[task]));
    } catch (...) {
      server.request_stop();
      throw;
    }
    server.join();
  }
  if (error) std::rethrow_exception(error);
}

void RankTasks::end() {
  for (int left = ranks_.size() - 1; left > 0; --left) {
    while (waiting_.empty()) read(ranks_.wait(), {});
    ranks_.send(waiting_.front(), Json());
    waiting_.pop_front();
  }
}

void help_with_tasks(const Ranks& ranks, const std::string& key, const Task& compute) {
  Json message = {{"key", key}};
  while (true) {
    ranks.send(0, message);
    const Json answer = ranks.wait().content;
    if (answer.is_null()) return;
    message = {{"task", answer["task"]}, {"result", compute(answer["content"])}};
  }
}

}  // namespace fovea::jobs
