// The MPI module: a shared object that the program loads only under mpirun, since libmpi slows down
// every start. It includes only headers of fovea that need no code of the library.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>

#include "fovea/core/error.h"
#include "parallel/communicator.h"

namespace fovea {
namespace {

enum Tag : int { kMessage, kReduce };

void check(int result, const std::string& what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorKind::Failed, fmt::format("{}: {}; expected a working Open MPI", what, text));
}

int checked_count(size_t bytes, const std::string& what) {
  if (bytes > Communicator::kMostBytes)
    throw Error(ErrorKind::OutOfMemory, fmt::format("{}: {} bytes; expected at most {}", what,
                                                    bytes, Communicator::kMostBytes));
  return static_cast<int>(bytes);
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    // The launcher of Open MPI 5 (seen in 5.0.7) keeps one incomplete line for both streams.
    mixes_streams_ = OMPI_MAJOR_VERSION >= 5;
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    check(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine_),
        "MPI_Comm_split_type");
    int count = 0;
    MPI_Comm_size(machine_, &count);
    neighbours_.resize(static_cast<size_t>(count));
    check(MPI_Allgather(&rank_, 1, MPI_INT, neighbours_.data(), 1, MPI_INT, machine_),
          "MPI_Allgather");
  }
  ~MpiCommunicator() override { MPI_Finalize(); }

  void all_reduce(std::span<float> values) override;
  void broadcast(std::span<uint8_t> bytes, int root) override {
    const int count = checked_count(bytes.size(), "MPI_Bcast");
    check(MPI_Bcast(bytes.data(), count, MPI_BYTE, root, MPI_COMM_WORLD), "MPI_Bcast");
  }
  std::vector<std::string> gather(const std::string& bytes) override;
  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  void send(int to, std::span<const uint8_t> bytes) override {
    const int count = checked_count(bytes.size(), "MPI_Send");
    check(MPI_Send(bytes.data(), count, MPI_BYTE, to, kMessage, MPI_COMM_WORLD), "MPI_Send");
  }
  std::optional<Message> receive() override;

  std::atomic<int>* share(int count) override;
  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

 private:
  void add_from_others(std::span<float> values);

  MPI_Comm machine_ = MPI_COMM_NULL;
};

void MpiCommunicator::all_reduce(std::span<float> values) {
  constexpr size_t kMost = 1 << 20;  // values at a time; limits the memory for received values
  while (!values.empty()) {
    const std::span<float> piece = values.first(std::min(values.size(), kMost));
    add_from_others(piece);
    check(MPI_Bcast(piece.data(), static_cast<int>(piece.size()), MPI_FLOAT, 0, MPI_COMM_WORLD),
          "MPI_Bcast");
    values = values.subspan(piece.size());
  }
}

// Computes the sum of all ranks at rank 0. At each level of the tree, the first rank of a right
// subtree sends its sum to the first rank of the left subtree.
void MpiCommunicator::add_from_others(std::span<float> values) {
  const int count = static_cast<int>(values.size());
  std::vector<float> received;
  for (int half = 1; half < size_; half *= 2) {
    if (rank_ & half) {
      check(MPI_Send(values.data(), count, MPI_FLOAT, rank_ - half, kReduce, MPI_COMM_WORLD),
            "MPI_Send");
      return;
    }
    if (rank_ + half >= size_) continue;
    received.resize(values.size());
    check(MPI_Recv(received.data(), count, MPI_FLOAT, rank_ + half, kReduce, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE),
          "MPI_Recv");
    for (size_t i = 0; i < values.size(); ++i) values[i] += received[i];
  }
}

std::vector<std::string> MpiCommunicator::gather(const std::string& bytes) {
  const size_t ranks = static_cast<size_t>(size_);
  const int own = checked_count(bytes.size(), "MPI_Allgatherv");
  std::vector<int> counts(ranks), offsets(ranks);
  check(MPI_Allgather(&own, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD),
        "MPI_Allgather");
  size_t total = 0;
  for (size_t i = 0; i < ranks; ++i) {
    offsets[i] = checked_count(total, "MPI_Allgatherv");
    total += static_cast<size_t>(counts[i]);
  }
  std::string all(total, '\0');
  check(MPI_Allgatherv(bytes.data(), own, MPI_BYTE, all.data(), counts.data(), offsets.data(),
                       MPI_BYTE, MPI_COMM_WORLD),
        "MPI_Allgatherv");
  std::vector<std::string> parts;
  for (size_t i = 0; i < ranks; ++i)
    parts.push_back(all.substr(static_cast<size_t>(offsets[i]), static_cast<size_t>(counts[i])));
  return parts;
}

std::optional<Communicator::Message> MpiCommunicator::receive() {
  int arrived = 0, count = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, kMessage, MPI_COMM_WORLD, &arrived, &status), "MPI_Iprobe");
  if (arrived == 0) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &count);
  Message message{status.MPI_SOURCE, std::vector<uint8_t>(static_cast<size_t>(count))};
  check(MPI_Recv(message.bytes.data(), count, MPI_BYTE, message.from, kMessage, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE),
        "MPI_Recv");
  return message;
}

std::atomic<int>* MpiCommunicator::share(int count) {
  static_assert(sizeof(std::atomic<int>) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  const bool first = rank_ == neighbours_.front();
  const MPI_Aint bytes = first ? count * static_cast<MPI_Aint>(sizeof(int)) : 0;
  MPI_Win window = MPI_WIN_NULL;
  void* memory = nullptr;
  check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine_, static_cast<void*>(&memory),
                                &window),
        "MPI_Win_allocate_shared");
  MPI_Aint shared_bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(window, 0, &shared_bytes, &unit, static_cast<void*>(&memory));
  auto* const shared = static_cast<std::atomic<int>*>(memory);
  if (first) std::fill_n(static_cast<int*>(memory), count, 0);
  check(MPI_Barrier(machine_), "MPI_Barrier");
  return shared;
}

}  // namespace
}  // namespace fovea

extern "C" fovea::Communicator* fovea_open_mpi_communicator() { return new fovea::MpiCommunicator; }
