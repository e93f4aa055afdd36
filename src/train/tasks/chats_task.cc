#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "cache/mixers.h"
#include "chat/builtin_templates.h"
#include "data/conversations.h"
#include "families/directory.h"
#include "train/tasks/conversation_text.h"
#include "train/tasks/examples_task.h"
#include "train/tasks/packed_examples.h"
#include "train/tasks/special_tokens.h"

namespace fovea {
namespace {

constexpr int64_t kLongestChat = 1024;  // default limit of a row, as for plain text

// Predicts the answers of conversations.
class ChatsTask : public ExamplesTask {
 public:
  ChatsTask(const TrainOptions& options, Purpose purpose) : ExamplesTask(options, purpose) {
    check_field(purpose == Purpose::measure || !template_folder().empty(), "from",
                "not given, but {} holds conversations; expected the model to fine-tune",
                options.data.front());
    data_ = read_conversations(options.data);
    if (!options.validation_chats.empty()) {
      validation_ = read_conversations(options.validation_chats);
      // Without validation data, the hash is that of the data alone.
      data_.hash ^= hash_bytes(fmt::format("validation {}", validation_.hash));
    }
  }

  Tokenizer make_tokenizer(const Spec&) override { return Tokenizer::open(options_.tokenizer); }

  std::vector<std::string> needed_tokens() const override {
    const BuiltinTemplate* const builtin = find_builtin_template(options_.chat_template);
    return builtin == nullptr ? std::vector<std::string>() : builtin->tokens;
  }

  void shape(Spec& spec, const Tokenizer& tokenizer, const Origin&, const Say& say) override {
    check_field(spec.decoder && !spec.encoder && spec.head.kind == HeadKind::language_model,
                "objective",
                "chats does not suit the model; expected a decoder with a language-model head");
    for (int64_t layer = 0; layer < spec.decoder->layers; ++layer) {
      check_field(!is_recurrent(*spec.decoder, layer), "objective",
                  "chats does not suit recurrent layers, whose state continues in the next text of "
                  "a row; expected a model without them");
    }
    chat_ = open_chat(options_.chat_template, template_folder(), tokenizer);
    render(spec, tokenizer, say);
  }

  PassSize pass_size(const Spec&) const override { return {options_.batch, row_}; }

  std::unique_ptr<Examples> examples(const Spec& spec, const TranslationTokenizers& tokenizers,
                                     const Origin&, bool, const Say&) override {
    const int32_t padding = static_cast<int32_t>(
        spec.padding >= 0 ? spec.padding : end_id(tokenizers.source).value_or(0));
    auto examples = std::make_unique<PackedExamples>(
        std::move(training_), std::move(held_out_), groups_,
        PackedOptions{
            .length = row_, .batch = options_.batch, .seed = options_.seed, .padding = padding});
    examples->hash = data_.hash ^ hash_bytes(source());
    return examples;
  }

  EvaluationTask evaluation() const override { return evaluation_task("chats"); }

  void write_fixed_files(const std::string& folder) const override {
    ExamplesTask::write_fixed_files(folder);
    if (chat_) write_file_atomically(folder + "/chat_template.jinja", source());
  }

  // Generation stops at the tokens that end answers.
  void write_model(const std::string& folder, Transformer& model) const override {
    const std::optional<int32_t> end = setting().tokenizers.source.eos_id();
    if (options_.lora.rank > 0) {
      ExamplesTask::write_model(folder, model);
      const nlohmann::ordered_json written = {{"eos_token_id", ends(setting().origin)}};
      return write_file_atomically(folder + "/generation_config.json", written.dump(2) + "\n");
    }
    Origin origin = setting().origin;
    if (const std::vector<int32_t> all = ends(origin); !ends_.empty()) {
      origin.generation =
          nlohmann::ordered_json::parse(generation_config_json(model.spec, origin, end));
      auto& written = origin.generation["eos_token_id"];
      written = all;
      if (all.size() == 1) written = all[0];
    }
    save_model_files(folder, model, end, origin);
  }

  std::vector<ExamplePart> example() const { return example_; }

 protected:
  SamplePrompt sample_prompt(const Transformer& model) const override {
    if (std::ssize(prompt_) >= model.spec.context) return {};
    return {prompt_, ends(setting().origin)};
  }

 private:
  // The texts of a part, before they are packed.
  struct Rendered {
    std::vector<TrainedText> texts;
    std::vector<size_t> files;
  };

  // Returns the model whose template is used: a new model has that of its teacher.
  const std::string& template_folder() const {
    return options_.from.empty() ? options_.distillation.teacher : options_.from;
  }

  // Returns the text of the template, or an empty string without a template.
  std::string source() const { return chat_ ? chat_->choose({}).source() : std::string(); }

  int64_t longest_row(const Spec& spec) const {
    return std::min(spec.context, options_.length > 0 ? options_.length : kLongestChat);
  }

  // Converts the records to tokens. Without validation data, evenly spaced records are held out,
  // with all their texts.
  void render(const Spec& spec, const Tokenizer& tokenizer, const Say& say) {
    const ConversationText text(chat_, tokenizer, options_.train_on);
    const auto before = [&](size_t i) {
      return std::floor(static_cast<double>(i) * options_.validation);
    };
    Rendered training, held_out;
    SpecialNames names(tokenizer);
    bool prompted_held_out = false;
    const auto add = [&](const Conversation& record, bool held) {
      for (const auto& message : record.messages) names.add(message.json);
      bool kept = false;
      for (TrainedText& made : text.texts(record)) {
        find_ends(made, tokenizer);
        kept |= keep(std::move(made), record.file, longest_row(spec), held ? held_out : training);
      }
      if (!kept || !(prompt_.empty() || (held && !prompted_held_out))) return;
      prompt_ = text.prompt(record);
      prompted_held_out = held;
    };
    const bool separate = !validation_.records.empty(), measured = purpose_ == Purpose::measure;
    for (size_t i = 0; i < data_.records.size(); ++i)
      add(data_.records[i], measured || (!separate && before(i + 1) > before(i)));
    for (const Conversation& record : validation_.records) add(record, true);
    report(longest_row(spec), say);
    say_names(names, say);
    if (purpose_ == Purpose::measure) training = held_out;
    if (training.texts.empty())
      fail(ErrorKind::BadFile, "{}: contains no text with a trained token; expected answers",
           data_.files.front().path);
    finish(training, held_out, longest_row(spec), tokenizer);
  }

  // Adds a text to a part, unless it is too long or nothing is trained. Returns whether it does.
  bool keep(TrainedText text, size_t file, int64_t longest, Rendered& part) {
    if (std::ssize(text.ids) > longest) {
      ++long_;
      if (options_.too_long == TooLong::skip) return false;
      text.ids.resize(static_cast<size_t>(longest));
      text.trained.resize(static_cast<size_t>(longest));
    }
    // The first token has none before it.
    if (text.ids.size() < 2 ||
        std::find(text.trained.begin() + 1, text.trained.end(), true) == text.trained.end()) {
      ++untrained_;
      return false;
    }
    part.texts.push_back(std::move(text));
    part.files.push_back(file);
    return true;
  }

  void report(int64_t longest, const Say& say) const {
    if (long_ > 0) {
      say(fmt::format("{} texts with more than {} tokens are {}", long_, longest,
                      options_.too_long == TooLong::cut ? "truncated" : "skipped"));
    }
    if (untrained_ > 0)
      say(fmt::format("{} texts without a trained token are skipped", untrained_));
    if (ends_.empty() && purpose_ == Purpose::train)
      say("no special token ends the trained answers, so the model does not learn to stop");
  }

  void finish(const Rendered& training, const Rendered& held_out, int64_t longest,
              const Tokenizer& tokenizer) {
    row_ = std::min(longest, useful_row(training, held_out));
    for (size_t file = 0, begin = 0, end = 0; file < data_.files.size(); ++file, begin = end) {
      while (end < training.files.size() && training.files[end] == file) ++end;
      groups_.push_back(
          {static_cast<int64_t>(begin), static_cast<int64_t>(end), data_.files[file].weight});
    }
    example_ = parts_of(training.texts.front(), tokenizer);
    add(training.texts, training_);
    add(held_out.texts, held_out_);
  }

  // Returns the length of a row beyond which there is only padding: that of the longest text in
  // training, unless a length is given, and that of all texts together in an evaluation.
  int64_t useful_row(const Rendered& training, const Rendered& held_out) const {
    if (options_.length > 0 && purpose_ == Purpose::train) return options_.length;
    int64_t longest = 0, all = 0;
    for (const auto* part : {&training.texts, &held_out.texts}) {
      for (const TrainedText& text : *part) {
        const int64_t tokens = PackedRows::next_start(std::ssize(text.ids));
        longest = std::max(longest, tokens);
        all += tokens;
      }
    }
    return purpose_ == Purpose::train ? longest : all;
  }

  static void add(const std::vector<TrainedText>& texts, LabelledSequences& all) {
    for (const auto& [ids, trained] : texts) {
      std::vector<int32_t> labels(ids.size(), -1);
      for (size_t i = 1; i < ids.size(); ++i)
        if (trained[i]) labels[i - 1] = ids[i];
      all.ids.add(ids);
      all.labels.add(labels);
    }
  }

  // Adds the special tokens that end the trained parts of a text to ends_.
  void find_ends(const TrainedText& text, const Tokenizer& tokenizer) {
    for (size_t i = 0; i < text.ids.size(); ++i) {
      const bool last = text.trained[i] && (i + 1 == text.ids.size() || !text.trained[i + 1]);
      if (last && tokenizer.is_special(text.ids[i]) &&
          std::find(ends_.begin(), ends_.end(), text.ids[i]) == ends_.end())
        ends_.push_back(text.ids[i]);
    }
  }

  // Returns the tokens at which generation stops: those of the checkpoint, and those that end
  // trained answers.
  std::vector<int32_t> ends(const Origin& origin) const {
    std::vector<int32_t> all = end_ids_of(origin, setting().tokenizers.source);
    for (const int32_t id : ends_)
      if (std::find(all.begin(), all.end(), id) == all.end()) all.push_back(id);
    return all;
  }

  // Divides a text into its trained and its other parts.
  static std::vector<ExamplePart> parts_of(const TrainedText& text, const Tokenizer& tokenizer) {
    std::vector<ExamplePart> parts;
    StreamingDecoder decoder(tokenizer);
    for (size_t i = 0; i < text.ids.size(); ++i) {
      if (i == 0 || text.trained[i] != text.trained[i - 1]) parts.push_back({"", text.trained[i]});
      parts.back().text += decoder.add(text.ids[i]);
    }
    if (!parts.empty()) parts.back().text += decoder.finish();
    return parts;
  }

  Conversations data_, validation_;
  std::optional<ModelChat> chat_;
  LabelledSequences training_, held_out_;
  std::vector<PackedRows::Group> groups_;
  int64_t row_ = 0;  // tokens of a row
  int64_t long_ = 0, untrained_ = 0;
  std::vector<int32_t> ends_;    // special tokens that end trained answers
  std::vector<int32_t> prompt_;  // of the samples
  std::vector<ExamplePart> example_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_chats_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose) {
  return std::make_unique<ChatsTask>(options, purpose);
}

std::vector<ExamplePart> training_example(const TrainOptions& options) {
  check_field(holds_conversations(options.data) || options.objective == Objective::chats, "data",
              "holds no conversations; expected a file of them");
  ChatsTask task(options, ExamplesTask::Purpose::train);
  Spec spec = open_model_files(options.from, Weights::mapped).model.spec;
  const auto unheard = [](const std::string&) {};
  task.shape(spec, with_needed_tokens(Tokenizer::open(options.from), task, unheard), {}, unheard);
  return task.example();
}

}  // namespace fovea
