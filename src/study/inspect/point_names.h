#pragma once

#include <string>
#include <vector>

#include "nn/probe.h"

namespace fovea::study {

// A name of a point in a trace, and the layer in the name; -1 = none, as in "logits".
struct PointName {
  std::string name;
  int64_t layer = -1;
};

// What the names of a model's points depend on.
struct NamingRules {
  int64_t layers = 0;             // of the point's stack
  bool reports_unnormed = false;  // "hidden.<layers>" is the state before the final norm
  // What TransformerLens' names depend on, since its hook_q is the query before norm and rotation,
  // and its hook_normalized of other norms is another value: whether queries and keys are rotated
  // or have norms, and whether sublayers begin with a LayerNorm.
  bool rotary = false, query_norm = false, layer_norm = false;
};

// Returns the names of a point: that of name_of() or of a trace first, then, in a model with one
// stack, those of TransformerLens, such as "blocks.3.attn.hook_q".
std::vector<PointName> names_of(const model::ProbePoint& point, const NamingRules& rules);

// The names that a trace writes.
class NameSelection {
 public:
  // `patterns`: globs, each of which may be a list separated by commas; empty = what a trace writes
  // by default. Patterns that contain "hook" or begin with "blocks." select the names of
  // TransformerLens, the others those of fovea. `layers`: "3" or "2-5"; empty = all; names without
  // a layer are always selected.
  NameSelection(const std::vector<std::string>& patterns, const std::string& layers);

  bool has(const PointName& name) const;
  // Notes that the model has this name, for check_found().
  void found(const PointName& name);
  // Throws a FieldError if a pattern has matched no name, or the layers none of the model's layers.
  void check_found() const;

 private:
  struct Pattern {
    std::string glob;
    bool matched = false;
  };
  std::vector<Pattern> patterns_;
  bool given_ = false;
  int64_t first_ = 0, last_ = INT64_MAX, deepest_ = 0;
  std::string layers_;
};

}  // namespace fovea::study
