#include "jobs/line_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <future>
#include <list>
#include <thread>
#include <vector>

#include "fovea/core/error.h"
#include "jobs/journal.h"
#include "jobs/line_queue.h"
#include "jobs/ranks.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::jobs {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;
using Compute = std::function<BlockResult(const LineBlock&)>;

Json as_json(const LineBlock& block) {
  return {{"file", block.file},
          {"first", block.first},
          {"in_file_at", block.in_file_at},
          {"lines", block.lines}};
}

LineBlock block_of(const Json& json) {
  return {json.at("file"), json.at("first"), json.at("in_file_at"), json.at("lines")};
}

Json as_json(const BlockResult& result) {
  return {{"bytes", result.bytes},   {"tokens", result.tokens},
          {"cut", result.cut},       {"first_cut", result.first_cut},
          {"errors", result.errors}, {"first_error", result.first_error}};
}

BlockResult result_of(const Json& json) {
  return {json.at("bytes"),     json.at("tokens"), json.at("cut"),
          json.at("first_cut"), json.at("errors"), json.at("first_error")};
}

// Runs on ranks other than 0: requests blocks until there are no more. The first message to rank 0
// describes the job; each further message contains a result.
void help(const Ranks& ranks, const Json& key, const Compute& compute) {
  Json message = {{"key", key}};
  while (true) {
    ranks.send(0, message);
    const Json answer = ranks.wait().content;
    if (answer.is_null()) return;
    const LineBlock block = block_of(answer);
    message = {{"first", block.first}, {"result", as_json(compute(block))}};
  }
}

// Does the same with `at_once` blocks at a time. Only this thread exchanges messages.
void help_with_many(const Ranks& ranks, const Json& key, size_t at_once, const Compute& compute) {
  std::list<std::future<Json>> begun;
  for (size_t i = 0; i < at_once; ++i) ranks.send(0, {{"key", key}});
  for (size_t left = at_once; left > 0;) {
    const auto message = ranks.receive();
    if (message && message->content.is_null()) --left;
    if (message && !message->content.is_null())
      begun.push_back(
          std::async(std::launch::async, [&compute, block = block_of(message->content)] {
            return Json{{"first", block.first}, {"result", as_json(compute(block))}};
          }));
    const auto finished = std::ranges::find_if(
        begun, [](const auto& each) { return each.wait_for(0s) == std::future_status::ready; });
    if (finished != begun.end()) {
      ranks.send(0, finished->get());
      begun.erase(finished);
    } else if (!message) {
      std::this_thread::sleep_for(1ms);
    }
  }
}

void check_key(const std::string& rank, const Json& theirs, const Json& ours) {
  const std::string other = difference(ours, theirs);
  if (!other.empty())
    throw Error(ErrorKind::BadFile,
                fmt::format("{}: its {} differs from that of rank 0; expected the same files and "
                            "options on every machine",
                            rank, other));
}

// Runs on a thread of rank 0: responds to the other ranks until none of them waits for a block.
void serve(const Ranks& ranks, const LineJob& job, LineQueue& queue) {
  std::deque<int> waiting;
  for (size_t left = (static_cast<size_t>(ranks.size()) - 1) * job.at_once; left > 0;) {
    bool idle = true;
    queue.check();
    if (const auto message = ranks.receive()) {
      const Json& content = message->content;
      if (content.contains("key")) check_key(ranks.name(message->from), content["key"], job.key);
      if (content.contains("first")) queue.put(content["first"], result_of(content["result"]));
      waiting.push_back(message->from);
      idle = false;
    }
    std::optional<LineBlock> block;
    if (!waiting.empty() && queue.try_take(block)) {
      ranks.send(waiting.front(), block ? as_json(*block) : Json());
      waiting.pop_front();
      left -= block ? 0 : 1;
      idle = false;
    }
    if (idle) std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

std::optional<JobProgress> run_lines(const LineJob& job, const Compute& compute) {
  Ranks* const ranks = Ranks::current();
  if (ranks != nullptr && ranks->rank() > 0) {
    if (job.at_once > 1)
      help_with_many(*ranks, job.key, job.at_once, compute);
    else
      help(*ranks, job.key, compute);
    return std::nullopt;
  }
  if (ranks == nullptr) cli::catch_signals();
  if (ranks != nullptr && job.out.empty() && ranks->mixes_streams())
    cli::note(
        "note: mpirun of Open MPI 5 mixes results on standard output with messages; expected "
        "--out FILE, or mpirun --output :raw\n");
  constexpr size_t kAhead = 4;  // per block at a time, so that a slow one rarely holds up others
  const size_t count = ranks == nullptr ? 1 : static_cast<size_t>(ranks->size());
  const bool alone = ranks == nullptr && job.at_once == 1;
  LineQueue queue(job, alone ? 1 : kAhead * count * job.at_once);
  {
    std::jthread server;
    if (ranks != nullptr)
      server = std::jthread([&] {
        try {
          serve(*ranks, job, queue);
        } catch (...) {
          queue.fail(std::current_exception());
        }
      });
    std::vector<std::jthread> others;
    for (size_t i = 1; i < job.at_once; ++i)
      others.emplace_back([&] { compute_blocks(queue, compute, cli::stop_requested); });
    compute_blocks(queue, compute, cli::stop_requested);
  }
  if (!cli::stop_requested()) return queue.finish();
  if (!is_stream(job.out))
    cli::note("the finished output is kept; the same command resumes the job\n");
  return std::nullopt;
}

}  // namespace fovea::jobs
