#pragma once

#include <string>
#include <vector>

namespace fovea::cli {

// The lines that were typed in earlier sessions: one file per user, which only the user may read.
class HistoryFile {
 public:
  // `name`: of the file in $XDG_STATE_HOME/fovea or ~/.local/state/fovea; empty = no file.
  explicit HistoryFile(const std::string& name);
  // Returns the last `most` lines; shortens a file that is twice as long.
  std::vector<std::string> lines(size_t most) const;
  void add(const std::string& line) const;  // ignores failures, which must not end a conversation

 private:
  std::string path_;  // empty = none
};

}  // namespace fovea::cli
