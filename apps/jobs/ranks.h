#pragma once

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "jobs/heartbeat.h"
#include "parallel/communicator.h"

namespace fovea::jobs {

// The processes (ranks) of one job, started by mpirun on one or several machines. Rank 0 reads,
// writes and distributes the work.
class Ranks {
 public:
  using Json = nlohmann::ordered_json;
  struct Message {
    int from = 0;
    Json content;
  };

  // mpirun binds each rank to a single core if there are few ranks. This function resets the
  // binding if the rank's share of the machine is larger; call it before any code counts cores.
  static void take_cores();
  // Returns the ranks of this process's job; null if there is only one process.
  static Ranks* current();
  // Returns whether this is a rank other than 0; only rank 0 prints messages.
  static bool only_helps() { return current() != nullptr && current()->rank() > 0; }

  Ranks();   // waits for all other ranks; throws like open_communicator()
  ~Ranks();  // waits for all other ranks
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  Communicator& communicator() const { return *communicator_; }
  std::string name(int rank) const;  // "rank 1 (HOST)"
  bool mixes_streams() const { return communicator_->mixes_streams(); }

  void send(int to, const Json& content) const;
  std::optional<Message> receive() const;  // empty if none has arrived
  Message wait() const;                    // waits for the next message

  // Reports the message with the name of this rank, and ends all ranks with this exit code.
  [[noreturn]] void fail(const std::string& message, int code);
  [[noreturn]] void leave(int code);  // ends all ranks with this exit code

 private:
  enum State : int { kRunning, kLeft };
  // The state of a rank of this machine, in shared memory.
  struct Neighbour {
    int rank;
    std::atomic<int>& process;
    std::atomic<int>& state;
  };

  void meet();
  void share_cores() const;
  void watch(const std::stop_token& stop);
  void report_the_dead();
  [[noreturn]] void end_job(const std::string& wrong);

  std::unique_ptr<Communicator> communicator_;
  std::vector<std::string> hosts_;  // host name of each rank
  std::vector<Neighbour> neighbours_;
  std::atomic<int>* reported_ = nullptr;  // shared: 1 if a rank of this machine reported an error
  std::atomic<int>* own_state_ = nullptr;
  std::optional<Heartbeat> heartbeat_;
  std::jthread watcher_;
};

}  // namespace fovea::jobs
