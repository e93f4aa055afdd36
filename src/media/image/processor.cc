#include "image/processor.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/settings.h"
#include "fovea/core/excerpt.h"

namespace fovea::media {
namespace {

using Json = nlohmann::json;
constexpr int64_t kMostSide = 16384;

// The defaults of a class of processors: what its files need not say.
struct Defaults {
  const char* name;  // without ImageProcessor or FeatureExtractor
  int64_t side;      // of the resized image
  bool shortest;     // a size that is one number is that of the shorter side
  bool crops;
  Resampling resampling;
  std::array<float, 3> mean, deviation;
};
constexpr std::array<float, 3> kHalf = {0.5f, 0.5f, 0.5f};
// The means and deviations of the images with which Radford et al. 2021 trained.
constexpr std::array<float, 3> kClipMean = {0.48145466f, 0.4578275f, 0.40821073f};
constexpr std::array<float, 3> kClipDeviation = {0.26862954f, 0.26130258f, 0.27577711f};
constexpr Defaults kDefaults[] = {
    {"ViT", 224, false, false, Resampling::bilinear, kHalf, kHalf},
    {"DeiT", 256, false, true, Resampling::bicubic, kHalf, kHalf},
    {"Bit", 224, true, true, Resampling::bicubic, kClipMean, kClipDeviation},
    {"CLIP", 224, true, true, Resampling::bicubic, kClipMean, kClipDeviation},
    {"Siglip", 224, true, false, Resampling::bicubic, kHalf, kHalf},
    {"Llava", 224, true, true, Resampling::bicubic, kClipMean, kClipDeviation},
    {"Idefics3", 364, false, false, Resampling::lanczos, kHalf, kHalf},
    {"SmolVLM", 364, false, false, Resampling::lanczos, kHalf, kHalf},
};
bool makes_tiles(const Defaults& defaults) { return defaults.resampling == Resampling::lanczos; }

const Defaults& defaults_of(const Json& json, const std::string& file) {
  std::string type;
  for (const char* key : {"image_processor_type", "feature_extractor_type"})
    if (type.empty()) type = find_string(json, key, file).value_or("");
  if (type.empty()) return kDefaults[0];
  std::vector<std::string> known;
  for (const Defaults& defaults : kDefaults) {
    for (const char* ending :
         {"ImageProcessor", "ImageProcessorFast", "ImageProcessorPil", "FeatureExtractor"})
      if (type == std::string(defaults.name) + ending) return defaults;
    known.push_back(std::string(defaults.name) + "ImageProcessor");
  }
  fail(ErrorKind::Unsupported, "{}: image_processor_type {} is not known; expected one of {}", file,
       excerpt(type), fmt::join(known, ", "));
}

// Reads a size: a number, {height, width} or {shortest_edge}.
ImageProcessor::Size size_of(const Json& json, const char* key, bool shortest,
                             ImageProcessor::Size absent, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return absent;
  const Json& value = *found;
  if (value.is_number_integer()) {
    const int64_t side = get_int(json, key, file, 1, kMostSide);
    return shortest ? ImageProcessor::Size{0, 0, side} : ImageProcessor::Size{side, side, 0};
  }
  const bool keeps_ratio = value.is_object() && value.contains("shortest_edge");
  if (!value.is_object() || value.size() != (keeps_ratio ? 1 : 2))
    fail(ErrorKind::Unsupported,
         "{}: {} is {}; expected a number, height and width, or shortest_edge", file, key,
         brief(value));
  if (keeps_ratio) return {0, 0, get_int(value, "shortest_edge", file, 1, kMostSide)};
  return {get_int(value, "height", file, 1, kMostSide), get_int(value, "width", file, 1, kMostSide),
          0};
}

// Reads {"longest_edge": N}.
int64_t longest_edge(const Json& json, const char* key, int64_t absent, const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return absent;
  if (!found->is_object() || found->size() != 1 || !found->contains("longest_edge"))
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected longest_edge", file, key, brief(*found));
  return get_int(*found, "longest_edge", file, 1, kMostSide);
}

void read_channels(const Json& json, const char* key, double least, std::array<float, 3>& values,
                   const std::string& file) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return;
  const auto valid = [&](const Json& x) {
    return x.is_number() && std::abs(x.get<double>()) <= 1e6 && x.get<double>() >= least;
  };
  if (!found->is_array() || found->size() != 3 || !std::all_of(found->begin(), found->end(), valid))
    fail(ErrorKind::BadFile, "{}: {} is {}; expected 3 numbers", file, key, brief(*found));
  for (size_t c = 0; c < 3; ++c) values[c] = (*found)[c].get<float>();
}

ImageProcessor processor_of(const Json& json, const std::string& file) {
  refuse_unknown_settings(json, file, "preprocessor_config.json", {});
  const Defaults& defaults = defaults_of(json, file);
  const auto does = [&](const char* key, bool absent) {
    return find_bool(json, key, file).value_or(absent);
  };
  const bool pads = defaults.name == std::string_view("Llava") && does("do_pad", false);
  // All tiles have the same size, so that padding changes nothing.
  if (does("do_pad", false) && !makes_tiles(defaults) && !pads)
    fail(ErrorKind::Unsupported, "{}: do_pad is true; expected false", file);
  const int64_t side = defaults.side;
  // The default of Siglip is a square, although a number in its file is the shorter side.
  const bool keeps_ratio = defaults.shortest && defaults.crops;
  ImageProcessor p;
  p.pads = pads;
  if (makes_tiles(defaults)) {
    const int64_t tile = longest_edge(json, "max_image_size", side, file);
    p.resize = {tile, tile, 0};
    if (does("do_resize", true)) p.longest = longest_edge(json, "size", 4 * side, file);
    p.divides = does("do_image_splitting", true);
  } else {
    p.resize = size_of(
        json, "size", defaults.shortest,
        keeps_ratio ? ImageProcessor::Size{0, 0, side} : ImageProcessor::Size{side, side, 0}, file);
    p.crop = size_of(json, "crop_size", false, {224, 224, 0}, file);
    if (!does("do_resize", true)) p.resize = {};
    if (!does("do_center_crop", defaults.crops)) p.crop = {};
  }
  if (p.crop.shortest > 0 || p.height() == 0)
    fail(ErrorKind::Unsupported,
         "{}: the images keep different sizes; expected a size of height and width, or "
         "do_center_crop with crop_size",
         file);
  const auto resampling = find_int(json, "resample", file, 0, 5);
  p.resampling = resampling ? static_cast<Resampling>(*resampling) : defaults.resampling;
  p.factor = find_float(json, "rescale_factor", file, 0, 1e6).value_or(1 / 255.0);
  if (!does("do_rescale", true)) p.factor = 1;
  p.mean = defaults.mean, p.deviation = defaults.deviation;
  read_channels(json, "image_mean", -1e6, p.mean, file);
  read_channels(json, "image_std", 1e-6, p.deviation, file);
  if (!does("do_normalize", true)) p.mean = {0, 0, 0}, p.deviation = {1, 1, 1};
  return p;
}

// Reads the pretrained_cfg of timm, whose older files have its keys beside the architecture.
ImageProcessor timm_processor(const Json& config, const std::string& file) {
  const Json json = config.value("pretrained_cfg", config);
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: pretrained_cfg is not an object; expected one", file);
  const auto size = json.find("input_size");
  const bool valid = size != json.end() && size->is_array() && size->size() == 3 &&
                     std::all_of(size->begin(), size->end(), [](const Json& x) {
                       return x.is_number_integer() && x >= 1 && x <= kMostSide;
                     });
  if (!valid || (*size)[1] != (*size)[2])
    fail(ErrorKind::Unsupported, "{}: input_size is {}; expected channels and a square", file,
         size == json.end() ? "missing" : brief(*size));
  const auto side = (*size)[1].get<int64_t>();
  const double share = find_float(json, "crop_pct", file, 0.01, 1).value_or(0.875);
  if (const std::string mode = find_string(json, "crop_mode", file).value_or("center");
      mode != "center")
    fail(ErrorKind::Unsupported, "{}: crop_mode is {}; expected center", file, excerpt(mode));
  constexpr const char* kFilters[] = {"nearest", "lanczos", "bilinear",
                                      "bicubic", "box",     "hamming"};
  const std::string filter = find_string(json, "interpolation", file).value_or("bicubic");
  const auto found = std::find(std::begin(kFilters), std::end(kFilters), filter);
  if (found == std::end(kFilters))
    fail(ErrorKind::Unsupported, "{}: interpolation is {}; expected one of {}", file,
         excerpt(filter), fmt::join(kFilters, ", "));
  ImageProcessor p;
  p.resize = {0, 0, static_cast<int64_t>(std::floor(static_cast<double>(side) / share))};
  p.crop = {side, side, 0};
  p.rounds = true;
  p.resampling = static_cast<Resampling>(found - std::begin(kFilters));
  p.mean = {0.485f, 0.456f, 0.406f}, p.deviation = {0.229f, 0.224f, 0.225f};  // ImageNet's
  read_channels(json, "mean", -1e6, p.mean, file);
  read_channels(json, "std", 1e-6, p.deviation, file);
  return p;
}

}  // namespace

ImageProcessor ImageProcessor::open(const std::string& folder) {
  const std::string own = folder + "/preprocessor_config.json";
  const std::string shared = folder + "/processor_config.json";
  const std::string model = folder + "/config.json";
  if (!is_file(own) && !is_file(shared) && is_file(model))
    if (const Json config = read_json(model); config.is_object() && config.contains("architecture"))
      return timm_processor(config, model);
  const bool together = !is_file(own) && is_file(shared);
  const std::string& file = together ? shared : own;
  if (!together && !is_file(own))
    fail(ErrorKind::BadFile,
         "{}: not found; expected it to say how images are resized and normalised", own);
  Json json = read_json(file);
  if (together && json.is_object()) json = json.value("image_processor", Json());
  if (!json.is_object())
    fail(ErrorKind::BadFile, "{}: not an object{}; expected keys and values in braces", file,
         together ? " (image_processor)" : "");
  return processor_of(json, file);
}

std::string ImageProcessor::json() const {
  const auto size = [](const Size& s) {
    return s.shortest > 0 ? nlohmann::ordered_json{{"shortest_edge", s.shortest}}
                          : nlohmann::ordered_json{{"height", s.height}, {"width", s.width}};
  };
  nlohmann::ordered_json written = {
      {"image_processor_type", crop.empty() ? "ViTImageProcessor" : "CLIPImageProcessor"},
      {"do_resize", !resize.empty()}};
  if (!resize.empty()) written["size"] = size(resize);
  written["resample"] = static_cast<int>(resampling);
  written["do_center_crop"] = !crop.empty();
  if (!crop.empty()) written["crop_size"] = size(crop);
  written["do_rescale"] = true;
  written["rescale_factor"] = factor;
  written["do_normalize"] = true;
  written["image_mean"] = mean;
  written["image_std"] = deviation;
  return pretty(written);
}

Image ImageProcessor::fitted(const Image& given, const std::string& name) const {
  std::array<uint8_t, 3> colour = {};
  for (size_t c = 0; c < 3; ++c)
    colour[c] = static_cast<uint8_t>(std::clamp(255 * double{mean[c]}, 0.0, 255.0));
  const Image padded = pads ? padded_to_square(given, colour, name) : Image();
  const Image& image = pads ? padded : given;
  int64_t H = image.height, W = image.width;
  if (resize.shortest > 0) {
    const int64_t least = std::min(H, W), most = std::max(H, W);
    const auto longer = static_cast<int64_t>(static_cast<double>(resize.shortest * most) /
                                             static_cast<double>(least));
    H = image.height > image.width ? longer : resize.shortest;
    W = image.height > image.width ? resize.shortest : longer;
  } else if (resize.height > 0) {
    H = resize.height, W = resize.width;
  }
  const Image sized = resized_within_limit(image, H, W, resampling, name);
  return crop.empty() ? sized : centre_of(sized, crop.height, crop.width, rounds);
}

void ImageProcessor::normalise(const Image& image, float* pixels) const {
  const int64_t count = image.height * image.width;
  for (size_t c = 0; c < 3; ++c) {
    std::array<float, 256> values;
    for (size_t v = 0; v < values.size(); ++v)
      values[v] = (static_cast<float>(static_cast<double>(v) * factor) - mean[c]) / deviation[c];
    float* to = pixels + static_cast<int64_t>(c) * count;
    for (int64_t i = 0; i < count; ++i)
      to[i] = values[image.pixels[static_cast<size_t>(3 * i) + c]];
  }
}

}  // namespace fovea::media
