// Trains a small character-level GPT on a text file and prints a generated sample.
//
//   cmake: find_package(fovea REQUIRED)  target_link_libraries(train_and_generate fovea::fovea)
//   usage: train_and_generate TEXT DIRECTORY [STEPS]

#include <fovea/core/error.h>
#include <fovea/infer/generate.h>
#include <fovea/train/train.h>

#include <cstdlib>
#include <iostream>

using namespace fovea;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: train_and_generate TEXT DIRECTORY [STEPS]\n";
    return 2;
  }
  try {
    // A Spec describes the model: start from a preset, or set every field.
    model::Spec spec = model::preset("tiny");
    spec.decoder->norm.kind = model::NormKind::rms;
    spec.context = 32;

    train::TrainOptions options = train::preset_training("tiny");
    options.data = {argv[1]};
    options.out = argv[2];
    options.steps = argc > 3 ? std::atoi(argv[3]) : 200;
    train::train(spec, options, {}, [](const train::TrainProgress& now) {
      if (now.step % 50 == 0) std::cerr << "step " << now.step << ": loss " << now.loss << "\n";
      return true;  // false saves a snapshot and stops
    });

    const model::Model model = model::Model::open(options.out);
    infer::GenerateOptions generation;
    generation.max_tokens = 100;
    infer::generate(model, "", generation, [](std::string_view piece) {
      std::cout << piece << std::flush;
      return true;
    });
    std::cout << "\n";
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
