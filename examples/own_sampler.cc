// A sampler of one's own: eta sampling (Hewitt et al. 2022, section 4), which drops the tokens
// whose probability is below min(epsilon, sqrt(epsilon) exp(-entropy)).
//   usage: own_sampler MODEL PROMPT

#include <fovea/core/error.h>
#include <fovea/infer/generate.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <span>
#include <vector>

using namespace fovea;

void eta_sampling(std::span<float> logits, double epsilon) {
  const double largest = *std::ranges::max_element(logits);
  double sum = 0, entropy = 0;
  for (const float z : logits) sum += std::exp(z - largest);
  const auto log_p = [&](float z) { return z - largest - std::log(sum); };
  for (const float z : logits)
    if (std::isfinite(z)) entropy -= std::exp(log_p(z)) * log_p(z);
  const double least = std::min(epsilon, std::sqrt(epsilon) * std::exp(-entropy));
  for (float& z : logits)
    if (z < largest && std::exp(log_p(z)) < least) z = -std::numeric_limits<float>::infinity();
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: own_sampler MODEL PROMPT\n";
    return 2;
  }
  try {
    const model::Model model = model::Model::open(argv[1], model::WeightPrecision::stored);
    infer::GenerateOptions options;
    options.max_tokens = 100;
    options.sampling = {.temperature = 1, .top_k = 0, .top_p = 1, .seed = 1};  // no other filter
    options.constrain = [](std::span<const int32_t>, std::span<float> logits) {
      eta_sampling(logits, 3e-4);
    };
    std::cout << infer::generate(model, argv[2], options)[0].text << "\n";
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
