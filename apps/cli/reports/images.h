#pragma once

#include <string>
#include <vector>

#include "fovea/media/image.h"

namespace fovea::cli {

// Returns whether an argument is a folder or is named like a file of an image.
bool holds_images(const std::string& argument);

// The images of the arguments IMAGE...: files, folders (their files of images and those of
// their subfolders, sorted) and "-" for an image on standard input.
class ImageList {
 public:
  // Throws UsageError if there is no argument or a file does not exist; BadFile if a folder has no
  // images.
  explicit ImageList(const std::vector<std::string>& arguments);

  const std::vector<std::string>& names() const { return names_; }
  size_t size() const { return names_.size(); }
  media::Image read(size_t image) const;

 private:
  std::vector<std::string> names_;
  std::string standard_input_;  // its bytes
};

}  // namespace fovea::cli
