#include "families/registry.h"

namespace fovea {
namespace {

// What no other family can express: the Spec itself, under its own names (an empty table changes
// none).
void config(Config& io, Spec& s) {
  io.spec("spec", s);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family own = {"fovea", "FoveaForCausalLM", config, {}, "", {}};

}  // namespace fovea
