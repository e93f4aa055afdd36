#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "image/tiles.h"
#include "loop/conversation_text.h"
#include "losses/batch_images.h"
#include "transformer/prompt_images.h"

namespace fovea::train {

// An image in a text: the first tokens of its tiles.
struct TextImage {
  size_t number = 0;
  std::vector<int64_t> tokens;
};

// The images of conversations, for a model that reads them. They are decoded once to find damaged
// files, and again for each batch, so that their number is not limited by memory.
class ChatImages {
 public:
  ChatImages(std::shared_ptr<const model::ImageEncoder> encoder, const text::Tokenizer& tokenizer);

  // Decodes the images of the records. Throws the errors of read_image_part(), of the first damaged
  // image, and those of tiles_of().
  void read(const std::vector<Conversation>& records);

  // How texts show the images that were read; valid as long as this object exists.
  ShownImages shown() const;
  // Returns the images whose tokens are in a text of the record. Throws BadFile if the tokens of an
  // image are incomplete.
  std::vector<TextImage> find(const Conversation& record, const std::vector<int32_t>& ids) const;
  bool is_token(int32_t id) const { return id == encoder_->token; }

  // For a batch: the encoder, and the tiles of each image.
  BatchImages of_batch() const;
  // For a prompt that a model continues.
  std::shared_ptr<const model::PromptImages> of_prompt(const std::vector<TextImage>& images) const;

  int64_t count() const { return std::ssize(images_); }
  int64_t tiles() const;
  uint64_t hash() const { return hash_; }

 private:
  struct Known {
    ImagePart part;
    int64_t rows = 0, columns = 0;  // of its tiles
    uint64_t hash = 0;              // of the file
  };
  media::ImageTiles tiles_of(const Known& image) const;
  const Known& known(const ImagePart& part) const { return images_[numbers_.at(part.source)]; }

  std::shared_ptr<const model::ImageEncoder> encoder_;
  std::string mark_;
  std::vector<Known> images_;
  std::map<std::string, size_t> numbers_;  // by the source
  uint64_t hash_ = 0;
};

}  // namespace fovea::train
