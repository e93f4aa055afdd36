#include "options/open_model.h"

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

Model open_model(const std::string& folder, WeightPrecision precision, CachePrecision cache) {
  Model model = Model::open(folder, precision, cache);
  warn(model.warnings());
  return model;
}

Embedder open_embedder(const std::string& folder, WeightPrecision precision) {
  Embedder embedder = Embedder::open(folder, precision);
  warn(embedder.warnings());
  return embedder;
}

}  // namespace fovea::cli
