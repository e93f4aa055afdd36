// Reads a model's hidden states, and steers it: adds the difference between the states of two texts
// to the residual stream while the model continues a third text (Turner et al. 2023).
//   usage: steer MODEL PROMPT TOWARDS AWAY [STRENGTH]

#include <fovea/core.h>
#include <fovea/infer/generate.h>
#include <fovea/nn.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

using namespace fovea;

// Calls use(hidden [1, T, C]) with the hidden states before a layer; it may replace them.
template <class Use>
nn::Pass at_layer(int64_t wanted, Use use) {
  return {.hook =
              [=](std::string_view, int64_t layer, Tensor& hidden) {
                if (layer == wanted) use(hidden);
              },
          .hooked = {"hidden"}};
}

Tensor row_of(const std::vector<int32_t>& ids) { return tensor_of(ids, {1, std::ssize(ids)}); }

// Returns the hidden state of the last token of a text: [C].
std::vector<float> last_state(const model::Model& model, const nn::Transformer& layers,
                              const std::string& text, int64_t layer) {
  std::vector<float> last;
  layers.hidden(row_of(infer::prompt_ids(model, text)), at_layer(layer, [&](Tensor& hidden) {
                  const auto all = to_floats(hidden);
                  last.assign(all.end() - hidden.dim(-1), all.end());
                }));
  return last;
}

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: steer MODEL PROMPT TOWARDS AWAY [STRENGTH]\n";
    return 2;
  }
  try {
    const NoGradient off;
    const model::Model model = model::Model::open(argv[1]);
    const nn::Transformer layers(model);
    const int64_t layer = model.spec().decoder->layers / 2;
    const float strength = argc > 5 ? std::strtof(argv[5], nullptr) : 4;
    std::vector<float> direction = last_state(model, layers, argv[3], layer);
    const std::vector<float> away = last_state(model, layers, argv[4], layer);
    for (size_t c = 0; c < away.size(); ++c) direction[c] = strength * (direction[c] - away[c]);
    const nn::Pass steered = at_layer(layer, [&](Tensor& hidden) {
      hidden = copy(hidden);
      const auto x = hidden.span<float>();
      for (size_t i = 0; i < x.size(); ++i) x[i] += direction[i % direction.size()];
    });

    std::vector<int32_t> ids = infer::prompt_ids(model, argv[2]);
    for (int i = 0; i < 40 && std::ssize(ids) < model.spec().context; ++i) {
      const Tensor logits = layers.logits(layers.hidden(row_of(ids), steered));  // [1, T, V]
      const auto z = to_floats(logits);
      const auto last = z.end() - logits.dim(-1);
      ids.push_back(static_cast<int32_t>(std::max_element(last, z.end()) - last));
    }
    std::cout << model.tokenizer().decode(ids) << "\n";
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
