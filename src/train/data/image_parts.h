#pragma once

// The images in records of conversations.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fovea/media/image.h"

namespace fovea::train {

// An image of a message.
struct ImagePart {
  std::string source;    // a file, or a "data:" URI with base64
  std::string location;  // "path:line: messages[0].content[1]"
};

// Where the images of a record are: their paths are relative to the folder.
struct ImageFolder {
  std::string path, location;  // location: "path:line"
};

// Returns the image in a part of a content at `key`: {"type": "image"} with "path", "url" or
// "image", or {"type": "image_url", "image_url": {"url": ...}}; nothing for another part. Throws
// BadFile if it names no image, or one that would have to be fetched.
std::optional<ImagePart> image_part(const nlohmann::ordered_json& part, const ImageFolder& folder,
                                    const std::string& key);
// Returns the images under "image" (one) or "images" (a list) of a record, each a text or an image
// part. Throws BadFile.
std::vector<ImagePart> listed_images(const nlohmann::ordered_json& record,
                                     const ImageFolder& folder);

// Returns the parts of a text in which "<image>" marks images. A line break beside a mark is left
// out.
nlohmann::ordered_json parts_of_marked(const std::string& text);

// Reads an image. Throws the errors of decode_image() and read_file(), with the location before
// them; `hash` becomes that of its bytes.
media::Image read_image_part(const ImagePart& image, uint64_t* hash = nullptr);

}  // namespace fovea::train
