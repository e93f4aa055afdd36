#include "serve/generation/chat_images.h"

#include <fmt/format.h>

#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "serve/request/data_url.h"

namespace fovea::serve {
namespace {

constexpr size_t kMostImages = 64;  // in one request

[[noreturn]] void refuse_image(const std::string& location, const std::string& what,
                               const char* code) {
  throw ApiError{400, location + ": " + what, location, code};
}

// {"type": "image_url", "image_url": {"url": ...}}; the inner object may be the URL itself.
std::string url_of(const Json& part, const std::string& location) {
  const Json& value = part["image_url"];
  const Json url = value.is_object() ? value.value("url", Json()) : value;
  if (!url.is_string()) refuse_image(location, "expected an object with url", "invalid_type");
  const auto& text = url.get_ref<const std::string&>();
  if (!is_data_url(text))
    refuse_image(
        location,
        fmt::format("the URL begins with {}; expected a data: URL, since images are not fetched",
                    excerpt(text.substr(0, 40))),
        "unsupported_url");
  return text;
}

std::string bytes_of(const ChatImage& image) {
  auto bytes = data_url_bytes(image.url);
  if (!bytes)
    refuse_image(image.location,
                 "not base64; expected data:TYPE;base64, and the bytes of an image in base64",
                 "invalid_value");
  return std::move(*bytes);
}

}  // namespace

std::vector<ChatImage> take_images(Json& messages) {
  std::vector<ChatImage> images;
  for (size_t m = 0; m < messages.size(); ++m) {
    const auto content = messages[m].find("content");
    if (content == messages[m].end() || !content->is_array()) continue;
    for (size_t p = 0; p < content->size(); ++p) {
      Json& part = (*content)[p];
      if (!part.contains("image_url")) {
        part = {{"type", "text"}, {"text", part["text"]}};
        continue;
      }
      const std::string location = fmt::format("messages[{}].content[{}].image_url", m, p);
      images.push_back({url_of(part, location), location});
      part = {{"type", "image"}};
      if (images.size() > kMostImages)
        refuse_image(location, fmt::format("too many images; expected at most {}", kMostImages),
                     "out_of_range");
    }
  }
  return images;
}

media::Image ImageDecoder::operator()(size_t index) {
  const ChatImage& one = images_[index];
  const std::string bytes = bytes_of(one);
  try {
    media::Image image = media::decode_image(bytes, one.location);
    pixels_ += image.height * image.width;
    if (pixels_ > media::kMostPixels)
      refuse_image(one.location,
                   fmt::format("the images of the request have more than {} pixels; expected fewer",
                               media::kMostPixels),
                   "out_of_range");
    return image;
  } catch (const Error& error) {
    throw ApiError{400, error.what(), one.location, "invalid_image"};
  }
}

}  // namespace fovea::serve
