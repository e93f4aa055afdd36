#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// One step of attention: its right result, compared with that of a student.
struct ExerciseStep {
  std::string name;              // "scores", "weights", ...
  std::vector<int64_t> shape;    // of the right result
  bool given = false;            // the file has this array
  bool right = false;            // each element differs by at most 1e-3 * max(1, |element|)
  std::string message;           // one line: what is right, or the first difference and its cause
  std::vector<double> expected;  // the right elements
};

// Computes attention from the arrays in a JSON file, step by step, and compares each step with the
// array of the same name in the file.
//
// One head: Q [T, D], K [S, D] and V [S, D']; by default two queries and three keys of width 3.
// Several heads: X [T, C], W_Q, W_K and W_V [H, C, D] and W_O [H D', N]. Steps of both: queries,
// keys, values (several heads only), scores, scaled, weights, output; with several heads also
// concatenated. "mask" [T, S] has 1 for each visible key; "causal": true hides later keys.
//
// Throws BadFile if the file is no such JSON, and InvalidArgument if an array has a wrong shape.
std::vector<ExerciseStep> check_exercise(const std::string& path);

}  // namespace fovea
