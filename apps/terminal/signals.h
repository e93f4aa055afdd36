#pragma once

namespace fovea::cli {

// SIGPIPE is ignored from the start, and a file that shrinks while it is mapped ends the program
// with one line and 1; until catch_signals() is called, SIGINT and SIGTERM leave at once with 130
// and 143.
void start_signals();

// From now on the first SIGINT or SIGTERM only asks to stop, which `notice` tells (nothing if it
// is empty); a second one leaves at once.
void catch_signals(const char* notice = "stopping after this step (once more: at once)");
bool asked_to_stop();
// Whether SIGINT asked to stop; forgets it, so that the next one only asks again.
bool take_interrupt();
int stop_code();  // 130 or 143

}  // namespace fovea::cli
