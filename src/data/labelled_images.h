#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

// Files of pictures and the label of each.
struct LabelledImages {
  std::vector<std::string> files, labels;  // of equal size
  uint64_t hash = 0;                       // of the names and the contents
};

// Reads folders that have a folder of pictures for each label, with subfolders, and tables of lines
// "picture,label" (.csv) or "picture<TAB>label" (.tsv); a path in a table is relative to its
// folder, and its first line may be a header, whose first column names no file. Throws BadFile if
// there is no picture, a folder has pictures beside those of labels, or a line has another form.
LabelledImages read_labelled_images(const std::vector<std::string>& paths);

// Moves this fraction of the pictures, evenly spaced, since they are sorted by label, from
// `training` to `validation`.
void hold_out(double fraction, LabelledImages& training, LabelledImages& validation);

}  // namespace fovea
