#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "fovea/core/error.h"
#include "http/http_server.h"
#include "unit/http/client.h"

namespace fovea::http {

// A server with routes that exercise the transport.
class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    options_.port = 0;
    options_.log = [this](const AccessRecord& record) {
      const std::lock_guard lock(mutex_);
      log_ +=
          record.path + " " + std::to_string(record.status) + (record.whole ? "" : " cut") + "\n";
      changed_.notify_all();
    };
  }
  void TearDown() override {
    held_.reset();
    server_.reset();
  }

  uint16_t open() {
    server_ = std::make_unique<Server>(routes(), options_);
    server_->start();
    return server_->port();
  }

  Router routes() {
    Router router;
    router.add({"GET", "/health", false,
                [](Request, std::shared_ptr<Exchange> exchange) {
                  exchange->send({200, "text/plain", {}, "well"});
                },
                true});
    router.add({"POST", "/echo", true, [](Request request, std::shared_ptr<Exchange> exchange) {
                  exchange->send({200, "text/plain", {}, request.body});
                }});
    router.add({"POST", "/big", true, [](Request, std::shared_ptr<Exchange> exchange) {
                  exchange->send({200, "text/plain", {}, std::string(10'000'000, 'x')});
                }});
    Route large = {"POST", "/large"};
    large.handler = [](Request request, std::shared_ptr<Exchange> exchange) {
      exchange->send({200, "text/plain", {}, std::to_string(request.body.size())});
    };
    large.most_body = 4'000'000;
    router.add(large);
    router.add({"POST", "/hold", true, [this](Request, std::shared_ptr<Exchange> exchange) {
                  const std::lock_guard lock(mutex_);
                  exchange->on_gone([this] { say_gone(); });
                  held_ = std::move(exchange);
                  changed_.notify_all();
                }});
    router.add({"POST", "/stream", true, [](Request, std::shared_ptr<Exchange> exchange) {
                  exchange->begin({200, "text/event-stream", {}, ""});
                  for (const char* piece : {"one ", "two ", "three"}) exchange->write(piece);
                  exchange->finish();
                }});
    // Occupies the handler's thread, as the processing of a long text does.
    router.add({"POST", "/work", true, [this](Request, std::shared_ptr<Exchange> exchange) {
                  std::unique_lock lock(mutex_);
                  ++at_work_;
                  changed_.notify_all();
                  changed_.wait_for(lock, std::chrono::seconds(10), [this] { return work_ends_; });
                  exchange->send({200, "text/plain", {}, "worked"});
                }});
    router.add({"POST", "/plain", true, [](Request, std::shared_ptr<Exchange>) {}, false,
                [](const Refusal& refusal) {
                  return Response{refusal.status, "text/plain", {}, "plainly: " + refusal.message};
                }});
    router.add({"POST", "/drop", true, [](Request, std::shared_ptr<Exchange>) {}});
    router.add({"POST", "/throw", true, [](Request, std::shared_ptr<Exchange>) {
                  throw Error(ErrorKind::Internal, "broken");
                }});
    return router;
  }

  void say_gone() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  bool wait(const std::function<bool()>& until) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), until);
  }
  std::shared_ptr<Exchange> held() {
    wait([this] { return held_ != nullptr; });
    return held_;
  }

  ServerOptions options_;
  std::unique_ptr<Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Exchange> held_;
  std::string log_;
  bool gone_ = false, work_ends_ = false;
  int at_work_ = 0;
};

inline std::string post(const std::string& path, const std::string& body,
                        const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace fovea::http
