#pragma once

#include "fovea/spec.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea {

// Converts an image or a spectrogram to the input of an encoder's first layer.
struct Input {
  InputSpec spec;
  Linear patch;           // [C, channels * patch * patch]
  Parameter class_token;  // [1, C]
  Linear narrow, wide;    // convolutions over 3 frames, stride 1 and 2: [C, bins * 3], [C, C * 3]

  Input() = default;
  Input(const InputSpec& spec, int64_t width);

  // pixels [B, channels, size, size] or a mel spectrogram [B, bins, 2 * frames] -> [B, T, C], f32
  Tensor operator()(const Tensor& x, DType compute) const;
  int64_t length() const;  // T

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    patch.each(f, name + ".patch");
    visit(f, name + ".class", class_token);
    narrow.each(f, name + ".convolution.0");
    wide.each(f, name + ".convolution.1");
  }
};

}  // namespace fovea
