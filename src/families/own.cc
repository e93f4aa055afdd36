#include "families/registry.h"

namespace fovea {
namespace {

// What no other family can express: the Spec itself, under its own names (an empty table changes
// none).
void own_config(Config& io, Spec& s) {
  io.spec("spec", s);  // the head too
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family own = {"fovea",
                    {{"FoveaModel", {}},
                     {"FoveaModel", {.kind = HeadKind::pooled}},
                     {"FoveaModel", {.kind = HeadKind::sequence}},
                     {"FoveaModel", {.kind = HeadKind::token}},
                     {"FoveaModel", {.kind = HeadKind::span}}},
                    own_config,
                    {}};

}  // namespace fovea
