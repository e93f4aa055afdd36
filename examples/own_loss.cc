// Trains a small model on a text file with a loss of one's own: the focal loss, in which a token
// that is already predicted well counts less (Lin et al. 2017, eq. 4).
//   usage: own_loss TEXT DIRECTORY [STEPS]

#include <fovea/core.h>
#include <fovea/train.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: own_loss TEXT DIRECTORY [STEPS]\n";
    return 2;
  }
  try {
    fovea::TrainOptions options = fovea::preset_training("tiny");
    options.data = {argv[1]};
    options.out = argv[2];
    options.steps = argc > 3 ? std::atoi(argv[3]) : 200;
    options.loss = [](const fovea::Tensor& logits, const fovea::Tensor& labels) {
      const fovea::Tensor log_p = fovea::log_probability(logits, labels);               // [rows]
      const fovea::Tensor rest = fovea::shift(fovea::scale(fovea::exp(log_p), -1), 1);  // 1 - p
      const fovea::Tensor weight = fovea::multiply(rest, rest);
      return fovea::scale(fovea::sum(fovea::multiply(weight, log_p)), -1);
    };
    const fovea::TrainResult result =
        fovea::train(fovea::preset("tiny"), options, {}, [](const fovea::TrainProgress& now) {
          if (now.step % 50 == 0) std::cerr << "step " << now.step << ": loss " << now.loss << "\n";
          return true;
        });
    std::cout << "cross-entropy of held-out text: " << result.best_loss << "\n";
  } catch (const fovea::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
