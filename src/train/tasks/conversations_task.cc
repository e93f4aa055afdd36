#include "tasks/conversations_task.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "chat/builtin_templates.h"
#include "loop/special_tokens.h"
#include "spec/mixers.h"

namespace fovea::train {
namespace {

constexpr int64_t kLongestChat = 1024;  // default limit of a row, as for plain text

}  // namespace

std::vector<std::string> ConversationsTask::needed_tokens() const {
  const text::BuiltinTemplate* const builtin = text::find_builtin_template(options_.chat_template);
  return builtin == nullptr ? std::vector<std::string>() : builtin->tokens;
}

void ConversationsTask::write_fixed_files(const std::string& folder) const {
  ExamplesTask::write_fixed_files(folder);
  if (chat_) write_file_atomically(folder + "/chat_template.jinja", source());
}

std::string ConversationsTask::ends_json() const {
  const nlohmann::ordered_json written = {{"eos_token_id", ends(setting().origin)}};
  return written.dump(2) + "\n";
}

std::map<std::string, std::string> ConversationsTask::snapshot_files(
    model::Transformer& model) const {
  auto files = ExamplesTask::snapshot_files(model);
  if (!files.empty()) files["generation_config.json"] = ends_json();
  return files;
}

void ConversationsTask::write_model(const std::string& folder, model::Transformer& model) const {
  const std::optional<int32_t> end = setting().tokenizers.source.eos_id();
  if (options_.lora.rank > 0) {
    ExamplesTask::write_model(folder, model);
    return write_file_atomically(folder + "/generation_config.json", ends_json());
  }
  model::Origin origin = setting().origin;
  if (const std::vector<int32_t> all = ends(origin); !ends_.empty()) {
    origin.generation =
        nlohmann::ordered_json::parse(model::generation_config_json(model.spec, origin, end));
    auto& written = origin.generation["eos_token_id"];
    written = all;
    if (all.size() == 1) written = all[0];
  }
  write_weights(folder, model, origin, end);
}

ExamplesTask::SamplePrompt ConversationsTask::sample_prompt(const model::Transformer& model) const {
  if (std::ssize(prompt_) >= model.spec.context) return {};
  return {.ids = prompt_, .ends = ends(setting().origin)};
}

std::optional<text::ModelChat> ConversationsTask::open_chat(
    const text::Tokenizer& tokenizer) const {
  return train::open_chat(options_.chat_template, template_folder(), tokenizer);
}

int64_t ConversationsTask::longest_row(const model::Spec& spec) const {
  return std::min(spec.context, options_.length > 0 ? options_.length : kLongestChat);
}

void ConversationsTask::check_shares_rows(const model::Spec& spec, Objective objective) const {
  check_field(spec.decoder && !spec.encoder && spec.head.kind == model::HeadKind::language_model,
              objective_field(options_),
              "{} does not suit the model; expected a decoder with a language-model head",
              name_of(objective));
  for (int64_t layer = 0; layer < spec.decoder->layers; ++layer) {
    check_field(!model::is_recurrent(*spec.decoder, layer), objective_field(options_),
                "{} does not suit recurrent layers, whose state continues in the next text of "
                "a row; expected a model without them",
                name_of(objective));
  }
}

void ConversationsTask::find_ends(const TrainedText& text, const text::Tokenizer& tokenizer) {
  for (size_t i = 0; i < text.ids.size(); ++i) {
    const bool last = text.trained[i] && (i + 1 == text.ids.size() || !text.trained[i + 1]);
    if (last && tokenizer.is_special(text.ids[i]) &&
        std::find(ends_.begin(), ends_.end(), text.ids[i]) == ends_.end())
      ends_.push_back(text.ids[i]);
  }
}

std::vector<int32_t> ConversationsTask::ends(const model::Origin& origin) const {
  std::vector<int32_t> all = end_ids_of(origin, setting().tokenizers.source);
  for (const int32_t id : ends_)
    if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
  return all;
}

std::vector<ExamplePart> ConversationsTask::parts_of(const TrainedText& text,
                                                     const text::Tokenizer& tokenizer,
                                                     int64_t number) {
  std::vector<ExamplePart> parts;
  text::StreamingDecoder decoder(tokenizer);
  // A text that an encoder reads as a pair has no marks: all of it is scored.
  const auto trained = [&](size_t i) { return text.trained.empty() || text.trained[i]; };
  for (size_t i = 0; i < text.ids.size(); ++i) {
    if (i == 0 || trained(i) != trained(i - 1)) parts.push_back({"", trained(i), number});
    parts.back().text += decoder.add(text.ids[i]);
  }
  if (!parts.empty()) parts.back().text += decoder.finish();
  return parts;
}

}  // namespace fovea::train
