#pragma once

#include <stdexcept>
#include <string>

namespace fovea {

// What went wrong, named for the caller. The command line maps a kind to its exit code, a server to
// its status.
enum class ErrorKind {
  InvalidArgument,  // an option, a value or a shape that the caller chose            exit 2
  BadFile,          // a file that cannot be read or does not hold what it should     exit 2
  Unsupported,      // understood, but not something this build or device can do      exit 2
  OutOfMemory,      // a limit refused before work started, or memory ran out         exit 3
  Failed,           // the run failed: disk full, numbers went bad, directory in use  exit 1
  Internal,         // a broken promise inside fovea: a bug                           exit 1
};

// One line: "<file or option>: <what is wrong> (<where>); <what was expected>".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace fovea
