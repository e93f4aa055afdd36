#pragma once

#include "fovea/spec.h"
#include "options/options.h"

namespace fovea::cli {

// Adds every field of `spec` as an option. In --config these are outside of "train".
void add_spec_options(OptionTable& table, Spec& spec);

}  // namespace fovea::cli
