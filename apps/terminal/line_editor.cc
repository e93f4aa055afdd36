#include "terminal/line_editor.h"

#include <histedit.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cwchar>
#include <iostream>

#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr int kRemembered = 1000;  // lines in the history
constexpr char kCtrlD = 4;

// libedit's default reader continues after a signal. This reader periodically checks for an
// interrupt, since a signal may arrive at any time and on any thread.
int read_character(EditLine*, wchar_t* character) {
  constexpr int kLook = 50;  // milliseconds
  std::mbstate_t state = {};
  while (!stop_requested()) {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kLook) <= 0) continue;
    char byte = 0;
    const ssize_t count = read(STDIN_FILENO, &byte, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return static_cast<int>(count);
    // Ctrl-D that was typed while the terminal still collected lines arrives as NUL.
    if (byte == '\0') byte = kCtrlD;
    const size_t used = std::mbrtowc(character, &byte, 1, &state);
    constexpr auto kBad = static_cast<size_t>(-1), kUnfinished = static_cast<size_t>(-2);
    if (used == kUnfinished) continue;
    if (used == kBad) *character = L'?';
    return 1;
  }
  return -1;
}

char* prompt_of(EditLine* editor) {
  void* prompt = nullptr;
  el_get(editor, EL_CLIENTDATA, &prompt);
  return static_cast<std::string*>(prompt)->data();
}

}  // namespace

LineEditor::LineEditor(const std::string& history) : file_(history) {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return;
  std::setlocale(LC_CTYPE, "");  // required for typing non-ASCII letters
  editor_ = el_init("fovea", stdin, stderr, stderr);
  if (editor_ == nullptr) return;
  history_ = history_init();
  HistEvent event;
  ::history(history_, &event, H_SETSIZE, kRemembered);
  ::history(history_, &event, H_SETUNIQUE, 1);
  for (const std::string& line : file_.lines(kRemembered))
    ::history(history_, &event, H_ENTER, line.c_str());
  el_set(editor_, EL_HIST, ::history, history_);
  el_set(editor_, EL_GETCFN, read_character);
  el_set(editor_, EL_EDITOR, "emacs");
  el_set(editor_, EL_CLIENTDATA, &prompt_);
  el_set(editor_, EL_PROMPT, prompt_of);
  el_source(editor_, nullptr);  // the user's ~/.editrc
}

LineEditor::~LineEditor() {
  if (history_ != nullptr) history_end(history_);
  if (editor_ != nullptr) el_end(editor_);
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  interrupted_ = false;
  if (editor_ != nullptr) return edit(prompt);
  std::string line;
  if (!std::getline(std::cin, line)) return std::nullopt;
  if (line.ends_with('\r')) line.pop_back();
  return line;
}

std::optional<std::string> LineEditor::edit(const std::string& prompt) {
  prompt_ = prompt;
  int length = 0;
  const char* const typed = el_gets(editor_, &length);
  interrupted_ = take_interrupt();
  if (interrupted_) note("\n");
  if (interrupted_) return std::nullopt;
  if (typed == nullptr || length <= 0) {
    note("\n");  // after Ctrl-D the cursor is still after the prompt
    return std::nullopt;
  }
  std::string line(typed, static_cast<size_t>(length));
  if (line.ends_with('\n')) line.pop_back();
  HistEvent event;
  if (line.empty()) return line;
  ::history(history_, &event, H_ENTER, line.c_str());
  file_.add(line);
  return line;
}

}  // namespace fovea::cli
