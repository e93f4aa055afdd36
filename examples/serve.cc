// Serves many prompts at once: each line of standard input is a request, and the answers are
// written as they end. The engine computes the tokens of all requests in the same passes.
//   usage: serve MODEL < PROMPTS

#include <fovea/infer/engine.h>

#include <condition_variable>
#include <iostream>
#include <mutex>
#include <string>

using namespace fovea;

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: serve MODEL < PROMPTS\n";
    return 2;
  }
  try {
    const model::Model model = model::Model::open(argv[1], model::WeightPrecision::stored);
    std::mutex mutex;
    std::condition_variable ended;
    int open = 0;
    infer::Engine engine(model);
    infer::GenerateOptions options = infer::generation_defaults(model);
    options.max_tokens = 40;
    for (std::string prompt; std::getline(std::cin, prompt);) {
      const std::lock_guard lock(mutex);
      const auto sink = [&, prompt](const infer::Event& event) {  // on the engine's thread
        if (event.finished == nullptr && event.error == nullptr) return true;
        const std::lock_guard guard(mutex);
        std::cout << prompt << " -> " << (event.error ? event.error->what() : event.finished->text)
                  << "\n";
        --open;
        ended.notify_one();
        return true;
      };
      if (engine.submit(infer::prompt_ids(model, prompt), options, sink) > 0)
        ++open;
      else
        std::cerr << "too many requests: " << prompt << "\n";
    }
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return open == 0; });
  } catch (const Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
