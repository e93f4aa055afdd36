#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fuzz.h"
#include "grammar/grammar_automaton.h"

namespace fovea {

inline constexpr size_t kMostBytes = 256;  // longer texts get the shortest completion
inline constexpr size_t kMostMemory = size_t{64} << 20;

// Returns the allowed next bytes; if `to_the_end`, only those of a shortest completion.
inline std::vector<uint8_t> next_bytes(text::GrammarAutomaton& automaton, int32_t state,
                                       bool to_the_end) {
  std::vector<uint8_t> found;
  int64_t least = automaton.need(state);
  for (int byte = 0; byte < 256; ++byte) {
    const int32_t next = automaton.step(state, static_cast<uint8_t>(byte));
    if (next == text::GrammarAutomaton::kDead) continue;
    if (to_the_end && automaton.need(next) >= least) continue;
    found.push_back(static_cast<uint8_t>(byte));
  }
  return found;
}

// Returns a text of the grammar; `choices` select its bytes.
inline std::string write_under(text::GrammarAutomaton& automaton, std::string_view choices) {
  std::string written;
  int32_t state = automaton.start();
  while (!automaton.accepts(state)) {
    const std::vector<uint8_t> next = next_bytes(automaton, state, written.size() >= kMostBytes);
    require(!next.empty(), "a text can always be completed");
    const size_t choice =
        written.size() < choices.size() ? static_cast<uint8_t>(choices[written.size()]) : 0;
    written += static_cast<char>(next[choice % next.size()]);
    require(automaton.bytes() < kMostMemory, "an automaton uses little memory");
    state = automaton.step(state, static_cast<uint8_t>(written.back()));
  }
  return written;
}

}  // namespace fovea
