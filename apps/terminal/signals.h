#pragma once

namespace fovea::cli {

// Installs the signal handlers. SIGPIPE and SIGXFSZ are ignored. If a mapped file is truncated, the
// program prints one line and ends with exit code 1. Until catch_signals() is called, SIGINT,
// SIGTERM and SIGHUP end the program immediately with 130, 143 and 129.
void start_signals();

// After this call the first signal only requests a stop and prints `notice` (unless it is empty); a
// second SIGINT or SIGTERM ends the program immediately. Under nohup, SIGHUP stays ignored.
void catch_signals(
    const char* notice = "stopping after this step (press again to stop immediately)");
bool stop_requested();  // returns whether a signal requested a stop
// Returns whether SIGINT requested a stop, and resets the request.
bool take_interrupt();
int stop_code();  // 130, 143 or 129

}  // namespace fovea::cli
