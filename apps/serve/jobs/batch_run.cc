#include "serve/jobs/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "base/hash.h"
#include "base/stop.h"
#include "serve/jobs/direct_request.h"

namespace fovea::serve {
namespace {

using namespace std::chrono_literals;

constexpr auto kPause = 50ms;  // until stopped() is asked again

// Whether a later attempt can succeed: too many requests wait, or too many large responses are
// being made.
bool is_temporary(const http::Response& response) {
  return response.status == 429 ||
         (response.status == 503 &&
          response.body.find("\"code\":\"overloaded\"") != std::string::npos);
}

}  // namespace

std::string BatchRun::id_of(size_t line) const {
  const std::string text = fmt::format("{}\n{}", identity, line);
  return fmt::format("batch_req_{}{}", hash_text(hash_bytes(text)),
                     hash_text(hash_bytes(text + "\n")).substr(8));
}

http::Request BatchRun::request_of(const BatchLine& line, const std::string& id) const {
  http::Request request;
  request.method = "POST";
  request.path = line.path;
  request.headers = {{"content-type", "application/json"}};
  request.body = line.body;
  request.id = id;
  return request;
}

http::Response BatchRun::response_to(const BatchLine& line, const std::string& id) const {
  constexpr int kMostPauses = 64, kMostAttempts = 300;  // a quarter of an hour
  for (int attempt = 1;; ++attempt) {
    const DirectRequest request(router, request_of(line, id));
    std::optional<http::Response> response;
    while (!(response = request.wait(kPause)))
      if (stopped()) throw Stopped();
    if (!is_temporary(*response) || attempt == kMostAttempts) return *response;
    for (int i = 0; i < std::min(1 << std::min(attempt, 10), kMostPauses); ++i) {
      if (stopped()) throw Stopped();
      std::this_thread::sleep_for(kPause);
    }
  }
}

jobs::BlockResult BatchRun::answer(const jobs::LineBlock& block) const {
  struct Begun {
    BatchLine line;
    std::string id;
    std::unique_ptr<DirectRequest> request;  // null: the line is invalid
  };
  std::vector<Begun> all;
  for (size_t i = 0; i < block.lines.size(); ++i) {
    const std::string where = name.empty()
                                  ? block.name_of(i)
                                  : fmt::format("{}: line {}", name, block.in_file_at + i + 1);
    const size_t number = block.first + i + 1;
    Begun begun{read_batch_line(block.lines[i], where, number, bare), id_of(number), nullptr};
    if (begun.line.error.empty())
      begun.request = std::make_unique<DirectRequest>(router, request_of(begun.line, begun.id));
    all.push_back(std::move(begun));
  }
  jobs::BlockResult result;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto& [line, id, request] = all[i];
    BatchAnswer answer = batch_error(line, id);
    if (request) {
      std::optional<http::Response> response;
      while (!(response = request->wait(kPause)))
        if (stopped()) throw Stopped();
      if (is_temporary(*response)) response = response_to(line, id);
      answer = batch_answer(line, id, *response);
    }
    result.bytes += answer.json + "\n";
    result.tokens += answer.tokens;
    if (answer.error.empty()) continue;
    if (result.errors++ == 0)
      result.first_error = request ? block.name_of(i) + ": " + answer.error : answer.error;
  }
  return result;
}

}  // namespace fovea::serve
