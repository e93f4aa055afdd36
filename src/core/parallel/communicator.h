#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

// What a rank does, for messages about a job that stands still.
enum class Activity : uint8_t { preparing, computing, exchanging, evaluating, writing };

// A sign of life of a rank.
struct Beat {
  int32_t from = 0;
  Activity activity = Activity::preparing;
  bool leaves = false;  // it ends now, and sends no more
  int64_t step = -1;    // of a training; -1 = none
  float seconds = 0;    // since its activity or its step changed
  float allowed = 0;    // seconds after which a step counts as stalled; 0 = no limit
};

// The processes (ranks) of one job, of which this process is one. Collective functions must be
// called by all ranks, in the same order. Only one thread at a time may use a Communicator. Every
// function throws Failed if the transport fails.
class Communicator {
 public:
  struct Message {
    int from = 0;
    std::vector<uint8_t> bytes;
  };
  // Maximum bytes of a message, and of gather() over all ranks; above it, they throw OutOfMemory.
  static constexpr size_t kMostBytes = 0x7fffffff;

  virtual ~Communicator() = default;  // collective
  int rank() const { return rank_; }  // 0 to size() - 1
  int size() const { return size_; }
  // Returns the ranks on this machine, in ascending order.
  const std::vector<int>& neighbours() const { return neighbours_; }
  // Returns whether mpirun may put parts of standard output among the messages on standard error.
  bool mixes_streams() const { return mixes_streams_; }

  // Values in the order of the ranks to which they belong.
  template <class T>
  struct Parts {
    std::span<T> values;
    std::span<const int64_t> counts;  // of each rank; their sum is the number of values
  };
  // Collective. Sends each rank its part of `sent`, and receives a part from each.
  virtual void all_to_all(Parts<const float> sent, Parts<float> received) = 0;
  virtual void all_to_all(Parts<const uint16_t> sent, Parts<uint16_t> received) = 0;
  // An exchange that goes on while this rank uses other functions.
  class Transfer {
   public:
    virtual ~Transfer() = default;
    virtual void wait() = 0;  // for its end; call it once
  };
  // Collective. Begins an all_to_all() of values that stay valid until it has ended. The order of
  // these calls is the same on all ranks; between them, each rank may use the other functions at
  // any time.
  virtual std::unique_ptr<Transfer> begin_all_to_all(Parts<const float> sent,
                                                     Parts<float> received) = 0;
  // Collective. Begins an all_gather(), in the same way, with an order of its own.
  virtual std::unique_ptr<Transfer> begin_all_gather(Parts<float> values) = 0;
  // Collective. Each rank has its part of `values`; afterwards, it has those of all ranks.
  virtual void all_gather(Parts<float> values) = 0;
  virtual void all_gather(Parts<uint16_t> values) = 0;
  // Collective. Returns the bytes of all ranks, in the order of the ranks, on every rank.
  virtual std::vector<std::string> gather(const std::string& bytes) = 0;
  virtual void barrier() = 0;

  // Messages from one rank to another arrive in the order in which they were sent. Sending a large
  // message may block until it is received.
  virtual void send(int to, std::span<const uint8_t> bytes) = 0;
  virtual std::optional<Message> receive() = 0;  // returns nothing if no message has arrived

  // Collective. Returns `count` zeros in memory that the ranks on this machine share, valid during
  // the lifetime of this object.
  virtual std::atomic<int>* share(int count) = 0;
  // Ends all other ranks with this exit code. If it returns, the caller must end this rank.
  virtual void abort(int code) = 0;

  // Tell what this rank does, and how long a step may take. Any thread may call these functions.
  void does(Activity activity);
  void does(Activity activity, int64_t step);
  void allow(double seconds) { allowed_ = static_cast<float>(seconds); }
  Beat beat() const;
  // For one other thread than that which uses the other functions. Beats to one rank arrive in
  // their order; receive_beat() returns nothing if none has arrived.
  virtual void send_beat(int to, const Beat& beat) = 0;
  virtual std::optional<Beat> receive_beat() = 0;

 protected:
  int rank_ = 0, size_ = 1;
  std::vector<int> neighbours_ = {0};
  bool mixes_streams_ = false;

 private:
  std::atomic<Activity> activity_ = Activity::preparing;
  std::atomic<int64_t> step_ = -1;
  std::atomic<std::chrono::steady_clock::time_point> since_ = std::chrono::steady_clock::now();
  std::atomic<float> allowed_ = 0;
};

// Returns the number of processes that Open MPI's mpirun, or `srun --mpi=pmix` of Slurm, started; 1
// without them. Throws Unsupported if another launcher started several.
int started_processes();
// Returns the communicator of the processes that mpirun started, or of this process alone. Throws
// Unsupported if there are several and fovea's MPI module or Open MPI is not installed.
std::unique_ptr<Communicator> open_communicator();

// The name and the type of the function that the MPI module exports; it initialises MPI.
inline constexpr const char* kOpenMpiCommunicator = "fovea_open_mpi_communicator";
using OpenMpiCommunicator = Communicator*();

}  // namespace fovea
