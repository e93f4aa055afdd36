#pragma once

#include <stdexcept>
#include <string>

namespace fovea {

// Error categories. The command line maps each to an exit code, the server to an HTTP status.
enum class ErrorKind {
  InvalidArgument,  // an invalid option, value or shape                               exit 2
  BadFile,          // a file that cannot be read or has invalid contents              exit 2
  Unsupported,      // valid, but not supported by this build or device                exit 2
  OutOfMemory,      // a size or memory limit would be exceeded, or memory ran out     exit 3
  Failed,           // disk full, non-finite loss, directory in use, interruption      exit 1
  Internal,         // a broken invariant: a bug in fovea                              exit 1
};

// An error with a message of one line: "<file or option>: <what is wrong>; <what was expected>".
// "Throws BadFile" in a comment means an Error of this kind. If memory runs out, a function may
// also throw std::bad_alloc.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace fovea
