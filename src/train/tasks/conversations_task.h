#pragma once

#include "fovea/text/chat.h"
#include "loop/conversation_text.h"
#include "loop/examples_task.h"

namespace fovea::train {

// A task on conversations that a chat template turns into texts: it writes the template and the
// tokens that end answers into the model, and answers a prompt in samples.
class ConversationsTask : public ExamplesTask {
 public:
  using ExamplesTask::ExamplesTask;

  text::Tokenizer make_tokenizer(const model::Spec&) override {
    return text::Tokenizer::open(options_.tokenizer);
  }
  std::vector<std::string> needed_tokens() const override;
  void write_fixed_files(const std::string& folder) const override;
  // Generation stops at the tokens that end answers.
  void write_model(const std::string& folder, model::Transformer& model) const override;
  std::map<std::string, std::string> snapshot_files(model::Transformer& model) const override;

  std::vector<ExamplePart> example(const text::Tokenizer&) const override { return example_; }

 protected:
  SamplePrompt sample_prompt(const model::Transformer& model) const override;

  // Returns the model whose template is used: a new model has that of its teacher.
  const std::string& template_folder() const {
    return options_.from.empty() ? options_.distillation.teacher : options_.from;
  }
  std::optional<text::ModelChat> open_chat(const text::Tokenizer& tokenizer) const;
  // Returns the text of the template, or an empty string without a template.
  std::string source() const { return chat_ ? chat_->choose({}).source() : std::string(); }
  int64_t longest_row(const model::Spec& spec) const;
  // Throws InvalidArgument, naming the objective, if texts cannot share a row of the model.
  void check_shares_rows(const model::Spec& spec, Objective objective) const;

  // Writes a model that is not an adapter, of which `end` ends texts.
  virtual void write_weights(const std::string& folder, model::Transformer& model,
                             const model::Origin& origin, std::optional<int32_t> end) const {
    model::save_model_files(folder, model, end, origin);
  }

  // Adds the special tokens that end the trained parts of a text to ends_.
  void find_ends(const TrainedText& text, const text::Tokenizer& tokenizer);
  // Divides a text into its trained and its other parts.
  static std::vector<ExamplePart> parts_of(const TrainedText& text,
                                           const text::Tokenizer& tokenizer, int64_t number = 0);

  // Returns the tokens at which generation stops: those of the checkpoint, and those that end
  // trained answers.
  std::vector<int32_t> ends(const model::Origin& origin) const;

  std::optional<text::ModelChat> chat_;
  std::vector<int32_t> ends_;    // special tokens that end trained answers
  std::vector<int32_t> prompt_;  // of the samples
  std::vector<ExamplePart> example_;

 private:
  std::string ends_json() const;  // generation_config.json of adapters
};

}  // namespace fovea::train
