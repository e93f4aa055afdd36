#include "terminal/live_input.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "fovea/core/error.h"
#include "terminal/signals.h"

namespace fovea::cli {
namespace {

constexpr size_t kMostWaiting = size_t{64} << 20;
constexpr int kMilliseconds = 100;  // between two looks at the requests to stop

}  // namespace

LiveInput::LiveInput() : thread_([this] { run(); }) {}

LiveInput::~LiveInput() {
  stopped_ = true;
  changed_.notify_all();
  thread_.join();
}

int64_t LiveInput::read(char* bytes, int64_t most) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !waiting_.empty(); });
  if (waiting_.empty() && error_ != 0)
    throw Error(ErrorKind::BadFile, std::string("standard input: ") + std::strerror(error_));
  const size_t count = std::min(static_cast<size_t>(most), waiting_.size());
  std::memcpy(bytes, waiting_.data(), count);
  waiting_.erase(0, count);
  changed_.notify_all();
  return static_cast<int64_t>(count);
}

// Replaces `piece` by the next bytes; returns false at the end, or with an error.
bool LiveInput::read_some(std::string& piece, int& error) const {
  while (!stopped_ && !stop_requested()) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, kMilliseconds);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    piece.resize(size_t{1} << 16);
    const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    piece.resize(static_cast<size_t>(std::max<ssize_t>(0, count)));
    return count > 0;
  }
  return false;
}

void LiveInput::run() {
  std::string piece;
  int error = 0;
  while (read_some(piece, error)) {
    std::unique_lock lock(mutex_);
    while (waiting_.size() >= kMostWaiting && !stopped_)
      changed_.wait_for(lock, std::chrono::milliseconds(kMilliseconds));
    waiting_ += piece;
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  error_ = error;
  ended_ = true;
  changed_.notify_all();
}

}  // namespace fovea::cli
