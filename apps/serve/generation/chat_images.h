#pragma once

#include <string>
#include <vector>

#include "fovea/media/image.h"
#include "serve/request/request.h"

namespace fovea::serve {

// An image in a message of a chat: a data: URL, and its location, such as
// "messages[0].content[1].image_url".
struct ChatImage {
  std::string url, location;
};

// Replaces the image_url parts of messages by those that chat templates know, and returns their
// images in order. Throws ApiError if a URL has another scheme, or if there are too many.
std::vector<ChatImage> take_images(Json& messages);

// Decodes the images of one request, whose pixels together are limited. Throws ApiError.
class ImageDecoder {
 public:
  explicit ImageDecoder(const std::vector<ChatImage>& images) : images_(images) {}
  media::Image operator()(size_t index);

 private:
  const std::vector<ChatImage>& images_;
  int64_t pixels_ = 0;
};

}  // namespace fovea::serve
