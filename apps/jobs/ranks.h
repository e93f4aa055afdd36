#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fovea::cli {

// The processes of one job that mpirun started on one machine or several, of which this is one.
// Rank 0 reads, writes and hands out the work.
class Ranks {
 public:
  using Json = nlohmann::ordered_json;
  struct Message {
    int from = 0;
    Json content;
  };

  // How many mpirun started; 1 without it.
  static int started();
  // mpirun ties each of few ranks to a single core. Gives this one its machine's, where its share
  // of them is more; before anything counts them.
  static void take_cores();
  // Null where there is only one.
  static Ranks* current();
  // Whether this is one of several and not rank 0, which alone talks to people.
  static bool only_helps() { return current() != nullptr && current()->rank() > 0; }

  Ranks();   // waits for all others
  ~Ranks();  // as well
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(hosts_.size()); }
  std::string name(int rank) const;  // "rank 1 (HOST)"

  void send(int to, const Json& content) const;
  std::optional<Message> receive() const;  // one that has arrived
  Message wait() const;                    // until one arrives

  // Ends all ranks with this exit code; says so in the name of this rank.
  [[noreturn]] void fail(const std::string& message, int code);
  [[noreturn]] void leave(int code);

 private:
  enum State : int { kRunning, kLeft };
  struct Neighbour {
    int rank, process;
  };

  void meet();
  void share_cores() const;
  void watch(const std::stop_token& stop);
  void tell_of_the_dead();

  int rank_ = 0;
  std::vector<std::string> hosts_;     // of each rank
  std::vector<Neighbour> neighbours_;  // the ranks of this machine
  // In memory that the ranks of this machine share: the state of each, and whether one has told
  // who died.
  std::atomic<int>* states_ = nullptr;
  std::atomic<int>* told_ = nullptr;
  std::atomic<int>* own_state_ = nullptr;
  std::jthread watcher_;
};

}  // namespace fovea::cli
