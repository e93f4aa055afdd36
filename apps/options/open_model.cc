#include "options/open_model.h"

#include <fmt/format.h>

#include <cmath>

#include "base/weighted_path.h"
#include "fovea/doctor.h"
#include "fovea/error.h"
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

Option cache_option(int& value) {
  return choice("--cache-dtype", {"--kv-cache-dtype", "--cache-type"},
                "precision of cached keys and values; automatic = fp32 for fp32 weights, else bf16",
                value, {"automatic|auto", "fp32|float32|f32", "bf16|bfloat16", "int8"});
}

Option adapter_option(std::vector<std::string>& typed) {
  return as("DIR[:WEIGHT]",
            list("--adapter", {"--adapter-path"},
                 "add a low-rank adapter, a directory of PEFT or a .gguf file, times the weight "
                 "(default: 1); may be repeated",
                 typed));
}

std::vector<AdapterUse> adapters_of(const std::vector<std::string>& typed) {
  std::vector<AdapterUse> adapters;
  for (const std::string& value : typed) {
    const auto [path, weight] = split_weight(value);
    if (weight && !std::isfinite(*weight))
      throw UsageError("--adapter: \"" + value + "\": expected a finite weight");
    adapters.push_back({path, weight.value_or(1)});
  }
  return adapters;
}

std::string identity_of(const std::vector<AdapterUse>& adapters) {
  std::string text;
  for (const AdapterUse& use : adapters)
    text += fmt::format("{:016x}:{} ", model_fingerprint(use.folder, false), use.weight);
  return text;
}

Option mmproj_option(std::string& file) {
  return as("FILE",
            text("--mmproj", {},
                 ".gguf file of llama.cpp with an encoder of images for a model of texts", file));
}

Model open_model(const std::string& folder, WeightPrecision precision, CachePrecision cache,
                 const std::vector<AdapterUse>& adapters, const std::string& mmproj) {
  Model model = Model::open(folder, precision, cache, adapters);
  warn(model.warnings());
  return mmproj.empty() ? model : model.with_image_encoder(mmproj, precision);
}

Embedder open_embedder(const std::string& folder, WeightPrecision precision,
                       const std::vector<AdapterUse>& adapters) {
  Embedder embedder = Embedder::open(folder, precision, adapters);
  warn(embedder.warnings());
  return embedder;
}

}  // namespace fovea::cli
