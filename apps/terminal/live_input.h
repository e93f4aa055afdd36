#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace fovea::cli {

// Reads standard input on its own thread, so that a device that writes to it never waits for the
// program. Holds at most 64 MiB: half an hour of audio.
class LiveInput {
 public:
  LiveInput();
  ~LiveInput();
  LiveInput(const LiveInput&) = delete;
  LiveInput& operator=(const LiveInput&) = delete;

  // Waits for bytes and returns their number, at most `most`; 0 at the end, or after a signal that
  // requests a stop. Throws BadFile if standard input cannot be read.
  int64_t read(char* bytes, int64_t most);

 private:
  void run();
  bool read_some(std::string& piece, int& error) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string waiting_;
  int error_ = 0;
  bool ended_ = false;
  std::atomic<bool> stopped_{false};
  std::thread thread_;  // declared last, since it uses the other members
};

}  // namespace fovea::cli
