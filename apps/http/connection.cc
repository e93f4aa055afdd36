#include "http/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <exception>
#include <random>

#include "base/stop.h"

namespace fovea::http {
namespace {

Refusal overloaded(const char* what) {
  return {503, fmt::format("too many {} are waiting", what), "overloaded", {{"Retry-After", "1"}}};
}

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 << 10;   // bytes per read: an idle client takes little memory
constexpr size_t kWriteBytes = 64 << 10;  // bytes per write: each write has its own time limit
// Before a connection is closed, the rest of the request is read and discarded up to these limits
// of size and time, so that the client receives the response instead of a connection reset.
constexpr size_t kLingerBytes = size_t{16} << 20;
constexpr std::chrono::seconds kLinger{2};
constexpr int64_t kSmallBody = 64 << 10;  // is read even if the server holds too much memory

bool is_harmless_id(std::string_view id) {
  constexpr size_t kLongest = 128;
  return !id.empty() && id.size() <= kLongest && std::all_of(id.begin(), id.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

std::string request_id(const Request& request) {
  const std::string_view given = request.header("x-request-id");
  if (is_harmless_id(given)) return std::string(given);
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return fmt::format("{:016x}", generator());
}

}  // namespace

Connection::Connection(Socket socket, Connections& all)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      deadline_(socket_.get_executor()),
      all_(all) {}

// Closes the connection unless the timer is set again before it expires.
void Connection::expire_after(std::chrono::steady_clock::duration time) {
  timer_.expires_after(time);
  timer_.async_wait([self = shared_from_this()](error_code stopped) {
    // The timer may have been set again after this call was queued.
    if (!stopped && self->timer_.expiry() <= std::chrono::steady_clock::now()) self->close();
  });
}

void Connection::expire_never() { timer_.expires_at(std::chrono::steady_clock::time_point::max()); }

// Appends the next bytes to the buffer, then calls next().
template <class Next>
void Connection::read_some(Next next) {
  const size_t size = buffer_.size();
  buffer_.resize(size + kReadBytes);
  socket_.async_read_some(
      asio::buffer(&buffer_[size], kReadBytes),
      [self = shared_from_this(), size, next = std::move(next)](error_code error, size_t count) {
        if (error || self->closed_) return self->close();
        self->buffer_.resize(size + count);
        next();
      });
}

void Connection::start() {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  expire_after(all_.options.times.head);
  read_request();
}

void Connection::turn_away() {
  began_ = std::chrono::steady_clock::now();
  refuse({503, "too many connections", "too_many_connections", {{"Retry-After", "1"}}});
}

// Reads the head of a request. The timer must be running.
void Connection::read_request() {
  idle_ = true;
  head_.reset();
  body_.reset();
  body_held_.reset();
  route_ = nullptr;
  if (buffer_.empty()) return read_more_head();
  try {
    began_ = std::chrono::steady_clock::now();
    idle_ = false;
    head_ = read_head(buffer_, all_.options.limits);
  } catch (const Refusal& refusal) {
    return refuse(refusal);
  }
  if (!head_) return read_more_head();
  buffer_.erase(0, head_->bytes);
  on_head(*head_);
}

void Connection::read_more_head() {
  read_some([this] {
    if (idle_) expire_after(all_.options.times.head);
    read_request();
  });
}

// Checks the access and the size of a request before its body is read.
void Connection::on_head(const RequestHead& head) {
  Request& request = head_->request;
  request.id = request_id(request);
  auto found = all_.router->find(request);
  const Route* const* const route = std::get_if<const Route*>(&found);
  if (route != nullptr) route_ = *route;
  const bool needs_key = route_ == nullptr || route_->needs_key;
  if (const auto refusal = all_.options.access.refuse(request, needs_key)) return refuse(*refusal);
  if (const auto* refusal = std::get_if<Refusal>(&found)) return refuse(*refusal);
  if (auto* response = std::get_if<Response>(&found)) return respond_unread(std::move(*response));
  const size_t most = route_->most_body > 0 ? route_->most_body : all_.options.limits.body;
  try {
    body_.emplace(head.body_bytes, head.chunked, most);
  } catch (const Refusal& refusal) {
    return refuse(refusal);
  }
  body_held_ = std::make_shared<HeldMemory::Share>(all_.held);
  if (!body_held_->set(static_cast<int64_t>(head.chunked ? most : head.body_bytes), kSmallBody))
    return refuse(overloaded("large requests"));
  expire_after(all_.options.times.body);
  if (!head.expects_continue || body_->done()) return read_body();
  writing_ = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](error_code error, size_t) {
                      if (error || self->closed_) return self->close();
                      self->writing_.clear();
                      self->read_body();
                    });
}

void Connection::refuse(const Refusal& refusal) { respond_unread(response_to(refusal)); }

// An unread body cannot be distinguished from the next request, so the connection is then closed.
void Connection::respond_unread(Response response) {
  if (head_ && (head_->chunked || head_->body_bytes > 0)) head_->keep_alive = false;
  idle_ = false;
  const auto exchange = open_exchange();
  exchange->send(std::move(response));
}

void Connection::read_body() {
  try {
    buffer_.erase(0, body_->take(buffer_));
  } catch (const Refusal& refusal) {
    return refuse(refusal);
  }
  if (body_->done()) return dispatch();
  read_some([this] { read_body(); });
}

std::shared_ptr<LiveExchange> Connection::open_exchange() {
  outbox_ = std::make_shared<Outbox>(all_.held);
  ResponseTo to;
  to.keep_alive = head_ && head_->keep_alive;
  to.format_error = error_format();
  if (head_) {
    const Request& request = head_->request;
    to.id = request.id;
    to.minor = request.minor;
    to.head_only = request.method == "HEAD";
    Response cors;
    all_.options.access.add_cors_headers(request, cors);
    to.headers = std::move(cors.headers);
  }
  auto notify = [self = shared_from_this(), executor = socket_.get_executor()] {
    asio::post(executor, [self] { self->flush(); });
  };
  return std::make_shared<LiveExchange>(outbox_, std::move(to), std::move(notify),
                                        [&all = all_] { return all.draining.load(); });
}

const ErrorFormat& Connection::error_format() const {
  return route_ != nullptr && route_->format_error ? route_->format_error
                                                   : all_.options.format_error;
}

Response Connection::response_to(const Refusal& refusal) const {
  Response response = error_format()(refusal);
  response.headers.insert(response.headers.end(), refusal.headers.begin(), refusal.headers.end());
  return response;
}

void Connection::start_deadline(const std::shared_ptr<LiveExchange>& exchange) {
  if (all_.options.times.response.count() == 0) return;
  deadline_.expires_after(all_.options.times.response);
  deadline_.async_wait([self = shared_from_this(), outbox = outbox_,
                        weak = std::weak_ptr(exchange)](error_code stopped) {
    const auto waiting = weak.lock();
    if (!stopped && waiting && self->outbox_ == outbox) self->respond_too_late(*waiting);
  });
}

// Responds to a request that took too long. A started stream is ended by its writer.
void Connection::respond_too_late(LiveExchange& exchange) {
  {
    const std::lock_guard lock(outbox_->mutex);
    if (outbox_->begun) return;
  }
  exchange.send(response_to({503, "the response takes longer than --max-time"}));
  call_off();
}

void Connection::dispatch() {
  expire_never();
  auto exchange = open_exchange();
  start_deadline(exchange);
  // The body is moved, and the fields for the log are copied.
  Request request = head_->request;
  request.body = std::move(body_->body());
  body_.reset();
  watch();
  auto handle = [route = route_, format = error_format(), request = std::move(request),
                 held = std::move(body_held_), exchange]() mutable {
    if (exchange->responded()) return;  // its time limit was exceeded while it waited
    const StopScope scope([&exchange] { return exchange->gone(); });
    try {
      route->handler(std::move(request), exchange);
    } catch (const std::exception& error) {
      exchange->send(format({500, error.what()}));
    }
  };
  if (route_->at_once) return handle();
  if (all_.pool.run(std::move(handle))) return;
  exchange->send(response_to(overloaded("requests")));
}

// Detects that the client disconnects while a response is computed, when no bytes are read.
void Connection::watch() {
  if (watching_ || closed_) return;
  watching_ = true;
  socket_.async_wait(asio::socket_base::wait_read, [self = shared_from_this()](error_code error) {
    self->watching_ = false;
    if (error || self->closed_ || !self->outbox_) return;
    char byte = 0;
    const ssize_t count = recv(self->socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    const bool nothing = count < 0 && (errno == EAGAIN || errno == EINTR);
    if (nothing) return self->watch();
    if (count <= 0) self->call_off();  // count > 0: the next request, which waits
  });
}

// Notifies the handler that the rest of the response is not needed.
void Connection::call_off() {
  if (!outbox_) return;
  std::function<void()> call;
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->gone = true;
    call.swap(outbox_->on_gone);
  }
  if (call) call();
}

void Connection::flush() {
  if (busy_writing_ || closed_ || !outbox_) return;
  bool last = false, cut = false;
  {
    const std::lock_guard lock(outbox_->mutex);
    outbox_->noticed = false;
    outbox_->unsent -= writing_.size();
    outbox_->waiting.set(static_cast<int64_t>(outbox_->unsent));
    writing_.clear();
    writing_.swap(outbox_->bytes);
    last = outbox_->last;
    cut = outbox_->cut;
  }
  written_ = 0;
  if (!writing_.empty()) return write_piece();
  if (cut) return close();
  if (last) end_response();
}

void Connection::write_piece() {
  busy_writing_ = true;
  expire_after(all_.options.times.write);
  const size_t count = std::min(writing_.size() - written_, kWriteBytes);
  socket_.async_write_some(asio::buffer(writing_.data() + written_, count),
                           [self = shared_from_this()](error_code error, size_t sent) {
                             self->busy_writing_ = false;
                             if (error || self->closed_) return self->close();
                             self->written_ += sent;
                             self->expire_never();
                             if (self->written_ < self->writing_.size()) return self->write_piece();
                             self->flush();
                           });
}

void Connection::end_response() {
  deadline_.cancel();
  log(true);
  const bool close_now = outbox_->close;
  outbox_.reset();
  if (close_now) return linger();
  if (all_.draining) return close();
  const Times& times = all_.options.times;
  expire_after(buffer_.empty() ? times.idle : times.head);
  read_request();
}

void Connection::log(bool whole) {
  if (!all_.options.log) return;
  AccessRecord record;
  if (head_) {
    record.method = head_->request.method;
    record.path = head_->request.path;
    record.id = head_->request.id;
    if (route_ != nullptr) record.route = route_->path;
  }
  constexpr int kClientLeft = 499;  // no status was sent; the code that nginx logs
  {
    const std::lock_guard lock(outbox_->mutex);  // a handler may still use it
    record.status = outbox_->status != 0 ? outbox_->status : kClientLeft;
    record.bytes = outbox_->total;
  }
  record.whole = whole;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began_;
  record.seconds = passed.count();
  all_.options.log(record);
}

void Connection::linger() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  buffer_.clear();
  if (lingered_ == 0) expire_after(kLinger);
  read_some([this] {
    lingered_ += buffer_.size();
    if (lingered_ > kLingerBytes) return close();
    linger();
  });
}

void Connection::drain() {
  if (idle_) close();
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  body_held_.reset();
  const auto self = shared_from_this();
  error_code ignored;
  socket_.close(ignored);
  timer_.cancel();
  deadline_.cancel();
  if (outbox_) {
    call_off();
    log(false);
    outbox_.reset();
  }
  all_.open.erase(self);
  all_.one_closed();
}

}  // namespace fovea::http
