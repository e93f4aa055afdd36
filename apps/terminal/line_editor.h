#pragma once

#include <optional>
#include <string>

#include "terminal/history_file.h"

struct editline;
struct history;

namespace fovea::cli {

// Reads lines that a person types. On a terminal they can be edited and recalled from a history.
class LineEditor {
 public:
  // `history` names the file of the history (see HistoryFile); empty = this session only.
  explicit LineEditor(const std::string& history = "");
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // Returns one line without its line break, or nothing at the end of the input or after Ctrl-C
  // (see interrupted()). `prompt` is shown on terminals only.
  std::optional<std::string> read(const std::string& prompt);
  // Returns whether Ctrl-C ended the last read().
  bool interrupted() const { return interrupted_; }
  bool on_terminal() const { return editor_ != nullptr; }

 private:
  std::optional<std::string> edit(const std::string& prompt);

  editline* editor_ = nullptr;
  history* history_ = nullptr;
  HistoryFile file_;
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace fovea::cli
