#include "terminal/signals.h"

#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "fovea/core/mapped_file.h"
#include "fovea/train/reinforcement.h"

namespace fovea::cli {
namespace {

// Signal handlers may use only lock-free atomics and async-signal-safe functions such as write(2).
std::atomic<int> received{0};
std::atomic<const char*> gentle{nullptr};  // message printed on the first signal
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

// The settings of the terminal at the start, for an end in the middle of a line that is edited.
termios terminal = {};
std::atomic<bool> knows_terminal{false};

void say(std::string_view text) {
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
}

void handle(int signal) {
  const char* const notice = gentle;
  if (notice == nullptr || received.exchange(signal) != 0) {
    // In the background, this call would stop the process.
    if (knows_terminal && tcgetpgrp(STDIN_FILENO) == getpgrp())
      tcsetattr(STDIN_FILENO, TCSANOW, &terminal);
    train::end_reward_program();
    say("\nfovea: stopped immediately\n");
    _exit(128 + signal);
  }
  if (*notice == 0) return;
  say("\nfovea: ");
  say(notice);
  say("\n");
}

// Handles SIGHUP, which the kernel sends to a child once for each thread of a parent that dies: a
// repeated signal means nothing.
void hang_up(int signal) {
  if (gentle == nullptr) _exit(128 + signal);
  if (received == 0) handle(signal);
}

// Handles SIGBUS: reports a mapped file that was truncated. A fault at any other address is a bug
// and gets the default action.
void handle_lost_page(int, siginfo_t* info, void*) {
  const char* const path = mapped_file_at(info->si_addr);
  if (path == nullptr) {
    signal(SIGBUS, SIG_DFL);
    return;
  }
  say("\nfovea: error: ");
  say(path);
  say(": truncated by another process while it was read; expected an unchanged file\n");
  _exit(1);
}

}  // namespace

void start_signals() {
  if (tcgetattr(STDIN_FILENO, &terminal) == 0) knows_terminal = true;
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // writes beyond `ulimit -f` then return an error
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) {  // nohup
    action.sa_handler = hang_up;
    sigaction(SIGHUP, &action, nullptr);
  }
  struct sigaction lost_page = {};
  lost_page.sa_sigaction = handle_lost_page;
  lost_page.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &lost_page, nullptr);
}

void catch_signals(const char* notice) { gentle = notice; }
bool stop_requested() { return received != 0; }
bool take_interrupt() {
  int interrupt = SIGINT;
  return received.compare_exchange_strong(interrupt, 0);
}
int stop_code() { return 128 + received; }

}  // namespace fovea::cli
