#include "loading/image_encoder.h"

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea::model {

int64_t ImageEncoder::tokens() const {
  return connector.tokens(model.input.length() - connector.skipped);
}

Tensor ImageEncoder::operator()(const media::Image& tile) const {
  const NoGradient no_gradient;
  const int64_t S = side();
  check(tile.height == S && tile.width == S, "image: {} x {} pixels; expected {} x {}", tile.width,
        tile.height, S, S);
  Sequence sequence;
  sequence.signal = empty({1, 3, S, S});
  processor.normalise(tile, sequence.signal.data_as<float>());
  return connector(model.encode(sequence, Pass())).to(cpu_device());
}

void move_to(const Device& device, ImageEncoder& encoder) {
  move_to(device, encoder.model);
  const auto move = [&](const std::string&, Parameter& p) { p.value = p.value.to(device); };
  encoder.connector.first.each(move, "first");
  encoder.connector.second.each(move, "second");
}

Linear read_linear(const TensorSource& file, const std::string& name, int64_t out, int64_t in,
                   bool bias, const std::string& path) {
  const auto tensor = [&](const std::string& full, const Shape& shape) {
    const StoredTensor* stored = file.find(full);
    if (stored == nullptr || stored->shape != shape)
      fail(ErrorKind::BadFile, "{}: the connector's tensor {} {}; expected shape {}", path, full,
           stored == nullptr ? "is missing" : "has shape " + describe(stored->shape),
           describe(shape));
    return convert(file.tensor(full), DType::f32);
  };
  Linear layer(in, out, bias);
  layer.weight.value = tensor(name + ".weight", {out, in});
  if (bias) layer.bias.value = tensor(name + ".bias", {out});
  return layer;
}

void check_fit(const ImageEncoder& encoder, const std::string& path) {
  const media::ImageProcessor& p = encoder.processor;
  const InputSpec& input = encoder.model.spec.input;
  if (input.channels != 3)
    fail(ErrorKind::Unsupported, "{}: images have {} channels; expected 3", path, input.channels);
  if (p.height() != input.size || p.width() != input.size)
    fail(ErrorKind::Unsupported,
         "{}: the processor's images have {} x {} pixels; expected {} x {}, the model's "
         "image_size",
         path, p.width(), p.height(), input.size, input.size);
  const int64_t side = input.size / input.patch, square = encoder.connector.square;
  if (square < 1 || side % square != 0)
    fail(ErrorKind::Unsupported,
         "{}: scale_factor is {}, but an image has {} patches on a side; expected a divisor", path,
         square, side);
}

}  // namespace fovea::model
