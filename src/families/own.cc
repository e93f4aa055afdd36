#include "families/registry.h"

namespace fovea {
namespace {

// What no other family can express: the Spec itself, under its own names (an empty table changes
// none).
void config(Config& io, Spec& s) { io.spec("spec", s); }

}  // namespace

const Family own = {"fovea", "FoveaForCausalLM", config, {}, "", {}};

}  // namespace fovea
