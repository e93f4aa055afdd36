#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http/held_memory.h"
#include "http/http.h"

namespace fovea::http {

// The part of a response that is not sent yet. Any thread adds to it; the server's thread removes
// from it.
struct Outbox {
  explicit Outbox(HeldMemory& memory) : kept(memory), waiting(memory) {}

  std::mutex mutex;
  HeldMemory::Share kept;     // by the handler: Exchange::hold()
  HeldMemory::Share waiting;  // `unsent`
  std::string bytes;
  size_t unsent = 0;     // size of `bytes` and of the bytes passed to the socket
  size_t total = 0;      // bytes of the response so far, for the log
  int status = 0;        // of the response, for the log; 0 = none yet
  bool begun = false;    // `bytes` contains or contained a head
  bool last = false;     // the response is complete
  bool cut = false;      // close without completing the response
  bool close = false;    // the connection ends with this response
  bool gone = false;     // the rest is not needed, as in Exchange::gone()
  bool noticed = false;  // the server's thread was notified of `bytes`
  std::function<void()> on_gone;
};

// The properties of a request that affect the head of its response.
struct ResponseTo {
  std::string id;
  int minor = 1;
  bool head_only = false;  // the request was HEAD
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers;  // CORS headers
  ErrorFormat format_error = plain_error;
};

enum class Framing { length, chunks, until_close };
std::string response_head(const Response& response, const ResponseTo& to, bool close,
                          Framing framing);

class LiveExchange : public Exchange {
 public:
  // `notify` makes the server's thread process the outbox; `draining` returns whether the server is
  // about to stop.
  LiveExchange(std::shared_ptr<Outbox> outbox, ResponseTo to, std::function<void()> notify,
               std::function<bool()> draining);
  ~LiveExchange() override;

  void send(Response response) override;
  void begin(Response head) override;
  bool write(std::string_view piece) override;
  void finish() override;
  void abort() override;
  bool gone() const override;
  bool hold(int64_t bytes) override;
  void on_gone(std::function<void()> call) override;
  bool responded() const;  // true also if a stream has started

 private:
  // Returns false, and cuts a response in pieces, if the server holds too much memory.
  bool put(std::string bytes, bool last);
  std::string framed(std::string_view piece) const;

  std::shared_ptr<Outbox> outbox_;
  ResponseTo to_;
  std::function<void()> notify_;
  std::function<bool()> draining_;
  Framing framing_ = Framing::length;
};

}  // namespace fovea::http
