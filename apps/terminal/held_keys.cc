#include "terminal/held_keys.h"

#include <unistd.h>

namespace fovea::cli {

HeldKeys::HeldKeys() {
  if (tcgetattr(STDIN_FILENO, &before_) != 0) return;  // not a terminal
  termios quiet = before_;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
  held_ = tcsetattr(STDIN_FILENO, TCSANOW, &quiet) == 0;
}

HeldKeys::~HeldKeys() {
  if (held_) tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

}  // namespace fovea::cli
