#include "tuning/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace fovea::tuning {
namespace {

constexpr int kNiceness = 10;     // the server's threads have precedence
constexpr int kNotStarted = 127;  // exit code of a child that cannot run the program
constexpr int kLastDescriptor = 65536;

// Returns the environment without the server's API key and options (FOVEA_<OPTION>).
std::vector<char*> environment() {
  std::vector<char*> kept;
  const auto begins = [](const char* entry, std::string_view name) {
    return std::string_view(entry).starts_with(name);
  };
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!begins(*entry, "FOVEA_") || begins(*entry, "FOVEA_ISA=")) kept.push_back(*entry);
  kept.push_back(nullptr);
  return kept;
}

bool redirect(const char* path, int flags, int descriptor) {
  const int file = open(path, flags, 0600);
  return file >= 0 && dup2(file, descriptor) == descriptor;
}

// Runs in the child, which shares the memory of the server until execve(): only system calls.
[[noreturn]] void become(const ChildCommand& command, char* const* arguments,
                         char* const* environment) {
  constexpr int kWrite = O_WRONLY | O_CREAT | O_TRUNC;
  setpgid(0, 0);
  signal(SIGHUP, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGHUP);
  if (command.low_priority) setpriority(PRIO_PROCESS, 0, kNiceness);
  const bool ready = chdir(command.folder.c_str()) == 0 &&
                     redirect("/dev/null", O_RDONLY, STDIN_FILENO) &&
                     redirect(command.output.c_str(), kWrite, STDOUT_FILENO) &&
                     redirect(command.errors.c_str(), kWrite, STDERR_FILENO);
  if (!ready) _exit(kNotStarted);
  if (syscall(SYS_close_range, 3, ~0U, 0) != 0)  // Linux before 5.9
    for (int descriptor = 3; descriptor < kLastDescriptor; ++descriptor) close(descriptor);
  execve(command.program.front().c_str(), arguments, environment);
  _exit(kNotStarted);
}

}  // namespace

ChildProcess::ChildProcess(const ChildCommand& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  for (const std::string& argument : command.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const std::vector<char*> variables = environment();
  // vfork() copies no page tables, which takes long for a server with a large model.
  // NOLINTNEXTLINE(bugprone-unsafe-functions)
  const pid_t process = vfork();
  if (process == 0) become(command, arguments.data(), variables.data());
  if (process < 0)
    fail(ErrorKind::Failed, "{}: cannot be started ({})", command.program.front(),
         std::strerror(errno));
  process_ = process;
}

ChildProcess::~ChildProcess() {
  if (exit_code()) return;
  kill();
  waitpid(process_, nullptr, 0);
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!code_ && waitpid(process_, &status, WNOHANG) == process_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_;
}

void ChildProcess::stop() {
  if (!exit_code()) ::kill(process_, SIGTERM);
}
void ChildProcess::kill() {
  if (!exit_code()) ::kill(process_, SIGKILL);
}

}  // namespace fovea::tuning
