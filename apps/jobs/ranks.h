#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "parallel/communicator.h"

namespace fovea::jobs {

// The processes of one job that mpirun started on one machine or several, of which this is one.
// Rank 0 reads, writes and hands out the work.
class Ranks {
 public:
  using Json = nlohmann::ordered_json;
  struct Message {
    int from = 0;
    Json content;
  };

  // mpirun ties each of few ranks to a single core. Gives this one its machine's, where its share
  // of them is more; before anything counts them.
  static void take_cores();
  // Null if there is only one.
  static Ranks* current();
  // Whether this is one of several and not rank 0, which alone prints messages.
  static bool only_helps() { return current() != nullptr && current()->rank() > 0; }

  Ranks();   // waits for all others; throws as open_communicator() does
  ~Ranks();  // waits for all others
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  std::string name(int rank) const;  // "rank 1 (HOST)"

  void send(int to, const Json& content) const;
  std::optional<Message> receive() const;  // one that has arrived
  Message wait() const;                    // until one arrives

  // Ends all ranks with this exit code; reports the message in the name of this rank.
  [[noreturn]] void fail(const std::string& message, int code);
  [[noreturn]] void leave(int code);

 private:
  enum State : int { kRunning, kLeft };
  // Of a rank of this machine, in memory that all of them share.
  struct Neighbour {
    int rank;
    std::atomic<int>& process;
    std::atomic<int>& state;
  };

  void meet();
  void share_cores() const;
  void watch(const std::stop_token& stop);
  void report_the_dead();

  std::unique_ptr<Communicator> communicator_;
  std::vector<std::string> hosts_;  // of each rank
  std::vector<Neighbour> neighbours_;
  std::atomic<int>* reported_ = nullptr;  // shared: whether a neighbour has reported an error
  std::atomic<int>* own_state_ = nullptr;
  std::jthread watcher_;
};

}  // namespace fovea::jobs
