#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fovea {

// The processes (ranks) of one job, of which this process is one. Collective functions must be
// called by all ranks, in the same order. Only one thread at a time may use a Communicator. Every
// function throws Failed if the transport fails.
class Communicator {
 public:
  struct Message {
    int from = 0;
    std::vector<uint8_t> bytes;
  };
  // Maximum bytes of a message, of broadcast(), and of gather() over all ranks; above it, they
  // throw OutOfMemory.
  static constexpr size_t kMostBytes = 0x7fffffff;

  virtual ~Communicator() = default;  // collective
  int rank() const { return rank_; }  // 0 to size() - 1
  int size() const { return size_; }
  // Returns the ranks on this machine, in ascending order.
  const std::vector<int>& neighbours() const { return neighbours_; }
  // Returns whether mpirun may put parts of standard output among the messages on standard error.
  bool mixes_streams() const { return mixes_streams_; }

  // Collective. Replaces `values`, of the same length on every rank, by their sums over the ranks,
  // added in the order of the tree of kernels/sum_tree.h: every rank gets the same bits.
  virtual void all_reduce(std::span<float> values) = 0;
  // Collective. Replaces `bytes`, of the same length on every rank, by those of `root`.
  virtual void broadcast(std::span<uint8_t> bytes, int root) = 0;
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

 protected:
  int rank_ = 0, size_ = 1;
  std::vector<int> neighbours_ = {0};
  bool mixes_streams_ = false;
};

// Returns the number of processes that mpirun started; 1 without mpirun.
int started_processes();
// Returns the communicator of the processes that mpirun started, or of this process alone. Throws
// Unsupported if there are several and fovea's MPI module or Open MPI is not installed.
std::unique_ptr<Communicator> open_communicator();

// The name and the type of the function that the MPI module exports; it initialises MPI.
inline constexpr const char* kOpenMpiCommunicator = "fovea_open_mpi_communicator";
using OpenMpiCommunicator = Communicator*();

}  // namespace fovea
