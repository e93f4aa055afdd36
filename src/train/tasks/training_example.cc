#include "base/fields.h"
#include "data/conversations.h"
#include "data/preferences.h"
#include "loop/examples_task.h"
#include "open/directory.h"

namespace fovea::train {

std::vector<ExamplePart> training_example(const TrainOptions& options) {
  const Objective given = options.objective;
  check_field(holds_conversations(options.data) || preference_form(options.data) ||
                  given == Objective::chats || learns_preferences(given) || is_reinforcement(given),
              "data", "holds no conversations; expected a file of them");
  model::ModelFiles files = model::open_model_files(options.from, model::Weights::mapped);
  model::Spec spec = files.model.spec;
  const std::unique_ptr<ExamplesTask> task = open_task(options, spec);
  const auto unheard = [](const std::string&) {};
  const text::Tokenizer tokenizer =
      with_needed_tokens(text::Tokenizer::open(options.from), *task, unheard);
  task->shape(spec, tokenizer, files.origin, unheard);
  std::vector<ExamplePart> example = task->example(tokenizer);
  // The texts of an encoder-decoder may need both tokenizers.
  if (example.empty() && learns_preferences(objective_of(options, spec))) {
    task->load({spec, text::TranslationTokenizers::open(options.from), files.origin, DType::f32},
               true, unheard);
    example = task->example(tokenizer);
  }
  check_field(!example.empty(), "objective", "{} has no conversations; expected chats",
              name_of(given));
  return example;
}

}  // namespace fovea::train
