#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace fovea::tuning {

// What a child process runs.
struct ChildCommand {
  std::vector<std::string> program;  // and its first arguments
  std::vector<std::string> arguments;
  std::string folder;          // working directory
  std::string output, errors;  // files for standard output and standard error; replaced
  bool low_priority = true;
};

// A running program. It inherits no file descriptor, receives no signal of the
// terminal, and is asked to stop (SIGHUP) if the thread that started it ends.
class ChildProcess {
 public:
  // Throws Failed if the program cannot be started.
  explicit ChildProcess(const ChildCommand& command);
  ~ChildProcess();  // kills the process
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Returns the exit code, 128 + the signal if a signal ended the process, and nothing while it
  // runs.
  std::optional<int> exit_code();
  void stop();  // SIGTERM
  void kill();  // SIGKILL

 private:
  pid_t process_ = -1;
  std::optional<int> code_;
};

}  // namespace fovea::tuning
