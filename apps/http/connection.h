#pragma once

#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "http/body_reader.h"
#include "http/handler_pool.h"
#include "http/http_server.h"
#include "http/live_exchange.h"

namespace fovea::http {

class Connection;

// What the connections of one server share; all but `draining` belongs to the server's thread.
struct Connections {
  const Router& router;
  const ServerOptions& options;
  HandlerPool& pool;
  std::function<void()> one_closed;
  std::set<std::shared_ptr<Connection>> open = {};
  std::atomic<bool> draining{false};
};

// One client's connection: reads a request, has it handled, writes the answer, and again. All
// members are called on the server's thread. Requests are answered in their order; the next one is
// not looked at before the answer has gone out.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, Connections& all);
  void start();
  void turn_away();  // too many are here: 503
  void drain();      // ends now if it is idle, else with its answer
  void close();

 private:
  void read_request();
  void read_more_head();
  void on_head(const RequestHead& head);
  void refuse(const Refusal& refusal);
  void answer_unread(Response response);
  void read_body();
  void on_body(std::string_view bytes);
  void dispatch();
  void expire_after(std::chrono::steady_clock::duration time);
  void expire_never();
  template <class Next>
  void read_some(Next next);
  void start_deadline(const std::shared_ptr<LiveExchange>& exchange);
  void answer_too_late(LiveExchange& exchange);
  Response failure(int status, const std::string& message, const char* code) const;
  std::shared_ptr<LiveExchange> open_exchange();
  void watch();
  void flush();
  void write_piece();
  void end_answer();
  void call_off();
  void log(bool whole);
  void linger();

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;     // of what the socket does
  boost::asio::steady_timer deadline_;  // of the answer
  std::string buffer_;                  // what the client has sent and nobody has read
  Connections& all_;
  std::optional<RequestHead> head_;
  std::optional<BodyReader> body_;
  const Route* route_ = nullptr;
  std::shared_ptr<Outbox> outbox_;  // of the answer under way
  std::string writing_;
  size_t written_ = 0, lingered_ = 0;
  std::chrono::steady_clock::time_point began_;
  bool idle_ = true, watching_ = false, closed_ = false, busy_writing_ = false;
};

}  // namespace fovea::http
