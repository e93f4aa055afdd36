#pragma once

#include "fovea/model/spec.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea::model {

// Converts an image or a spectrogram to the input of an encoder's first layer.
struct Input {
  InputSpec spec;
  Linear patch;                               // [C, channels * patch * patch]
  Parameter class_token, distillation_token;  // [1, C]
  Parameter registers;                        // [R, C]
  Linear narrow, wide;  // convolutions over 3 frames, stride 1 and 2: [C, bins * 3], [C, C * 3]

  Input() = default;
  Input(const InputSpec& spec, int64_t width);

  // pixels [B, channels, size, size] or a mel spectrogram [B, bins, 2 * frames] -> [B, T, C], f32,
  // without registers
  Tensor operator()(const Tensor& x, DType compute) const;
  int64_t positions() const;                                       // T
  int64_t length() const { return positions() + spec.registers; }  // of the stack's output
  // Inserts the registers after the class tokens.   x [B, T, C], with positions -> [B, T + R, C]
  Tensor with_registers(const Tensor& x) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    patch.each(f, name + ".patch");
    visit(f, name + ".class", class_token);
    visit(f, name + ".distillation", distillation_token);
    visit(f, name + ".registers", registers);
    narrow.each(f, name + ".convolution.0");
    wide.each(f, name + ".convolution.1");
  }
};

}  // namespace fovea::model
