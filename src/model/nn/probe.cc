#include "nn/probe.h"

#include <fmt/format.h>

namespace fovea::model {
namespace {

const char* name_of(ProbePoint::What what) {
  switch (what) {
    using enum ProbePoint::What;
    case embedding: return "embedding";
    case hidden:
    case unnormed: return "hidden";
    case mixer_input: return "mixer_input";
    case query: return "query";
    case key: return "key";
    case value: return "value";
    case latent: return "latent";
    case scores: return "scores";
    case attention: return "attention";
    case heads: return "heads";
    case gates: return "gates";
    case state: return "state";
    case mixer_unnormed: return "mixer_unnormed";
    case mixer_output: return "mixer_output";
    case mixer_sum: return "mixer_sum";
    case hidden_mid: return "hidden_mid";
    case mlp_input: return "mlp_input";
    case mlp_pre: return "mlp_pre";
    case mlp_hidden: return "mlp_hidden";
    case mlp_unnormed: return "mlp_unnormed";
    case mlp_output: return "mlp_output";
    case mlp_sum: return "mlp_sum";
    case logits: return "logits";
  }
  return "";
}

const char* prefix_of(ProbePoint::Stack stack) {
  switch (stack) {
    case ProbePoint::Stack::only: return "";
    case ProbePoint::Stack::encoder: return "encoder_";
    case ProbePoint::Stack::decoder: return "decoder_";
    case ProbePoint::Stack::cross: return "cross_";
  }
  return "";
}

}  // namespace

std::string name_of(const ProbePoint& point) {
  const std::string name = std::string(prefix_of(point.stack)) + name_of(point.what);
  switch (point.what) {
    case ProbePoint::What::embedding:
    case ProbePoint::What::logits: return name;
    case ProbePoint::What::unnormed: return name + ".unnormed";
    default: return fmt::format("{}.{}", name, point.layer);
  }
}

}  // namespace fovea::model
