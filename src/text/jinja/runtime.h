#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fovea/text/chat.h"
#include "jinja/held.h"

namespace fovea::text::jinja {

// A position in the source of a template; columns count characters.
struct Position {
  int line = 1;
  int column = 1;
};

// Throws an error whose message has one line: name, line, column and what is wrong.
[[noreturn]] void refuse_source(ErrorKind kind, std::string_view name, Position position,
                                std::string what);

// Counts one level of recursion while it exists.
class Level {
 public:
  explicit Level(int& depth) : depth_(depth) { ++depth_; }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  int& depth_;
};

// The limits of one rendering, how much of them is used, and the current position in the template.
// Every operation that can take much time or memory receives a Runtime.
class Runtime {
 public:
  Runtime(std::string_view name, const RenderLimits& limits) : name_(name), limits_(limits) {}

  void step(size_t units = 1) {
    if (units > limits_.steps - steps_) {
      fail("the template takes more than {} steps; expected one that ends sooner", limits_.steps);
    }
    steps_ += units;
    room();
  }
  // Fails if the values of the template hold too much memory, or would with `more` bytes. An
  // operation that makes many values calls it before it makes them.
  void room(size_t more = 0) {
    const int64_t held = Held::all() - held_before_;
    const size_t used = held > 0 ? static_cast<size_t>(held) : 0;
    if (used <= limits_.value_bytes && more <= limits_.value_bytes - used) return;
    fail("the template holds more than {} bytes of values; expected fewer", limits_.value_bytes);
  }
  // Counts bytes that are written or read; 64 bytes count as one step. Fails if a text exceeds its
  // limit.
  void bytes(size_t count) {
    if (count > limits_.output_bytes) {
      fail("the template makes a text of {} bytes; expected at most {}", count,
           limits_.output_bytes);
    }
    step(1 + count / 64);
    room(count);
  }
  const RenderLimits& limits() const { return limits_; }

  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_source(ErrorKind::InvalidArgument, name_, position,
                  fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  [[noreturn]] void unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_source(ErrorKind::Unsupported, name_, position,
                  fmt::format(format, std::forward<Args>(args)...));
  }

  Position position;  // of the expression or statement that is being evaluated

 private:
  std::string_view name_;
  RenderLimits limits_;
  size_t steps_ = 0;
  int64_t held_before_ = Held::all();
};

}  // namespace fovea::text::jinja
