#pragma once

#include "fovea/spec.h"
#include "options/options.h"

namespace fovea::cli {

// Every field of `spec` becomes an option of the table; --config holds them outside of "train".
void add_spec_options(OptionTable& table, Spec& spec);

}  // namespace fovea::cli
