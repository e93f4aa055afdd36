#include "options/open_model.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/weighted_path.h"
#include "fovea/core/error.h"
#include "fovea/model/hub.h"
#include "fovea/model/model_path.h"
#include "jobs/ranks.h"
#include "terminal/terminal.h"

namespace fovea::cli {

const std::vector<std::string> kWeightPrecisions = {"automatic|auto", "fp32|float32|f32",
                                                    "bf16|bfloat16", "int8", "int4"};

bool strict = false;

void warn(const std::vector<std::string>& warnings) {
  if (strict && !warnings.empty())
    throw Error(ErrorKind::BadFile, warnings[0] + "; expected no warnings (--strict)");
  if (jobs::Ranks::only_helps()) return;
  for (const std::string& warning : warnings) note("warning: " + printable(warning) + "\n");
}

Option cache_option(int& type) {
  return choice("--cache-dtype", {"--kv-cache-dtype", "--cache-type"},
                "precision of cached keys and values; automatic = fp32 for fp32 weights, else bf16",
                type, {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16", "int8"});
}

std::optional<DType> cache_type(int type) {
  constexpr std::optional<DType> kTypes[] = {std::nullopt, DType::f32, DType::bf16, DType::i8};
  return kTypes[type];
}

Option adapter_option(std::vector<std::string>& typed) {
  Option option =
      as("DIR[:WEIGHT]",
         list("--adapter", {"--adapter-path"},
              "add a low-rank adapter, a directory of PEFT or a .gguf file, times the weight "
              "(default: 1); may be repeated",
              typed));
  option.model_in = [](const std::string& value) { return split_weight(value).first; };
  return option;
}

std::vector<model::AdapterUse> adapters_of(const std::vector<std::string>& typed) {
  std::vector<model::AdapterUse> adapters;
  for (const std::string& value : typed) {
    const auto [path, weight] = split_weight(value);
    if (weight && !std::isfinite(*weight))
      throw UsageError("--adapter: \"" + value + "\": expected a finite weight");
    adapters.push_back({model::find_model(path), weight.value_or(1)});
  }
  return adapters;
}

std::string identity_of(const std::vector<model::AdapterUse>& adapters) {
  std::string text;
  for (const model::AdapterUse& use : adapters)
    text += fmt::format("{:016x}:{} ", model::model_fingerprint(use.folder, false), use.weight);
  return text;
}

model::HeadIndex parse_head(const char* option, std::string_view text) {
  model::HeadIndex found;
  const char* const end = text.data() + text.size();
  const auto layer = std::from_chars(text.data(), end, found.layer);
  const bool dot = layer.ec == std::errc() && layer.ptr != end && *layer.ptr == '.';
  const auto head = dot ? std::from_chars(layer.ptr + 1, end, found.head) : layer;
  if (!dot || head.ec != std::errc() || head.ptr != end || found.layer < 0 || found.head < 0)
    throw UsageError(fmt::format("{}: '{}'; expected LAYER.HEAD, such as 3.5", option, text));
  return found;
}

Option mute_option(std::vector<std::string>& typed) {
  return as("LAYER.HEAD",
            list("--mute", {},
                 "set the output of a head of attention to zero, such as 3.5: head 5 of layer 3, "
                 "both counted from 0; in an encoder-decoder of the decoder, of the encoder with "
                 "encoder:3.5, and of cross-attention with cross:3.5; may be repeated",
                 typed));
}

model::Model without_heads(const model::Model& model, const std::vector<std::string>& typed) {
  static constexpr std::pair<std::string_view, model::AttentionKind> kKinds[] = {
      {"encoder:", model::AttentionKind::encoder}, {"cross:", model::AttentionKind::cross}};
  std::vector<model::HeadIndex> muted;
  for (const std::string& text : typed) {
    model::HeadIndex head;
    std::string_view rest = text;
    model::AttentionKind kind = model::AttentionKind::self;
    for (const auto& [name, named] : kKinds)
      if (rest.starts_with(name)) kind = named, rest.remove_prefix(name.size());
    head = parse_head("--mute", rest);
    head.kind = kind;
    muted.push_back(head);
  }
  try {
    return muted.empty() ? model : model.without_heads(muted);
  } catch (const Error& error) {
    throw UsageError(fmt::format("--mute: {}", error.what()));
  }
}

Option mmproj_option(std::string& file) {
  return as("FILE",
            text("--mmproj", {},
                 ".gguf file of llama.cpp with an encoder of images for a model of texts", file));
}

model::Model open_model(const std::string& folder, model::WeightPrecision precision,
                        std::optional<DType> cache, const std::vector<model::AdapterUse>& adapters,
                        const std::string& mmproj) {
  model::Model model = model::Model::open(folder, precision, cache, adapters);
  warn(model.warnings());
  return mmproj.empty() ? model : model.with_image_encoder(mmproj, precision);
}

infer::Embedder open_embedder(const std::string& folder, model::WeightPrecision precision,
                              const std::vector<model::AdapterUse>& adapters) {
  infer::Embedder embedder = infer::Embedder::open(folder, precision, adapters);
  warn(embedder.warnings());
  return embedder;
}

}  // namespace fovea::cli
