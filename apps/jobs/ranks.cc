#include "jobs/ranks.h"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "fovea/doctor.h"
#include "fovea/error.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 0;
// Between two looks for a message: MPI's own waiting takes a whole core.
constexpr auto kPause = 1ms;

Ranks* the_ranks = nullptr;

int from_environment(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

void check(int result, const std::string& what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorKind::Failed, fmt::format("{}: {}; expected a working Open MPI", what, text));
}

}  // namespace

int Ranks::started() { return from_environment("OMPI_COMM_WORLD_SIZE"); }
Ranks* Ranks::current() { return the_ranks; }

void Ranks::take_cores() {
  cpu_set_t ours, machines;  // mpirun's daemon, our parent, may use all of the machine's
  if (started() < 2 || sched_getaffinity(0, sizeof ours, &ours) != 0 ||
      sched_getaffinity(getppid(), sizeof machines, &machines) != 0)
    return;
  const int share = CPU_COUNT(&machines) / from_environment("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (share > CPU_COUNT(&ours)) sched_setaffinity(0, sizeof machines, &machines);
}

Ranks::Ranks() {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  catch_signals("");
  meet();
  share_cores();
  the_ranks = this;
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Ranks::~Ranks() {
  the_ranks = nullptr;
  watcher_ = std::jthread();  // the memory that it looks at goes
  *own_state_ = kLeft;
  MPI_Finalize();
}

// Who is where, and the memory that the ranks of a machine share.
void Ranks::meet() {
  int size = 0, length = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  char host[MPI_MAX_PROCESSOR_NAME] = "";
  MPI_Get_processor_name(host, &length);
  std::vector<char> hosts(static_cast<size_t>(size) * sizeof host);
  check(MPI_Allgather(host, sizeof host, MPI_CHAR, hosts.data(), sizeof host, MPI_CHAR,
                      MPI_COMM_WORLD),
        "MPI_Allgather");
  for (size_t i = 0; i < hosts.size(); i += sizeof host) hosts_.emplace_back(&hosts[i]);

  MPI_Comm machine = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine),
        "MPI_Comm_split_type");
  int index = 0, count = 0;
  MPI_Comm_rank(machine, &index);
  MPI_Comm_size(machine, &count);
  const Neighbour own{rank_, getpid()};
  neighbours_.resize(static_cast<size_t>(count));
  check(MPI_Allgather(&own, 2, MPI_INT, neighbours_.data(), 2, MPI_INT, machine), "MPI_Allgather");

  MPI_Win window = MPI_WIN_NULL;
  const MPI_Aint bytes = index == 0 ? (count + 1) * static_cast<MPI_Aint>(sizeof(int)) : 0;
  void* memory = nullptr;
  MPI_Aint first_bytes = 0;
  int unit = 0;
  check(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, machine, &memory, &window),
        "MPI_Win_allocate_shared");
  MPI_Win_shared_query(window, 0, &first_bytes, &unit, &memory);
  static_assert(sizeof(std::atomic<int>) == sizeof(int) && std::atomic<int>::is_always_lock_free);
  states_ = static_cast<std::atomic<int>*>(memory);
  told_ = states_ + count;
  own_state_ = states_ + index;
  *own_state_ = kRunning;
  if (index == 0) *told_ = 0;
  check(MPI_Barrier(machine), "MPI_Barrier");
}

void Ranks::share_cores() const {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  set_threads(std::max(1, threads() / static_cast<int>(neighbours_.size())));
}

std::string Ranks::name(int rank) const {
  return fmt::format("rank {} ({})", rank, hosts_.at(static_cast<size_t>(rank)));
}

void Ranks::send(int to, const Json& content) const {
  const std::vector<uint8_t> bytes = Json::to_msgpack(content);
  if (bytes.size() > INT_MAX)  // the most that MPI 3 counts
    throw Error(ErrorKind::OutOfMemory,
                fmt::format("{}: a message of {} bytes; expected shorter lines or vectors",
                            name(to), bytes.size()));
  check(MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD),
        name(to));
}

std::optional<Ranks::Message> Ranks::receive() const {
  int there = 0, count = 0;
  MPI_Status status;
  check(MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status), "MPI_Iprobe");
  if (there == 0) return std::nullopt;
  MPI_Get_count(&status, MPI_BYTE, &count);
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  check(MPI_Recv(bytes.data(), count, MPI_BYTE, status.MPI_SOURCE, kTag, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE),
        name(status.MPI_SOURCE));
  return Message{status.MPI_SOURCE, Json::from_msgpack(bytes)};
}

Ranks::Message Ranks::wait() const {
  while (true) {
    if (std::optional<Message> message = receive()) return std::move(*message);
    std::this_thread::sleep_for(kPause);
  }
}

void Ranks::fail(const std::string& message, int code) {
  // What is wrong everywhere is reported once: by one rank of a machine, and by the machine whose
  // ranks are first, which ends the others while they wait.
  constexpr int kMostWaits = 20;
  std::this_thread::sleep_for(std::min(rank_, kMostWaits) * 100ms);
  if (told_->exchange(1) == 0)
    note(fmt::format("fovea: error: {}: {}\n", name(rank_), message));
  else
    std::this_thread::sleep_for(1s);  // the one that reports ends this one
  leave(code);
}

void Ranks::leave(int code) {
  *own_state_ = kLeft;
  MPI_Abort(MPI_COMM_WORLD, code);
  _exit(code);
}

// mpirun ends all ranks by SIGTERM when one has died, and by SIGKILL a second later.
void Ranks::watch(const std::stop_token& stop) {
  while (!asked_to_stop()) {
    if (stop.stop_requested()) return;
    std::this_thread::sleep_for(10ms);
  }
  tell_of_the_dead();
  *own_state_ = kLeft;
  _exit(stop_code());
}

void Ranks::tell_of_the_dead() {
  std::string dead;
  for (size_t i = 0; i < neighbours_.size(); ++i) {
    const bool gone = kill(neighbours_[i].process, 0) != 0 && errno == ESRCH;
    if (gone && states_[i] == kRunning)
      dead += (dead.empty() ? "" : ", ") + name(neighbours_[i].rank);
  }
  if (dead.empty() || told_->exchange(1) != 0) return;
  note(
      fmt::format("fovea: error: {}: has died; what --out has got so far is kept, and the same "
                  "command goes on from there\n",
                  dead));
}

}  // namespace fovea::cli
