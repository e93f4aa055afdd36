#include "base/bounded_program.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/files.h"

namespace fovea {
namespace {

using ProgramClock = std::chrono::steady_clock;

constexpr int kNotStarted = 127;         // exit code of a child that cannot run the program
constexpr int kMillisecondsOfWait = 50;  // between two looks at `stop`

// The system calls that make sockets fail with EACCES; programs for other architectures end.
#if defined(__x86_64__)
constexpr uint32_t kArchitecture = 0xC000003E;  // AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = 0xC00000B7;  // AUDIT_ARCH_AARCH64
#endif
constexpr uint32_t kSocket = __NR_socket, kUring = 425;  // io_uring_setup, on all architectures
constexpr uint32_t kOtherNumbers = 0x40000000;           // of the calls of x32

sock_filter instruction(uint16_t code, uint32_t value, uint8_t then = 0, uint8_t otherwise = 0) {
  return {code, then, otherwise, value};
}

bool refuse_sockets() {
  constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS, kEqual = BPF_JMP | BPF_JEQ | BPF_K,
                     kAtLeast = BPF_JMP | BPF_JGE | BPF_K, kReturn = BPF_RET | BPF_K;
  std::array<sock_filter, 9> steps = {instruction(kLoad, offsetof(seccomp_data, arch)),
                                      instruction(kEqual, kArchitecture, 1),
                                      instruction(kReturn, SECCOMP_RET_KILL),
                                      instruction(kLoad, offsetof(seccomp_data, nr)),
                                      instruction(kEqual, kSocket, 3),
                                      instruction(kEqual, kUring, 2),
                                      instruction(kAtLeast, kOtherNumbers, 1),
                                      instruction(kReturn, SECCOMP_RET_ALLOW),
                                      instruction(kReturn, SECCOMP_RET_ERRNO | EACCES)};
  const sock_fprog filter = {steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void limit(int resource, uint64_t most) {
  const rlimit both = {most, most};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

// Runs in the child: only system calls.
[[noreturn]] void become(char* const* arguments, char* const* environment, int input, int output,
                         const ProgramLimits& limits) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  limit(RLIMIT_FSIZE, limits.output_bytes);
  limit(RLIMIT_CPU, static_cast<uint64_t>(limits.seconds) + 1);
  limit(RLIMIT_CORE, 0);
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  const bool ready = dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
                     dup2(nothing, STDERR_FILENO) >= 0 && refuse_sockets();
  if (!ready) _exit(kNotStarted);
  syscall(SYS_close_range, 3, ~0U, 0);    // before Linux 5.9, the O_CLOEXEC of our files does it
  limit(RLIMIT_AS, limits.memory_bytes);  // last: this process may be larger, until it is replaced
  execve(arguments[0], arguments, environment);
  _exit(kNotStarted);
}

// A process and those that it starts, which end with this object.
class RunningProgram {
 public:
  RunningProgram(const std::vector<std::string>& program, const std::string& input, int output,
                 const ProgramLimits& limits) {
    const Descriptor file(::open(input.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.number() < 0)
      fail(ErrorKind::BadFile, "{}: cannot be read ({}); expected a file", input,
           std::strerror(errno));
    std::vector<char*> arguments;
    for (const std::string& argument : program)
      arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    const char* path = std::getenv("PATH");
    std::string variables[] = {std::string("PATH=") + (path == nullptr ? "/usr/bin:/bin" : path),
                               "LC_ALL=C.UTF-8", "HOME=/nonexistent"};
    std::vector<char*> environment;
    for (std::string& variable : variables) environment.push_back(variable.data());
    environment.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) become(arguments.data(), environment.data(), file.number(), output, limits);
    if (process_ < 0)
      fail(ErrorKind::Failed, "{}: cannot be started ({})", program[0], std::strerror(errno));
    setpgid(process_, process_);  // also here, since kill() below may come first
  }
  ~RunningProgram() {
    ::kill(-process_, SIGKILL);
    if (!status_) waitpid(process_, nullptr, 0);
  }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // Returns the status of the process, or unset if it still runs.
  std::optional<int> ended() {
    int status = 0;
    if (!status_ && waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_;
  }

 private:
  pid_t process_ = -1;
  std::optional<int> status_;
};

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    fail(ErrorKind::Failed, "pipe: cannot be made ({})", std::strerror(errno));
  return ends;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "/usr/bin:/bin" : variable;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string path = std::string(rest.substr(0, end)) + "/" + name;
    // A relative folder would depend on where the program is called.
    if (path[0] == '/' && is_file(path) && access(path.c_str(), X_OK) == 0) return path;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return std::nullopt;
}

std::string run_bounded(const std::vector<std::string>& program, const std::string& input,
                        const ProgramLimits& limits, const std::function<bool()>& stop) {
  const auto deadline = ProgramClock::now() + std::chrono::duration_cast<ProgramClock::duration>(
                                                  std::chrono::duration<double>(limits.seconds));
  const auto ends = make_pipe();
  const Descriptor output(ends[0]);
  Descriptor its_output(ends[1]);
  RunningProgram running(program, input, its_output.number(), limits);
  its_output.close();
  const auto check_time = [&] {
    if (stop && stop()) fail(ErrorKind::Failed, "{}: stopped", program[0]);
    if (ProgramClock::now() >= deadline)
      fail(ErrorKind::Failed, "{} did not end within {} seconds", program[0], limits.seconds);
  };
  std::string text;
  std::array<char, 65536> block;
  while (true) {
    check_time();
    pollfd ready = {output.number(), POLLIN, 0};
    if (poll(&ready, 1, kMillisecondsOfWait) <= 0) continue;
    const ssize_t got = ::read(output.number(), block.data(), block.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    text.append(block.data(), static_cast<size_t>(got));
    if (text.size() > limits.output_bytes)
      fail(ErrorKind::Failed, "{} wrote more than {} bytes", program[0], limits.output_bytes);
  }
  std::optional<int> status;
  while (!(status = running.ended())) {
    check_time();
    usleep(1000);
  }
  if (WIFSIGNALED(*status))
    fail(ErrorKind::Failed, "{} was ended by signal {}", program[0], WTERMSIG(*status));
  if (WEXITSTATUS(*status) == kNotStarted)
    fail(ErrorKind::Failed, "{} cannot be started with its limits", program[0]);
  if (WEXITSTATUS(*status) != 0)
    fail(ErrorKind::Failed, "{} ended with code {}", program[0], WEXITSTATUS(*status));
  return text;
}

}  // namespace fovea
