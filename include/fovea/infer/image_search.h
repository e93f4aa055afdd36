#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/infer/image_model.h"
#include "fovea/media/image.h"

namespace fovea {
class Communicator;
}

namespace fovea::infer {

struct ImageIndexBuild {
  int64_t images = 0;
  int64_t embedded = 0;                // images whose vector was computed, not reused
  std::vector<std::string> links_out;  // symbolic links that lead out of the folder; not followed
};

// Writes an index of the vectors of the images in `folder` and its subfolders, by an ImageModel.
// If `index` exists and was built with the same model, the vectors of unchanged files are reused.
// The index is written atomically. `progress` and `ranks` are as in SearchBuildOptions; each
// process reads its share of the files under the same paths. Throws BadFile if there is no image or
// one cannot be read, InvalidArgument if `index` exists and is not an index, Failed if `progress`
// returned false or the index cannot be written, and the errors of ImageModel::open().
ImageIndexBuild build_image_index(
    const std::string& folder, const std::string& model, const std::string& index,
    const std::function<bool(int64_t embedded, int64_t images)>& progress = {},
    Communicator* ranks = nullptr);

struct FoundImage {
  std::string file;  // path relative to the indexed folder
  float score = 0;   // cosine of the vectors of query and image
};

// An opened index of images, with its model. Cheap to copy; safe to use from several threads.
class ImageIndex {
 public:
  // Returns whether a folder is an index whose model (`model`, or the one that the index names)
  // reads images.
  static bool holds_images(const std::string& index, const std::string& model = "");
  // Throws the errors of SearchIndex::open() and ImageModel::open().
  static ImageIndex open(const std::string& index, const std::string& model = "");

  // Return the `count` images most similar to a text or an image, best first. Throw
  // InvalidArgument if the query is a text and the model reads none.
  std::vector<FoundImage> search(const std::string& text, int64_t count) const;
  std::vector<FoundImage> search(const media::Image& image, int64_t count) const;
  const std::vector<std::string>& warnings() const;  // of the model
  const std::string& folder() const;                 // the indexed folder

 private:
  struct Parts;
  explicit ImageIndex(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::vector<FoundImage> nearest(const Embeddings& query, int64_t count) const;
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea::infer
