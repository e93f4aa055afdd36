#pragma once

#include "fovea/model.h"

namespace fovea {

// Throws InvalidArgument if the draft cannot propose tokens for the model, for example because its
// vocabulary differs.
void check_draft(const Model& model, const Model& draft);

}  // namespace fovea
