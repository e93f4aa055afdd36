#pragma once

#include <string>
#include <vector>

#include "checkpoint/importance.h"
#include "checkpoint/names.h"
#include "fovea/model/model.h"

namespace fovea::model {

// Runs a decoder on the text file `path`, in windows of at most 512 tokens, and adds up the squares
// of the inputs of its matrices: the importance of the columns of `tensors`, which are named as in
// a GGUF file. The sums do not depend on the number of threads. Throws InvalidArgument if the model
// has no tokenizer or the text has no tokens, BadFile if the text cannot be read or an activation
// is not finite.
ImportanceMatrix calibrate(const Model& model, const std::vector<FileTensor>& tensors,
                           const std::string& path);

}  // namespace fovea::model
