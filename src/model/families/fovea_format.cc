#include "families/registry.h"

namespace fovea::model {
namespace {

// Models that no other family can express: the Spec itself, with fovea's own tensor names (an empty
// table changes no name).
void fovea_config(Config& io, Spec& s) {
  io.spec("spec", s);  // including the head
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family fovea_format = {"fovea",
                             {{"FoveaModel", {}},
                              {"FoveaModel", {.kind = HeadKind::pooled}},
                              {"FoveaModel", {.kind = HeadKind::sequence}},
                              {"FoveaModel", {.kind = HeadKind::token}},
                              {"FoveaModel", {.kind = HeadKind::span}}},
                             fovea_config,
                             {}};

}  // namespace fovea::model
