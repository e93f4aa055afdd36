#include "cli/verbs/image_questions.h"

#include <fmt/format.h>

#include "base/math.h"
#include "cli/reports/images.h"
#include "fovea/infer/generate.h"
#include "fovea/infer/image_question.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

std::string labels_line(const model::Model& model, const infer::ImageQuestion& question,
                        const media::Image& image, const std::string& name,
                        const QuestionOptions& options, ClassifiedFormat format) {
  const std::vector<double> logprobs =
      infer::label_logprobs(model, question, image, options.labels, name);
  const std::vector<double> scores = options.raw ? logprobs : infer::probabilities(logprobs);
  infer::Classifications found;
  found.count = 1;
  found.labels = options.labels;
  found.scores.assign(scores.begin(), scores.end());
  format.files = {name};
  return labels_text(found, 0, format);
}

std::string answer_line(const model::Model& model, const infer::ImageQuestion& question,
                        const media::Image& image, const std::string& name,
                        const QuestionOptions& options, bool json) {
  infer::GenerateOptions generate_options;
  generate_options.sampling.temperature = 0;
  generate_options.max_tokens = options.answer_tokens;
  generate_options.logprobs = 0;
  const infer::ImagePrompt prompt = infer::image_prompt(
      model, question.text, 1, [&](size_t) { return image; }, question.special, {name});
  const auto sink = [](std::string_view) { return !stop_requested(); };
  const infer::Generation answer = infer::generate(model, prompt, generate_options, sink).front();
  double logprob = 0;
  for (const infer::TokenLogprob& token : answer.logprobs) logprob += double{token.logprob};
  return image_answer_text(name, answer.text, math::exp(logprob), json);
}

}  // namespace

int answer_about_images(const model::Model& model, const std::vector<std::string>& images,
                        const QuestionOptions& options, const ClassifiedFormat& format) {
  const ImageList list(images);
  const infer::ImageQuestion question = infer::image_question(model, options.folder, options.text);
  catch_signals("");
  for (size_t i = 0; i < list.size(); ++i) {
    if (stop_requested()) return stop_code();
    const media::Image image = list.read(i);
    const std::string& name = list.names()[i];
    const std::string line = options.labels.empty()
                                 ? answer_line(model, question, image, name, options, format.json)
                                 : labels_line(model, question, image, name, options, format);
    if (stop_requested()) return stop_code();
    print(line);
  }
  return 0;
}

}  // namespace fovea::cli
