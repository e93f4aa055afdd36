#include "serve/jobs/direct_request.h"

#include <condition_variable>
#include <mutex>
#include <utility>
#include <variant>

#include "serve/request/api_error.h"

namespace fovea::serve {

// What the request and its Exchange share.
class DirectRequest::State {
 public:
  // The first response counts.
  void respond(http::Response response) {
    const std::lock_guard lock(mutex_);
    if (!response_) response_ = std::move(response);
    changed_.notify_all();
  }

  std::optional<http::Response> wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [&] { return response_.has_value(); });
    return response_;
  }

  bool cancelled() const {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  // Calls `call` when the request is cancelled, or now if it is.
  void on_cancel(std::function<void()> call) {
    {
      const std::lock_guard lock(mutex_);
      if (!cancelled_) {
        on_cancel_ = std::move(call);
        return;
      }
    }
    call();
  }

  void cancel() {
    std::function<void()> call;
    {
      const std::lock_guard lock(mutex_);
      cancelled_ = true;
      if (!response_) call = std::move(on_cancel_);
    }
    if (call) call();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<http::Response> response_;
  std::function<void()> on_cancel_;
  bool cancelled_ = false;
};

class DirectRequest::StoredExchange : public http::Exchange {
 public:
  explicit StoredExchange(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~StoredExchange() override { refuse(); }
  void send(http::Response response) override { state_->respond(std::move(response)); }

  void begin(http::Response head) override { head_ = std::move(head); }
  bool write(std::string_view piece) override {
    head_.body += piece;
    return !gone();
  }
  void finish() override { state_->respond(std::move(head_)); }

  void abort() override { refuse(); }
  bool gone() const override { return state_->cancelled(); }
  bool hold(int64_t) override { return true; }
  void on_gone(std::function<void()> call) override { state_->on_cancel(std::move(call)); }

 private:
  void refuse() {
    state_->respond(error_response(
        ErrorShape::openai, {500, "the server ended the request without a response", "", ""}));
  }

  const std::shared_ptr<State> state_;
  http::Response head_;
};

DirectRequest::DirectRequest(const http::Router& router, http::Request request)
    : state_(std::make_shared<State>()) {
  const auto exchange = std::make_shared<StoredExchange>(state_);
  auto found = router.find(request);
  if (const auto* route = std::get_if<const http::Route*>(&found))
    (*route)->handler(std::move(request), exchange);
  else if (const auto* refusal = std::get_if<http::Refusal>(&found))
    exchange->send(
        error_response(ErrorShape::openai, {refusal->status, refusal->message, "", refusal->code}));
  else
    exchange->send(std::move(std::get<http::Response>(found)));
}

DirectRequest::~DirectRequest() { state_->cancel(); }

std::optional<http::Response> DirectRequest::wait(std::chrono::milliseconds time) const {
  return state_->wait(time);
}

}  // namespace fovea::serve
