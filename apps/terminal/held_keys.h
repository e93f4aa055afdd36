#pragma once

#include <termios.h>

namespace fovea::cli {

// While an object of this class exists, keys typed on the terminal are not shown: they wait for the
// program's next read. Ctrl-C still interrupts.
class HeldKeys {
 public:
  HeldKeys();
  ~HeldKeys();
  HeldKeys(const HeldKeys&) = delete;
  HeldKeys& operator=(const HeldKeys&) = delete;

 private:
  termios before_ = {};
  bool held_ = false;
};

}  // namespace fovea::cli
