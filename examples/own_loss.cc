// Trains a small model on a text file with a loss of one's own: the focal loss, in which a token
// that is already predicted well counts less (Lin et al. 2017, eq. 4).
//   usage: own_loss TEXT DIRECTORY [STEPS]

#include <fovea/core.h>
#include <fovea/train/train.h>

#include <cstdlib>
#include <iostream>

using namespace fovea;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: own_loss TEXT DIRECTORY [STEPS]\n";
    return 2;
  }
  try {
    train::TrainOptions options = train::preset_training("tiny");
    options.data = {argv[1]};
    options.out = argv[2];
    options.steps = argc > 3 ? std::atoi(argv[3]) : 200;
    options.loss = [](const Tensor& logits, const Tensor& labels) {
      const Tensor log_p = log_probability(logits, labels);  // [rows]
      const Tensor rest = shift(scale(exp(log_p), -1), 1);   // 1 - p
      const Tensor weight = multiply(rest, rest);
      return scale(sum(multiply(weight, log_p)), -1);
    };
    const train::TrainResult result =
        train::train(model::preset("tiny"), options, {}, [](const train::TrainProgress& now) {
          if (now.step % 50 == 0) std::cerr << "step " << now.step << ": loss " << now.loss << "\n";
          return true;
        });
    std::cout << "cross-entropy of held-out text: " << result.best_loss << "\n";
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
