#pragma once

#include <string>
#include <vector>

#include "fovea/media/image.h"
#include "serve/request.h"

namespace fovea::serve {

// A picture in a message of a chat: a data: URL, and its place, such as
// "messages[0].content[1].image_url".
struct ChatPicture {
  std::string url, place;
};

// Replaces the image_url parts of messages by those that chat templates know, and returns their
// pictures in order. Throws ApiError if a URL has another scheme, or if there are too many.
std::vector<ChatPicture> take_pictures(Json& messages);

// Decodes the pictures of one request, whose pixels together are limited. Throws ApiError.
class PictureDecoder {
 public:
  explicit PictureDecoder(const std::vector<ChatPicture>& pictures) : pictures_(pictures) {}
  media::Image operator()(size_t picture);

 private:
  const std::vector<ChatPicture>& pictures_;
  int64_t pixels_ = 0;
};

}  // namespace fovea::serve
