#include "nn/probe.h"

#include <fmt/format.h>

namespace fovea {

std::string name_of(const ProbePoint& point) {
  using What = ProbePoint::What;
  if (point.what == What::cross_attention) return fmt::format("cross_attention.{}", point.layer);
  const char* stack = point.stack == ProbePoint::Stack::encoder   ? "encoder_"
                      : point.stack == ProbePoint::Stack::decoder ? "decoder_"
                                                                  : "";
  if (point.what == What::unnormed) return fmt::format("{}hidden.unnormed", stack);
  return fmt::format("{}{}.{}", stack, point.what == What::hidden ? "hidden" : "attention",
                     point.layer);
}

}  // namespace fovea
