#pragma once

#include <string>
#include <vector>

#include "checkpoint/family.h"

namespace fovea::train {

// Makes parameters of a model untrainable. An item is a layer or a range of layers ("3", "0-5"), in
// each stack that has them, or a name of parameters in the model ("decoder.0.ffn.up.weight") or in
// its checkpoint ("model.layers.0.mlp.up_proj.weight"), where * stands for any characters. Throws
// InvalidArgument if an item names nothing, or if nothing remains to be trained.
void freeze(model::Transformer& model, const model::Family& family,
            const std::vector<std::string>& items);

// Makes parameters of a checkpoint untrainable that other programs hold as buffers: the bias of the
// logits of some encoder-decoders (final_logits_bias), which the file stores with an axis of 1.
void freeze_buffers(model::Transformer& model, const model::Family& family);

}  // namespace fovea::train
