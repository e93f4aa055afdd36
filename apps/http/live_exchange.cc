#include "http/live_exchange.h"

#include <fmt/format.h>

#include <utility>

namespace fovea::http {
namespace {

// Maximum bytes of a stream that may wait to be sent; normal delays cause far fewer.
constexpr size_t kMostUnsent = size_t{4} << 20;

// Responses of at most this size are sent even if the server holds too much memory.
constexpr int64_t kAlwaysTaken = int64_t{64} << 10;

// Returns whether a header's value contains no control characters. A line break in a client's text
// could otherwise add a header.
bool is_safe(std::string_view value) {
  for (const char c : value) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  }
  return true;
}

void add_header(std::string& head, std::string_view name, std::string_view value) {
  if (is_safe(value)) head += fmt::format("{}: {}\r\n", name, value);
}

}  // namespace

std::string response_head(const Response& response, const ResponseTo& to, bool close,
                          Framing framing) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  if (!response.content_type.empty()) add_header(head, "Content-Type", response.content_type);
  if (framing == Framing::chunks) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (framing == Framing::length && response.status != 204) {
    head += fmt::format("Content-Length: {}\r\n", response.body.size());
  }
  if (!to.id.empty()) add_header(head, "X-Request-Id", to.id);
  for (const auto& [name, value] : response.headers) add_header(head, name, value);
  for (const auto& [name, value] : to.headers) add_header(head, name, value);
  if (close) {
    head += "Connection: close\r\n";
  } else if (to.minor == 0) {
    head += "Connection: keep-alive\r\n";
  }
  return head + "\r\n";
}

LiveExchange::LiveExchange(std::shared_ptr<Outbox> outbox, ResponseTo to,
                           std::function<void()> notify, std::function<bool()> draining)
    : outbox_(std::move(outbox)),
      to_(std::move(to)),
      notify_(std::move(notify)),
      draining_(std::move(draining)) {}

LiveExchange::~LiveExchange() {
  bool begun = false, ended = false, left = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    begun = outbox_->begun;
    ended = outbox_->last || outbox_->cut;
    left = outbox_->gone;
    outbox_->on_gone = nullptr;
  }
  if (ended) return;
  if (begun || left) {
    abort();
  } else {
    send(to_.format_error({500, "the request was dropped"}));
  }
}

bool LiveExchange::put(std::string bytes, bool last) {
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->last || outbox_->cut) return true;
    if (!outbox_->waiting.set(static_cast<int64_t>(outbox_->unsent + bytes.size()), kAlwaysTaken))
      return false;
    outbox_->unsent += bytes.size();
    outbox_->total += bytes.size();
    if (outbox_->bytes.empty()) {
      outbox_->bytes = std::move(bytes);
    } else {
      outbox_->bytes += bytes;
    }
    outbox_->last = last;
    if (outbox_->noticed) return true;
    outbox_->noticed = true;
  }
  notify_();
  return true;
}

void LiveExchange::send(Response response) {
  const bool close = !to_.keep_alive || draining_();
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->begun) return;
    outbox_->begun = true;
    outbox_->close = close;
    outbox_->status = response.status;
  }
  std::string bytes = response_head(response, to_, close, Framing::length);
  if (!to_.head_only) bytes += response.body;
  if (put(std::move(bytes), true)) return;
  response = to_.format_error(
      {503, "too many large responses wait for their clients; try again", "overloaded"});
  response.headers.emplace_back("Retry-After", "1");
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->status = response.status;
  }
  put(response_head(response, to_, close, Framing::length) + response.body, true);
}

void LiveExchange::begin(Response head) {
  framing_ = to_.minor == 1 ? Framing::chunks : Framing::until_close;
  const bool close = !to_.keep_alive || framing_ == Framing::until_close || draining_();
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->begun) return;
    outbox_->begun = true;
    outbox_->close = close;
    outbox_->status = head.status;
  }
  const std::string first = std::move(head.body);
  head.body.clear();
  if (!put(response_head(head, to_, close, framing_) + framed(first), false)) abort();
}

std::string LiveExchange::framed(std::string_view piece) const {
  if (piece.empty() || to_.head_only) return {};
  if (framing_ != Framing::chunks) return std::string(piece);
  return fmt::format("{:x}\r\n{}\r\n", piece.size(), piece);
}

bool LiveExchange::write(std::string_view piece) {
  bool too_slow = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->gone || outbox_->cut) return false;
    too_slow = outbox_->unsent > kMostUnsent;
  }
  if (too_slow || !put(framed(piece), false)) {
    abort();
    return false;
  }
  return true;
}

void LiveExchange::finish() {
  put(framing_ == Framing::chunks && !to_.head_only ? "0\r\n\r\n" : "", true);
}

void LiveExchange::abort() {
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->last) return;
    outbox_->cut = true;
  }
  notify_();
}

bool LiveExchange::gone() const {
  const std::lock_guard lock(outbox_->mutex);
  return outbox_->gone;
}

bool LiveExchange::hold(int64_t bytes) {
  const std::lock_guard lock(outbox_->mutex);
  return outbox_->kept.add(bytes);
}

bool LiveExchange::responded() const {
  const std::lock_guard lock(outbox_->mutex);
  return outbox_->begun;
}

void LiveExchange::on_gone(std::function<void()> call) {
  {
    const std::lock_guard lock(outbox_->mutex);
    if (!outbox_->gone) {
      outbox_->on_gone = std::move(call);
      return;
    }
  }
  call();
}

}  // namespace fovea::http
