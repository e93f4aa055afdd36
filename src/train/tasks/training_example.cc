#include "base/fields.h"
#include "data/conversations.h"
#include "data/preferences.h"
#include "train/tasks/conversations_task.h"

namespace fovea {

std::vector<ExamplePart> training_example(const TrainOptions& options) {
  const Objective given = options.objective;
  check_field(holds_conversations(options.data) || preference_form(options.data) ||
                  given == Objective::chats || learns_preferences(given),
              "data", "holds no conversations; expected a file of them");
  ModelFiles files = open_model_files(options.from, Weights::mapped);
  Spec spec = files.model.spec;
  const std::unique_ptr<ExamplesTask> task = open_task(options, spec);
  auto* const talks = dynamic_cast<ConversationsTask*>(task.get());
  check_field(talks != nullptr, "objective", "{} has no conversations; expected chats",
              name_of(given));
  const auto unheard = [](const std::string&) {};
  task->shape(spec, with_needed_tokens(Tokenizer::open(options.from), *task, unheard), files.origin,
              unheard);
  if (talks->example().empty())  // the texts of an encoder-decoder need both tokenizers
    task->load({spec, TranslationTokenizers::open(options.from), files.origin, DType::f32}, true,
               unheard);
  return talks->example();
}

}  // namespace fovea
