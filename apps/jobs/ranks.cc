#include "jobs/ranks.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <stop_token>

#include "fovea/core/error.h"
#include "fovea/core/machine.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::jobs {
namespace {

using namespace std::chrono_literals;

// Time between two polls for a message: a blocking call of MPI would occupy a core.
constexpr auto kPause = 1ms;
// The time that another rank has to report an error and thereby end this rank.
constexpr auto kReporting = 10s;
// The seconds that Open MPI has to end a job.
constexpr unsigned kEnding = 2;

Ranks* the_ranks = nullptr;

int from_environment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Whether the parent of this process is one of Open MPI's: mpirun, or its daemon on this machine.
bool started_by_mpi() {
  std::ifstream file(fmt::format("/proc/{}/comm", getppid()));
  std::string name;
  std::getline(file, name);
  return name == "mpirun" || name == "orterun" || name == "orted" || name == "prterun" ||
         name == "prted" || name == "prte";
}

// Ends a process in kEnding seconds, unless it has ended by then, also if this process is gone.
void end_later(pid_t process) {
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, process, 0));
  if (handle < 0 || fork() != 0) return;
  setsid();
  sleep(kEnding);
  syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0);
  _exit(0);
}

// If a machine lacks a library, all of its ranks fail. The first reports it; the others then exit
// silently.
std::unique_ptr<Communicator> connect() {
  try {
    return open_communicator();
  } catch (const Error&) {
    if (from_environment("OMPI_COMM_WORLD_LOCAL_RANK", 0) == 0) throw;
    cli::catch_signals("");
    std::this_thread::sleep_for(kReporting);
    _exit(2);
  }
}

}  // namespace

Ranks* Ranks::current() { return the_ranks; }

void Ranks::take_cores() {
  // The parent process, mpirun's daemon, may use all cores of the machine.
  cpu_set_t ours, machines;
  if (from_environment("OMPI_COMM_WORLD_SIZE", 1) < 2 ||
      sched_getaffinity(0, sizeof ours, &ours) != 0 ||
      sched_getaffinity(getppid(), sizeof machines, &machines) != 0)
    return;
  const int neighbours = std::max(1, from_environment("OMPI_COMM_WORLD_LOCAL_SIZE", 1));
  if (CPU_COUNT(&machines) / neighbours > CPU_COUNT(&ours))
    sched_setaffinity(0, sizeof machines, &machines);
}

Ranks::Ranks() : communicator_(connect()) {
  cli::catch_signals("");
  meet();
  share_cores();
  the_ranks = this;
  heartbeat_.emplace(*communicator_, [this](int rank) { return name(rank); });
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Ranks::~Ranks() {
  the_ranks = nullptr;
  watcher_ = std::jthread();  // it reads memory that is freed below
  heartbeat_->leave();
  *own_state_ = kLeft;
}

// Exchanges the names of the hosts, and creates the memory that the ranks of a machine share.
void Ranks::meet() {
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, HOST_NAME_MAX);
  hosts_ = communicator_->gather(host);

  const std::vector<int>& ranks = communicator_->neighbours();
  const int count = static_cast<int>(ranks.size());
  std::atomic<int>* const shared = communicator_->share(2 * count + 1);
  for (int i = 0; i < count; ++i)
    neighbours_.push_back({ranks[static_cast<size_t>(i)], shared[i], shared[count + i]});
  reported_ = &shared[2 * count];
  for (const Neighbour& neighbour : neighbours_) {
    if (neighbour.rank != rank()) continue;
    neighbour.process = getpid();
    neighbour.state = kRunning;
    own_state_ = &neighbour.state;
  }
  communicator_->barrier();
}

void Ranks::share_cores() const {
  if (std::getenv("OMP_NUM_THREADS") != nullptr) return;
  set_threads(std::max(1, thread_count() / static_cast<int>(neighbours_.size())));
}

std::string Ranks::name(int rank) const {
  return fmt::format("rank {} ({})", rank, hosts_.at(static_cast<size_t>(rank)));
}

void Ranks::send(int to, const Json& content) const {
  const std::vector<uint8_t> bytes = Json::to_msgpack(content);
  if (bytes.size() > Communicator::kMostBytes)
    throw Error(
        ErrorKind::OutOfMemory,
        fmt::format("{}: a message of {} bytes; expected at most {}: use shorter lines or vectors",
                    name(to), bytes.size(), size_t{Communicator::kMostBytes}));
  communicator_->send(to, bytes);
}

std::optional<Ranks::Message> Ranks::receive() const {
  const std::optional<Communicator::Message> message = communicator_->receive();
  if (!message) return std::nullopt;
  return Message{message->from, Json::from_msgpack(message->bytes)};
}

Ranks::Message Ranks::wait() const {
  while (true) {
    if (std::optional<Message> message = receive()) return std::move(*message);
    std::this_thread::sleep_for(kPause);
  }
}

void Ranks::fail(const std::string& message, int code) {
  // An error that occurs on all ranks is reported once: the ranks wait in the order of their
  // numbers, the first rank of a machine reports the error, and leave() ends the ranks that still
  // wait.
  constexpr int kMostWaits = 20;
  std::this_thread::sleep_for(std::min(rank(), kMostWaits) * 100ms);
  if (reported_->exchange(1) == 0)
    cli::note(fmt::format("fovea: error: {}: {}\n", name(rank()), message));
  else
    std::this_thread::sleep_for(kReporting);
  leave(code);
}

void Ranks::leave(int code) {
  *own_state_ = kLeft;
  communicator_->abort(code);
  _exit(code);
}

// If one rank has ended unexpectedly, mpirun ends all ranks by SIGTERM, and by SIGKILL a second
// later.
void Ranks::watch(const std::stop_token& stop) {
  while (!cli::stop_requested()) {
    if (stop.stop_requested()) return;
    if (const std::string wrong = heartbeat_->pulse(); !wrong.empty()) end_job(wrong);
    std::this_thread::sleep_for(10ms);
  }
  report_the_dead();
  *own_state_ = kLeft;
  _exit(cli::stop_code());
}

// Ends this rank, and all others if they can be reached. An order to end cannot cross a cut
// network, and mpirun waits for the answer: so this also ends the process of Open MPI on this
// machine.
void Ranks::end_job(const std::string& wrong) {
  if (reported_->exchange(1) == 0)
    cli::note(
        fmt::format("fovea: error: {}; the job ends, and the same command resumes it\n", wrong));
  *own_state_ = kLeft;
  constexpr int kFailed = 1;
  if (started_by_mpi()) end_later(getppid());
  std::thread([this] { communicator_->abort(kFailed); }).detach();
  std::this_thread::sleep_for(kReporting);
  _exit(kFailed);
}

void Ranks::report_the_dead() {
  std::string dead;
  for (const Neighbour& neighbour : neighbours_) {
    const bool gone = kill(neighbour.process, 0) != 0 && errno == ESRCH;
    if (gone && neighbour.state == kRunning)
      dead += (dead.empty() ? "" : ", ") + name(neighbour.rank);
  }
  if (dead.empty() || reported_->exchange(1) != 0) return;
  cli::note(
      fmt::format("fovea: error: {}: ended unexpectedly; the output so far is kept, and the same "
                  "command resumes the job\n",
                  dead));
}

}  // namespace fovea::jobs
