#pragma once

#include <string>

#include "data/labelled.h"

namespace fovea::train {

// Adds the rows of a file. Leaves `number` and the labels of a tab-separated column unset; `label`
// holds what the file has. Throws BadFile if a line is invalid.
void add_labelled_rows(const std::string& path, LabelledTexts& texts);

}  // namespace fovea::train
