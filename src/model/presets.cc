#include "base/error.h"
#include "base/nearest.h"
#include "fovea/spec.h"

namespace fovea {
namespace {

// Pre-norm decoders with learned positions and a tied head, as GPT-2 is (Radford et al. 2019).
Spec gpt(int64_t layers, int64_t heads, int64_t width, int64_t context, float dropout = 0) {
  Spec s;
  s.width = width;
  s.context = context;
  s.decoder->layers = layers;
  s.decoder->attention.heads = heads;
  s.dropout = {dropout, dropout, dropout};
  return s;
}

}  // namespace

std::vector<std::string> preset_names() { return {"tiny", "nano", "baby", "gpt2"}; }

Spec preset(const std::string& name) {
  if (name == "tiny") return gpt(3, 4, 64, 64);
  if (name == "nano") return gpt(4, 4, 128, 64);
  if (name == "baby") return gpt(6, 6, 384, 256, 0.2f);
  if (name == "gpt2") return gpt(12, 12, 768, 1024);
  fail(ErrorKind::InvalidArgument, "--preset: \"{}\" is not a preset; did you mean {}?", name,
       nearest(name, preset_names()));
}

}  // namespace fovea
