#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

namespace fovea::serve {

// Files that /translate_file has translated. They stay in memory until their time has passed, or
// newer ones need the room.
class TranslatedFiles {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kLifetime{30};
  static constexpr size_t kMostFiles = 256, kMostBytes = size_t{64} << 20;

  explicit TranslatedFiles(std::function<Clock::time_point()> now = Clock::now)
      : now_(std::move(now)) {}

  // Returns the name under which find() returns the text; nobody can guess it.
  std::string keep(std::string text);
  // Returns a text; null if the name is unknown or its time has passed.
  std::shared_ptr<const std::string> find(const std::string& name);

 private:
  struct File {
    std::string name;
    std::shared_ptr<const std::string> text;
    Clock::time_point end;
  };
  void remove_old();  // the caller must hold mutex_

  const std::function<Clock::time_point()> now_;
  std::mutex mutex_;
  std::deque<File> files_;  // oldest first
  size_t bytes_ = 0;
};

}  // namespace fovea::serve
