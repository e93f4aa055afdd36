#pragma once

#include "fovea/model/model.h"

namespace fovea::infer {

// Throws InvalidArgument if the draft cannot propose tokens for the model, for example because its
// vocabulary differs.
void check_draft(const model::Model& model, const model::Model& draft);

}  // namespace fovea::infer
