// The MPI module: a shared object that the program loads only under mpirun, since libmpi slows down
// every start. It includes only headers of fovea that need no code of the library.

#include <fmt/format.h>
#include <mpi.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>
#include <string>
#include <thread>
#include <type_traits>

#include "fovea/core/error.h"
#include "parallel/communicator.h"

namespace fovea {
namespace {

enum Tag : int { kMessage, kBeat };

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

// The counts and offsets of the parts of the ranks, as MPI reads them.
struct Layout {
  explicit Layout(std::span<const int64_t> parts) {
    int64_t total = 0;
    for (const int64_t part : parts) {
      offsets.push_back(checked_count(static_cast<size_t>(total), "MPI"));
      counts.push_back(checked_count(static_cast<size_t>(part), "MPI"));
      total += part;
    }
  }
  std::vector<int> counts, offsets;
};

// Waits for a transfer. MPI moves data only while a thread is inside one of its functions, and its
// own functions that wait occupy a core: so this tests the request, at first without a break, since
// a transfer within a machine is short, and then with breaks that grow with the time waited.
void wait(MPI_Request request, const char* what) {
  using namespace std::chrono_literals;
  constexpr std::chrono::nanoseconds kShort = 50us, kLongest = 200us;
  // Otherwise Linux lengthens each break by 50 us.
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
  static_cast<void>(exact);
  const auto start = std::chrono::steady_clock::now();
  for (int done = 0; true;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), what);
    if (done != 0) return;
    const std::chrono::nanoseconds waited = std::chrono::steady_clock::now() - start;
    if (waited < kShort)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::min(waited / 16, kLongest));
  }
}

template <class T>
MPI_Datatype type_of() {
  return std::is_same_v<T, float> ? MPI_FLOAT : MPI_UINT16_T;
}

// MPI reads the counts until the end.
template <class T>
class AllToAll : public Communicator::Transfer {
 public:
  AllToAll(Communicator::Parts<const T> sent, Communicator::Parts<T> received, MPI_Comm ranks)
      : from_(sent.counts), to_(received.counts) {
    const MPI_Datatype type = type_of<T>();
    check(MPI_Ialltoallv(sent.values.data(), from_.counts.data(), from_.offsets.data(), type,
                         received.values.data(), to_.counts.data(), to_.offsets.data(), type, ranks,
                         &request_),
          "MPI_Ialltoallv");
  }
  void wait() override { fovea::wait(request_, "MPI_Ialltoallv"); }

 private:
  Layout from_, to_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

template <class T>
class AllGather : public Communicator::Transfer {
 public:
  AllGather(Communicator::Parts<T> values, MPI_Comm ranks) : all_(values.counts) {
    const MPI_Datatype type = type_of<T>();
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, type, values.values.data(), all_.counts.data(),
                          all_.offsets.data(), type, ranks, &request_),
          "MPI_Iallgatherv");
  }
  void wait() override { fovea::wait(request_, "MPI_Iallgatherv"); }

 private:
  Layout all_;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

// Over TCP, Open MPI waits for an answer of the receiver before it sends a message of more than 64
// KiB: two delays of the wire. With these limits, it sends the parts of gradients at once; without
// the flag "put", larger ones need fewer answers. A user's own settings take precedence.
void set_up_tcp() {
  constexpr const char* kAtOnce = "1048576";  // bytes
  // send, inplace, need-ack, need-csum and hetero-rdma: the default without put
  constexpr const char* kFlags = "313";
  setenv("OMPI_MCA_btl_tcp_flags", kFlags, 0);
  for (const char* const limit : {"eager_limit", "rndv_eager_limit", "max_send_size"})
    setenv((std::string("OMPI_MCA_btl_tcp_") + limit).c_str(), kAtOnce, 0);
}

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator() {
    // The launcher of Open MPI 5 (seen in 5.0.7) keeps one incomplete line for both streams.
    mixes_streams_ = OMPI_MAJOR_VERSION >= 5;
    set_up_tcp();
    int provided = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    for (MPI_Comm* const own : {&beats_, &exchanges_, &gathers_}) {
      check(MPI_Comm_dup(MPI_COMM_WORLD, own), "MPI_Comm_dup");
      MPI_Comm_set_errhandler(*own, MPI_ERRORS_RETURN);
    }
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

  void all_to_all(Parts<const float> sent, Parts<float> received) override {
    AllToAll<float>(sent, received, MPI_COMM_WORLD).wait();
  }
  void all_to_all(Parts<const uint16_t> sent, Parts<uint16_t> received) override {
    AllToAll<uint16_t>(sent, received, MPI_COMM_WORLD).wait();
  }
  std::unique_ptr<Transfer> begin_all_to_all(Parts<const float> sent,
                                             Parts<float> received) override {
    return std::make_unique<AllToAll<float>>(sent, received, exchanges_);
  }
  std::unique_ptr<Transfer> begin_all_gather(Parts<float> values) override {
    return std::make_unique<AllGather<float>>(values, gathers_);
  }
  void all_gather(Parts<float> values) override { AllGather<float>(values, MPI_COMM_WORLD).wait(); }
  void all_gather(Parts<uint16_t> values) override {
    AllGather<uint16_t>(values, MPI_COMM_WORLD).wait();
  }
  std::vector<std::string> gather(const std::string& bytes) override;
  void barrier() override {
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
    wait(request, "MPI_Ibarrier");
  }

  void send(int to, std::span<const uint8_t> bytes) override {
    const int count = checked_count(bytes.size(), "MPI_Send");
    check(MPI_Send(bytes.data(), count, MPI_BYTE, to, kMessage, MPI_COMM_WORLD), "MPI_Send");
  }
  std::optional<Message> receive() override;

  std::atomic<int>* share(int count) override;
  void abort(int code) override { MPI_Abort(MPI_COMM_WORLD, code); }

  void send_beat(int to, const Beat& beat) override;
  std::optional<Beat> receive_beat() override;

 private:
  struct Sent {
    Beat beat;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm machine_ = MPI_COMM_NULL, beats_ = MPI_COMM_NULL;
  // Of begin_all_to_all() and begin_all_gather(), which ranks call in different orders.
  MPI_Comm exchanges_ = MPI_COMM_NULL, gathers_ = MPI_COMM_NULL;
  std::list<Sent> sent_;  // until they are on their way
};

// Short messages take one exchange: their bytes follow their sizes.
std::vector<std::string> MpiCommunicator::gather(const std::string& bytes) {
  struct Slot {
    int32_t size = 0;
    char bytes[252] = {};
  };
  const size_t ranks = static_cast<size_t>(size_);
  Slot own{.size = checked_count(bytes.size(), "MPI_Iallgather")};
  std::copy_n(bytes.begin(), std::min(bytes.size(), sizeof own.bytes), own.bytes);
  std::vector<Slot> slots(ranks);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&own, sizeof own, MPI_BYTE, slots.data(), sizeof own, MPI_BYTE,
                       MPI_COMM_WORLD, &request),
        "MPI_Iallgather");
  wait(request, "MPI_Iallgather");
  std::vector<int64_t> sizes;
  for (const Slot& slot : slots) sizes.push_back(slot.size);
  std::vector<std::string> parts;
  if (*std::ranges::max_element(sizes) <= std::ssize(own.bytes)) {
    for (const Slot& slot : slots) parts.emplace_back(slot.bytes, static_cast<size_t>(slot.size));
    return parts;
  }
  const Layout layout(sizes);
  std::string all(static_cast<size_t>(layout.offsets.back() + layout.counts.back()), '\0');
  check(MPI_Iallgatherv(bytes.data(), own.size, MPI_BYTE, all.data(), layout.counts.data(),
                        layout.offsets.data(), MPI_BYTE, MPI_COMM_WORLD, &request),
        "MPI_Iallgatherv");
  wait(request, "MPI_Iallgatherv");
  for (size_t i = 0; i < ranks; ++i)
    parts.push_back(
        all.substr(static_cast<size_t>(layout.offsets[i]), static_cast<size_t>(layout.counts[i])));
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

// Does not wait: the other rank may be gone.
void MpiCommunicator::send_beat(int to, const Beat& beat) {
  std::erase_if(sent_, [](Sent& sent) {
    int done = 0;
    return MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
  Sent& sent = sent_.emplace_back(Sent{beat});
  check(MPI_Isend(&sent.beat, sizeof sent.beat, MPI_BYTE, to, kBeat, beats_, &sent.request),
        "MPI_Isend");
}

std::optional<Beat> MpiCommunicator::receive_beat() {
  int arrived = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, kBeat, beats_, &arrived, &status), "MPI_Iprobe");
  if (arrived == 0) return std::nullopt;
  Beat beat;
  check(MPI_Recv(&beat, sizeof beat, MPI_BYTE, status.MPI_SOURCE, kBeat, beats_, MPI_STATUS_IGNORE),
        "MPI_Recv");
  return beat;
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
