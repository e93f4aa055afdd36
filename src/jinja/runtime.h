#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fovea/chat.h"

namespace fovea::jinja {

// Where something stands in a template; columns count characters.
struct Position {
  int line = 1;
  int column = 1;
};

// What one rendering may still spend, and where in the template it is. Every operation that can
// take long or grow takes one.
class Runtime {
 public:
  Runtime(std::string_view name, const RenderLimits& limits) : name_(name), limits_(limits) {}

  void step(size_t units = 1) {
    if (units > limits_.steps - steps_) out_of_steps();
    steps_ += units;
  }
  // Before so many bytes are made or gone through. 64 of them cost about what a step costs.
  void bytes(size_t count) {
    if (count > limits_.output_bytes) too_long(count);
    step(1 + count / 64);
  }
  const RenderLimits& limits() const { return limits_; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    refuse(ErrorKind::InvalidArgument, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    refuse(ErrorKind::Unsupported, fmt::format(format, std::forward<Args>(args)...));
  }

  Position place;           // of what is being evaluated
  int open_namespaces = 0;  // being printed

 private:
  [[noreturn]] void refuse(ErrorKind kind, const std::string& message) const;
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void too_long(size_t bytes) const;

  std::string_view name_;
  RenderLimits limits_;
  size_t steps_ = 0;
};

}  // namespace fovea::jinja
