#pragma once

#include <string>
#include <vector>

#include "fovea/media/image.h"

namespace fovea::cli {

// Returns whether an argument is a folder or is named like a file of a picture.
bool holds_pictures(const std::string& argument);

// The pictures of the arguments PICTURE...: files, folders (their files of pictures and those of
// their subfolders, sorted) and "-" for a picture on standard input.
class PictureList {
 public:
  // Throws UsageError if there is no argument or a file does not exist; BadFile if a folder has no
  // pictures.
  explicit PictureList(const std::vector<std::string>& arguments);

  const std::vector<std::string>& names() const { return names_; }
  size_t size() const { return names_.size(); }
  media::Image read(size_t picture) const;

 private:
  std::vector<std::string> names_;
  std::string standard_input_;  // its bytes
};

}  // namespace fovea::cli
