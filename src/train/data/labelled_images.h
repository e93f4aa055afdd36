#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea::train {

// Files of images and the label of each.
struct LabelledImages {
  std::vector<std::string> files, labels;  // of equal size
  uint64_t hash = 0;                       // of the names and the contents
};

// Reads folders that have a folder of images for each label, with subfolders, and tables (see
// read_table()) of rows "image,label" (.csv) or "image<TAB>label" (.tsv), or with columns of
// these names, such as file or caption, in any order; a path in a table is relative to its folder.
// Throws BadFile if there is no image, a folder has images beside those of labels, or a row has
// another form.
LabelledImages read_labelled_images(const std::vector<std::string>& paths);

// Moves this fraction of the images, evenly spaced, since they are sorted by label, from
// `training` to `validation`.
void hold_out(double fraction, LabelledImages& training, LabelledImages& validation);

}  // namespace fovea::train
