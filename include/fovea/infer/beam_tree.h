#pragma once

#include <cstdint>
#include <vector>

namespace fovea::infer {

// What became of a continuation that a beam search considered. continued: it was among the beams of
// its step. finished: it ended, and is among the results. dropped: others of its step were better.
// displaced: it ended, but better ones ended later. stopped: as continued, but the search ended
// first.
enum class BeamFate : uint8_t { continued, finished, dropped, displaced, stopped };
const char* name_of(BeamFate fate);

// A continuation: one token after the path from the root to its parent.
struct BeamNode {
  int64_t parent = -1;  // index of the node before; -1 = the beginning of the text
  int64_t step = 0;     // tokens before this one
  int32_t id = 0;
  float logprob = 0;  // of the token, after the penalties
  // The sum of the log-probabilities up to this token; of finished and displaced ones, divided by
  // length ^ length_penalty, with the length step + 1.
  float score = 0;
  BeamFate fate = BeamFate::dropped;
};

// The tree of a beam search, in the order of its steps: a parent precedes its children. Of each
// step, it has the beams and the next best continuations, twice as many as beams in all.
using BeamTree = std::vector<BeamNode>;

}  // namespace fovea::infer
