#pragma once

#include <optional>
#include <string>

struct editline;
struct history;

namespace fovea::cli {

// Lines that a person types: on a terminal they can be edited and called back, elsewhere they are
// read as they come.
class LineEditor {
 public:
  LineEditor();
  ~LineEditor();
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;

  // One line without its end; nothing at the end of the input, or where Ctrl-C ended the line (see
  // interrupted()). `prompt` is shown on a terminal alone.
  std::optional<std::string> read(const std::string& prompt);
  // Whether it was Ctrl-C that ended the last read().
  bool interrupted() const { return interrupted_; }
  bool on_terminal() const { return editor_ != nullptr; }

 private:
  std::optional<std::string> edit(const std::string& prompt);

  editline* editor_ = nullptr;
  history* history_ = nullptr;
  std::string prompt_;
  bool interrupted_ = false;
};

}  // namespace fovea::cli
