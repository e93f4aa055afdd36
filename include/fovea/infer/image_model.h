#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/media/image.h"

namespace fovea::infer {

struct ImageOptions {
  bool raw = false;  // classify(), classify_by(): return logits, without softmax or sigmoid
  // classify_by(): a text about an image, in which "{}" is replaced by a label.
  std::string hypothesis = "This is a photo of {}.";
  bool normalise = false;  // embed(), embed_texts(): scale each vector to length 1
  int64_t batch = 0;       // images per forward pass; 0 = a fast default
  // Returns the name of the image with this index, for errors; unset: "image 1", ...
  std::function<std::string(size_t)> name_of_image;
  // Called before each image is read, from several threads. If it returns true, the call throws
  // Failed.
  std::function<bool()> stop;
};
void visit(ImageOptions& options, OptionVisitor& visitor);  // fovea/core/options.h

// Computes labels and vectors of images by an encoder of images, or by a model of images and
// texts, such as CLIP, whose vectors of images and texts can be compared. Results do not depend
// on the other images in the batch, nor on the number of threads. Cheap to copy; copies share the
// weights. Safe to use from several threads.
class ImageModel {
 public:
  // Returns whether config.json in the folder, or in the base of an adapter's folder, is that of
  // such a model.
  static bool reads_images(const std::string& folder);
  // Opens a Hugging Face directory with preprocessor_config.json. If the images that it describes
  // have another size than the model's, the table of positions is resized, as transformers does for
  // DINOv2. The weighted sum of the adapters is added, or the adapter whose directory is opened.
  // Throws BadFile if a file is damaged or inconsistent, Unsupported if the model is not
  // supported.
  static ImageModel open(const std::string& folder,
                         model::WeightPrecision precision = model::WeightPrecision::stored,
                         const std::vector<model::AdapterUse>& adapters = {});

  // Whether classify() works: the model has a head for labels.
  bool has_labels() const;
  // Whether classify_by() and embed_texts() work: the model reads texts too.
  bool reads_texts() const;
  const std::vector<std::string>& labels() const;  // of the head
  int64_t width() const;                           // elements of a vector
  const std::vector<std::string>& warnings() const;
  const model::Spec& spec() const;  // of the encoder of images
  // See Embedder::fingerprint().
  uint64_t fingerprint() const;

  // An image is read when its turn comes: `image(i)` is called once for each i below `count`, from
  // several threads.
  using Source = std::function<media::Image(size_t)>;

  // Return one result for each image, in their order. They throw InvalidArgument if the model has
  // no such outputs or an option is invalid, Failed if a result is not finite, and the errors of
  // `image`.
  Classifications classify(size_t count, const Source& image,
                           const ImageOptions& options = {}) const;
  // Compares images with the texts of labels: the probabilities of exclusive labels, or of each
  // label if the model was trained so, as zero-shot-image-classification of transformers.
  Classifications classify_by(size_t count, const Source& image,
                              const std::vector<std::string>& labels,
                              const ImageOptions& options = {}) const;
  // The vector is the projection of a model of images and texts; otherwise the output of a pooler
  // that attends to all tokens, or the last hidden state of the class token, or the mean of the
  // tokens if there is none.
  Embeddings embed(size_t count, const Source& image, const ImageOptions& options = {}) const;
  Embeddings embed_texts(const std::vector<std::string>& texts,
                         const ImageOptions& options = {}) const;

  struct Parts;  // internals, for the library only
  const Parts& parts() const { return *parts_; }

 private:
  explicit ImageModel(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace fovea::infer
