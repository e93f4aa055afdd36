#include "serve/chat_pictures.h"

#include <fmt/format.h>

#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "serve/data_url.h"

namespace fovea::serve {
namespace {

constexpr size_t kMostPictures = 64;  // in one request

[[noreturn]] void refuse_picture(const std::string& place, const std::string& what,
                                 const char* code) {
  throw ApiError{400, place + ": " + what, place, code};
}

// {"type": "image_url", "image_url": {"url": ...}}; the inner object may be the URL itself.
std::string url_of(const Json& part, const std::string& place) {
  const Json& value = part["image_url"];
  const Json url = value.is_object() ? value.value("url", Json()) : value;
  if (!url.is_string()) refuse_picture(place, "expected an object with url", "invalid_type");
  const auto& text = url.get_ref<const std::string&>();
  if (!is_data_url(text))
    refuse_picture(
        place,
        fmt::format("the URL begins with {}; expected a data: URL, since pictures are not fetched",
                    excerpt(text.substr(0, 40))),
        "unsupported_url");
  return text;
}

std::string bytes_of(const ChatPicture& picture) {
  auto bytes = data_url_bytes(picture.url);
  if (!bytes)
    refuse_picture(picture.place,
                   "not base64; expected data:TYPE;base64, and the bytes of a picture in base64",
                   "invalid_value");
  return std::move(*bytes);
}

}  // namespace

std::vector<ChatPicture> take_pictures(Json& messages) {
  std::vector<ChatPicture> pictures;
  for (size_t m = 0; m < messages.size(); ++m) {
    const auto content = messages[m].find("content");
    if (content == messages[m].end() || !content->is_array()) continue;
    for (size_t p = 0; p < content->size(); ++p) {
      Json& part = (*content)[p];
      if (!part.contains("image_url")) {
        part = {{"type", "text"}, {"text", part["text"]}};
        continue;
      }
      const std::string place = fmt::format("messages[{}].content[{}].image_url", m, p);
      pictures.push_back({url_of(part, place), place});
      part = {{"type", "image"}};
      if (pictures.size() > kMostPictures)
        refuse_picture(place, fmt::format("too many pictures; expected at most {}", kMostPictures),
                       "out_of_range");
    }
  }
  return pictures;
}

media::Image PictureDecoder::operator()(size_t picture) {
  const ChatPicture& one = pictures_[picture];
  const std::string bytes = bytes_of(one);
  try {
    media::Image image = media::decode_image(bytes, one.place);
    pixels_ += image.height * image.width;
    if (pixels_ > media::kMostPixels)
      refuse_picture(
          one.place,
          fmt::format("the pictures of the request have more than {} pixels; expected fewer",
                      media::kMostPixels),
          "out_of_range");
    return image;
  } catch (const Error& error) {
    throw ApiError{400, error.what(), one.place, "invalid_image"};
  }
}

}  // namespace fovea::serve
