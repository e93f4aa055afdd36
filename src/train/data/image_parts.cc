#include "data/image_parts.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"

namespace fovea::train {
namespace {

using Record = nlohmann::ordered_json;

constexpr std::string_view kMark = "<image>";
constexpr std::string_view kData = "data:";

[[noreturn]] void refuse(const ImageFolder& folder, const std::string& key, const Record& value,
                         const char* expected) {
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {}", folder.location, key,
       brief(nlohmann::json(value)), expected);
}

ImagePart image_at(const Record& value, const ImageFolder& folder, const std::string& key) {
  if (!value.is_string() || value.get_ref<const std::string&>().empty())
    refuse(folder, key, value, "the path of an image");
  std::string source = value.get<std::string>();
  const std::string location = folder.location + ": " + key;
  if (source.starts_with(kData)) return {source, location};
  if (source.starts_with("file://")) source.erase(0, 7);
  if (source.find("://") != source.npos)
    refuse(folder, key, value, "a file or a data: URI, since nothing is fetched");
  if (!source.starts_with("/")) source = folder.path + "/" + source;
  return {source, location};
}

// Returns the bytes of data:TYPE;base64,BYTES.
std::string bytes_of(const ImagePart& image) {
  const size_t comma = image.source.find(',');
  std::optional<std::string> bytes;
  if (comma != image.source.npos && image.source.substr(0, comma).ends_with(";base64"))
    bytes = from_base64(std::string_view(image.source).substr(comma + 1));
  if (!bytes)
    fail(ErrorKind::BadFile,
         "not base64; expected data:TYPE;base64, and the bytes of an image in base64");
  return std::move(*bytes);
}

}  // namespace

std::optional<ImagePart> image_part(const Record& part, const ImageFolder& folder,
                                    const std::string& key) {
  if (!part.is_object()) return std::nullopt;
  const Record type = part.value("type", Record());
  if (type == Record("image_url")) {
    const Record value = part.value("image_url", Record());
    return image_at(value.is_object() ? value.value("url", Record()) : value, folder,
                    key + ".image_url");
  }
  if (type != Record("image")) return std::nullopt;
  for (const char* name : {"path", "url", "image"})
    if (part.contains(name)) return image_at(part[name], folder, key + "." + name);
  refuse(folder, key, part, "an image with \"path\"");
}

std::vector<ImagePart> listed_images(const Record& record, const ImageFolder& folder) {
  std::vector<ImagePart> images;
  const Record one = record.value("image", Record()), list = record.value("images", Record());
  if (!one.is_null()) images.push_back(image_at(one, folder, "image"));
  if (list.is_null()) return images;
  if (!list.is_array()) refuse(folder, "images", list, "a list of paths");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string key = fmt::format("images[{}]", i);
    const auto part = image_part(list[i], folder, key);
    images.push_back(part ? *part : image_at(list[i], folder, key));
  }
  return images;
}

Record parts_of_marked(const std::string& text) {
  Record parts = Record::array();
  const auto add_text = [&](std::string piece) {
    if (!piece.empty()) parts.push_back({{"type", "text"}, {"text", std::move(piece)}});
  };
  size_t end = 0;
  for (size_t at; (at = text.find(kMark, end)) != text.npos;) {
    std::string before = text.substr(end, at - end);
    if (before.ends_with('\n')) before.pop_back();
    add_text(std::move(before));
    parts.push_back({{"type", "image"}});
    end = at + kMark.size();
    if (text.substr(end, 1) == "\n") ++end;
  }
  add_text(text.substr(end));
  return parts;
}

media::Image read_image_part(const ImagePart& image, uint64_t* hash) try {
  const bool inside = image.source.starts_with(kData);
  const std::string bytes =
      inside ? bytes_of(image) : read_file(image.source, media::kMostImageBytes);
  if (hash != nullptr) *hash = hash_bytes(bytes);
  return media::decode_image(bytes, inside ? "its image" : image.source);
} catch (const Error& error) {
  throw Error(error.kind(), image.location + ": " + error.what());
}

}  // namespace fovea::train
