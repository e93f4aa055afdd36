#include "tasks/chat_images.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/threads.h"
#include "vision/image_tokens.h"

namespace fovea::train {

ChatImages::ChatImages(std::shared_ptr<const model::ImageEncoder> encoder,
                       const text::Tokenizer& tokenizer)
    : encoder_(std::move(encoder)) {
  if (encoder_->token < 0 || encoder_->token >= tokenizer.size())
    fail(ErrorKind::BadFile, "tokenizer: the token {} of an image is unknown; expected 0 to {}",
         encoder_->token, tokenizer.size() - 1);
  mark_ = tokenizer.decode({encoder_->token});
}

void ChatImages::read(const std::vector<Conversation>& records) {
  const size_t before = images_.size();
  std::vector<size_t> order;
  for (const Conversation& record : records) {
    for (const Conversation::Message& message : record.messages) {
      for (const ImagePart& part : message.images) {
        const auto [at, fresh] = numbers_.emplace(part.source, images_.size());
        if (fresh) images_.push_back({.part = part});
        order.push_back(at->second);
      }
    }
  }
  // Of several damaged images, the error is about the first one.
  std::vector<std::unique_ptr<Error>> errors(images_.size() - before);
  parallel_tasks(std::ssize(errors), [&](int64_t i) {
    Known& image = images_[before + static_cast<size_t>(i)];
    try {
      const media::ImageTiles tiles = media::tiles_of(
          encoder_->processor, read_image_part(image.part, &image.hash), image.part.location);
      image.rows = tiles.rows, image.columns = tiles.columns;
    } catch (const Error& error) {
      errors[static_cast<size_t>(i)] = std::make_unique<Error>(error);
    }
  });
  for (const auto& error : errors)
    if (error) throw *error;
  Hasher hasher;
  hasher.add(hash_text(hash_));
  for (const size_t number : order) hasher.add(hash_text(images_[number].hash));
  if (!order.empty()) hash_ = hasher.hash();
}

ShownImages ChatImages::shown() const {
  return {mark_, [this](const ImagePart& part) {
            const Known& image = known(part);
            return infer::image_text(image.rows, image.columns, *encoder_, mark_);
          }};
}

std::vector<TextImage> ChatImages::find(const Conversation& record,
                                        const std::vector<int32_t>& ids) const {
  std::vector<TextImage> found;
  int64_t next = 0;
  for (const Conversation::Message& message : record.messages) {
    for (const ImagePart& part : message.images) {
      const Known& image = known(part);
      TextImage placed{numbers_.at(part.source), {}};
      for (int64_t tile = 0; tile <= image.rows * image.columns; ++tile) {
        const auto first = infer::next_tile(ids, next, *encoder_);
        if (!first && tile == 0) return found;  // a text up to an earlier message
        if (!first)
          fail(ErrorKind::BadFile, "{}: the tokenizer reads {} of {} tiles in the text of an image",
               part.location, tile, image.rows * image.columns + 1);
        placed.tokens.push_back(*first);
        next = *first + encoder_->tokens();
      }
      found.push_back(std::move(placed));
    }
  }
  return found;
}

media::ImageTiles ChatImages::tiles_of(const Known& image) const {
  media::ImageTiles tiles =
      media::tiles_of(encoder_->processor, read_image_part(image.part), image.part.location);
  if (tiles.rows != image.rows || tiles.columns != image.columns)
    fail(ErrorKind::BadFile, "{}: the image has changed since the run began; expected the same one",
         image.part.location);
  return tiles;
}

BatchImages ChatImages::of_batch() const {
  return {encoder_, [this](size_t number) { return tiles_of(images_[number]).images; }, {}};
}

std::shared_ptr<const model::PromptImages> ChatImages::of_prompt(
    const std::vector<TextImage>& images) const {
  std::vector<model::PromptImages::Part> parts;
  for (const TextImage& image : images) {
    media::ImageTiles tiles = tiles_of(images_[image.number]);
    for (size_t i = 0; i < tiles.images.size(); ++i) {
      model::PromptImages::Part& part = parts.emplace_back();
      part.first = image.tokens[i], part.count = encoder_->tokens();
      part.pixels = std::move(tiles.images[i]);
    }
  }
  if (parts.empty()) return nullptr;
  return std::make_shared<model::PromptImages>(
      std::move(parts), [kept = encoder_](const media::Image& pixels) { return (*kept)(pixels); });
}

int64_t ChatImages::tiles() const {
  int64_t all = 0;
  for (const Known& image : images_) all += image.rows * image.columns + 1;
  return all;
}

}  // namespace fovea::train
