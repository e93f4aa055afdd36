// Trains a GPT on the bytes of a text file, and prints a sample of it.
//   usage: gpt TEXT [STEPS]

#include <fovea/core.h>
#include <fovea/nn.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

using namespace fovea;

constexpr int64_t kBatch = 12, kContext = 64, kWidth = 128, kBytes = 256;

int main(int argc, char** argv) try {
  std::ifstream file(argc > 1 ? argv[1] : "");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (std::ssize(text) <= kContext) throw std::runtime_error("usage: gpt TEXT [STEPS]");
  const int steps = argc > 2 ? std::stoi(argv[2]) : 1000;

  model::Spec spec;  // the layers of GPT-2 in small
  spec.vocabulary = kBytes, spec.context = kContext, spec.width = kWidth;
  spec.decoder->layers = 4, spec.decoder->attention.heads = 4;
  const nn::Transformer model(spec, /*seed=*/1);
  nn::Optimizer optimizer(model.parameters());

  Random random(2, Stream::sampling);
  for (int step = 0; step < steps; ++step) {
    std::vector<int32_t> inputs, targets;  // windows of the text, and the byte after each byte
    for (int64_t row = 0; row < kBatch; ++row)
      for (size_t t = random.word() % (text.size() - kContext), n = 0; n < kContext; ++t, ++n) {
        inputs.push_back(static_cast<unsigned char>(text[t]));
        targets.push_back(static_cast<unsigned char>(text[t + 1]));
      }
    const Tensor hidden = model.hidden(tensor_of(inputs, {kBatch, kContext}),
                                       {.compute = DType::bf16, .training = true});
    const Tensor loss = model.loss(hidden, tensor_of(targets, {kBatch, kContext}));
    if (step % 100 == 0) std::cerr << "step " << step << ": loss " << number_of(loss) << "\n";
    backward(loss);
    optimizer.step(1e-3 * (1 - 0.9 * step / steps));  // the learning rate falls to a tenth
  }

  const NoGradient off;
  std::vector<int32_t> ids = {'\n'};
  for (int i = 0; i < 300; ++i) {
    const int64_t T = std::min(std::ssize(ids), kContext);
    const Tensor logits = model.logits(model.hidden(tensor_of(std::span(ids).last(T), {1, T})));
    const auto p = to_floats(softmax(scale(logits, 1 / 0.8f)));  // [1, T, V]
    const float* const last = p.data() + (T - 1) * kBytes;
    int32_t next = 0;  // drawn with its probability
    for (float left = random.uniform(); next < kBytes - 1 && left >= last[next]; ++next)
      left -= last[next];
    ids.push_back(next);
    std::cout << static_cast<char>(next);
  }
  std::cout << "\n";
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
