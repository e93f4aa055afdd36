#pragma once

#include <atomic>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "http/body_reader.h"
#include "http/handler_pool.h"
#include "http/held_memory.h"
#include "http/http_server.h"
#include "http/listener.h"
#include "http/live_exchange.h"

namespace fovea::http {

class Connection;

// State shared by the connections of one server; only the server's thread uses it, except the
// atomic members.
struct Connections {
  const Router* router;
  const ServerOptions& options;
  HandlerPool& pool;
  std::function<void()> one_closed;
  std::set<std::shared_ptr<Connection>> open = {};
  std::atomic<bool> draining{false};
  HeldMemory held{options.held};
};

// The connection of one client: reads a request, passes it to its handler, writes the response, and
// repeats. All members are called on the server's thread. Requests are handled in order; the next
// one is processed only after the response was sent.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Socket socket, Connections& all);
  void start();
  void turn_away();  // responds with 503: too many connections
  void drain();      // ends an idle connection now, otherwise after its response
  void close();

 private:
  void read_request();
  void read_more_head();
  void on_head(const RequestHead& head);
  void refuse(const Refusal& refusal);
  void respond_unread(Response response);
  const ErrorFormat& error_format() const;
  Response response_to(const Refusal& refusal) const;
  void read_body();
  void on_body(std::string_view bytes);
  void dispatch();
  void expire_after(std::chrono::steady_clock::duration time);
  void expire_never();
  template <class Next>
  void read_some(Next next);
  void start_deadline(const std::shared_ptr<LiveExchange>& exchange);
  void respond_too_late(LiveExchange& exchange);
  std::shared_ptr<LiveExchange> open_exchange();
  void watch();
  void flush();
  void write_piece();
  void end_response();
  void call_off();
  void log(bool whole);
  void linger();

  Socket socket_;
  boost::asio::steady_timer timer_;     // limits the time of a socket operation
  boost::asio::steady_timer deadline_;  // limits the time until the response
  std::string buffer_;                  // received bytes that are not processed yet
  Connections& all_;
  std::optional<RequestHead> head_;
  std::optional<BodyReader> body_;
  std::shared_ptr<HeldMemory::Share> body_held_;  // of `body_`, then of its handler
  const Route* route_ = nullptr;
  std::shared_ptr<Outbox> outbox_;  // of the current response
  std::string writing_;
  size_t written_ = 0, lingered_ = 0;
  std::chrono::steady_clock::time_point began_;
  bool idle_ = true, watching_ = false, closed_ = false, busy_writing_ = false;
};

}  // namespace fovea::http
