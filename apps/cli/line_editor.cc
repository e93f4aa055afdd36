#include "line_editor.h"

#include <histedit.h>
#include <signal.h>
#include <unistd.h>

#include <clocale>
#include <iostream>

#include "signals.h"

namespace fovea::cli {
namespace {

constexpr int kRemembered = 1000;  // lines that the arrow keys bring back

// Lets Ctrl-C end the reading of a line, which would go on otherwise.
void interrupt_reading() {
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  action.sa_flags &= ~SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

char* prompt_of(EditLine* editor) {
  void* prompt = nullptr;
  el_get(editor, EL_CLIENTDATA, &prompt);
  return static_cast<std::string*>(prompt)->data();
}

}  // namespace

LineEditor::LineEditor() {
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) return;
  std::setlocale(LC_CTYPE, "");  // or letters beyond ASCII could not be typed
  interrupt_reading();
  editor_ = el_init("fovea", stdin, stderr, stderr);
  if (editor_ == nullptr) return;
  history_ = history_init();
  HistEvent event;
  ::history(history_, &event, H_SETSIZE, kRemembered);
  ::history(history_, &event, H_SETUNIQUE, 1);
  el_set(editor_, EL_HIST, ::history, history_);
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
  if (typed == nullptr || length <= 0 || interrupted_) return std::nullopt;
  std::string line(typed, static_cast<size_t>(length));
  if (line.ends_with('\n')) line.pop_back();
  HistEvent event;
  if (!line.empty()) ::history(history_, &event, H_ENTER, line.c_str());
  return line;
}

}  // namespace fovea::cli
