#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "http/http.h"

namespace fovea::http {

// What one answer still has to send. Filled by any thread, emptied by the server's.
struct Outbox {
  std::mutex mutex;
  std::string bytes;
  size_t unsent = 0;     // `bytes` and what the socket is being given
  size_t total = 0;      // for the log
  int status = 0;        // for the log
  bool begun = false;    // a head is in `bytes` or was
  bool last = false;     // nothing will be added
  bool cut = false;      // close without the end of the answer
  bool close = false;    // the connection ends with this answer
  bool gone = false;     // the client went
  bool noticed = false;  // the server's thread was told of `bytes`
  std::function<void()> on_gone;
};

// What the head of an answer depends on.
struct AnswerTo {
  std::string id;
  int minor = 1;
  bool head_only = false;  // the request was HEAD
  bool keep_alive = true;
  std::vector<std::pair<std::string, std::string>> headers;  // of CORS
};

enum class Framing { length, chunks, until_close };
std::string response_head(const Response& response, const AnswerTo& to, bool close,
                          Framing framing);

class LiveExchange : public Exchange {
 public:
  // `notify` tells the server's thread to look into the outbox; `draining` says that the server is
  // about to end.
  LiveExchange(std::shared_ptr<Outbox> outbox, AnswerTo to, std::function<void()> notify,
               std::function<bool()> draining);
  ~LiveExchange() override;

  void send(Response response) override;
  void begin(Response head) override;
  bool write(std::string_view piece) override;
  void finish() override;
  void abort() override;
  bool gone() const override;
  void on_gone(std::function<void()> call) override;
  bool answered() const;  // or a stream has begun

 private:
  void put(std::string bytes, bool last);
  std::string framed(std::string_view piece) const;

  std::shared_ptr<Outbox> outbox_;
  AnswerTo to_;
  std::function<void()> notify_;
  std::function<bool()> draining_;
  Framing framing_ = Framing::length;
};

}  // namespace fovea::http
