#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "parallel/communicator.h"

namespace fovea::jobs {

// Finds out that a rank is silent, since its process stands still or the network is cut, or that a
// step takes too long. Every rank tells rank 0 once a second that it lives, and rank 0 tells every
// rank: MPI itself notices a silent rank after minutes, or never.
class Heartbeat {
 public:
  // `name`: of a rank, for messages. `silence`: after this time without a sign, a rank is silent.
  Heartbeat(Communicator& ranks, std::function<std::string(int)> name,
            std::chrono::duration<double> silence = std::chrono::seconds(8));

  // Sends and receives; call it often. Returns what is wrong with the job; empty = nothing.
  std::string pulse();
  void leave();  // tells the others that this rank ends

 private:
  using Clock = std::chrono::steady_clock;
  struct Other {
    int rank = 0;
    Clock::time_point heard;
    Beat beat = {};
  };
  void send(const Beat& beat);
  void receive();
  std::string silent() const;
  std::string stalled() const;

  Communicator& ranks_;
  std::function<std::string(int)> name_;
  std::chrono::duration<double> silence_;
  std::vector<Other> others_;  // from whom this rank hears
  Clock::time_point sent_ = {};
};

}  // namespace fovea::jobs
