#include <algorithm>

#include "base/fields.h"
#include "base/hash.h"
#include "data/conversations.h"
#include "data/held_out.h"
#include "fovea/model/model_path.h"
#include "loop/adapters.h"
#include "loop/special_tokens.h"
#include "open/image_text.h"
#include "plan/estimate.h"
#include "tasks/chat_images.h"
#include "tasks/conversations_task.h"
#include "tasks/packed_examples.h"
#include "tasks/student_answers.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

// Of the tensors of the encoder of images, how many copies of its output a pass holds: that of the
// encoder, and those that the connector keeps.
constexpr uint64_t kKeptOutputs = 3;

// Predicts the answers of conversations, which may have images if the model reads them.
class ChatsTask : public ConversationsTask {
 public:
  ChatsTask(const TrainOptions& options, Purpose purpose) : ConversationsTask(options, purpose) {
    check_field(purpose == Purpose::measure || !template_folder().empty(), "from",
                "not given, but {} holds conversations; expected the model to fine-tune",
                options.data.front());
    const std::string base = base_of(options.from);
    if (!base.empty() && model::reads_images(base)) images_from_ = base;
    refuse_with_images();
    const bool images = !images_from_.empty();
    traits_.losses_fall = traits_.measures_steps = !writes();
    data_ = read_conversations(options.data, images);
    if (!options.validation_chats.empty()) {
      validation_ = read_conversations(options.validation_chats, images);
      check_unweighted(validation_.files, "validation_chats");
      // Without validation data, the hash is that of the data alone.
      data_.hash ^= hash_bytes(fmt::format("validation {}", validation_.hash));
    }
  }

  void shape(model::Spec& spec, const text::Tokenizer& tokenizer, const model::Origin&,
             const Say& say) override {
    check_shares_rows(spec, Objective::chats);
    chat_ = open_chat(tokenizer);
    if (!images_from_.empty()) open_images(spec, tokenizer);
    render(spec, tokenizer, say);
  }

  // The connector is trained with the decoder; the encoder of images is not.
  std::vector<model::NamedParameter> own_parameters() const override {
    std::vector<model::NamedParameter> all;
    if (!encoder_ || options_.lora.rank > 0) return all;
    const auto add = [&](const std::string& name, model::Parameter& parameter) {
      all.push_back({name, &parameter});
    };
    encoder_->connector.first.each(add, "connector.first");
    if (encoder_->connector.second.weight.value)
      encoder_->connector.second.each(add, "connector.second");
    return all;
  }

  PlannedWork planned_work() const override;

  PassSize pass_size(const model::Spec&) const override { return {options_.batch, row_}; }
  // With the answers of the student, whose lengths are known when they are written.
  PassSize loaded_size(const model::Spec& spec) const override {
    PassSize size = ConversationsTask::loaded_size(spec);
    if (!student_) return size;
    size.length = std::max(size.length, student_->longest());
    size.outputs = std::max(size.outputs, options_.batch * options_.reinforcement.answer_tokens);
    size.varies = true;
    return size;
  }

  std::unique_ptr<Examples> examples(const model::Spec& spec,
                                     const text::TranslationTokenizers& tokenizers,
                                     const model::Origin& origin, bool, const Say&) override {
    const int32_t padding = static_cast<int32_t>(
        spec.padding >= 0 ? spec.padding : end_id(tokenizers.source).value_or(0));
    auto examples = std::make_unique<PackedExamples>(
        std::move(training_), std::move(held_out_), groups_,
        PackedOptions{
            .length = row_, .batch = options_.batch, .seed = options_.seed, .padding = padding});
    examples->hash = data_.hash ^ hash_bytes(source()) ^ (images_ ? images_->hash() : 0);
    if (writes()) add_student(spec, origin, padding);
    return examples;
  }

  StepLoss backward(const model::Transformer& model, int64_t step) const override {
    if (!student_) return ConversationsTask::backward(model, step);
    const PassOptions options = pass_options();
    const StudentAnswers::Written written = student_->write(
        model, setting().tokenizers.source, options.passes.sum(step), options.passes.at(step));
    StepLoss found =
        backward_by_passes(WithWritten(loaded(), written.batches), step, options,
                           [&](const Batch& batch, const model::Pass& pass, double divisor) {
                             return loss(model, batch, pass, divisor);
                           });
    found.metrics = written.metrics;
    return found;
  }
  std::string first_bad_tensor(model::Transformer& model, int64_t step) const override {
    // The batches of a student are not those of examples.
    // NOLINTNEXTLINE(bugprone-parent-virtual-call)
    return student_ ? TrainingTask::first_bad_tensor(model, step)
                    : ConversationsTask::first_bad_tensor(model, step);
  }

  infer::EvaluationTask evaluation() const override { return infer::evaluation_task("chats"); }

 private:
  // Whether the student writes answers.
  bool writes() const {
    return !options_.distillation.teacher.empty() && options_.distillation.on_policy > 0;
  }

  void add_student(const model::Spec& spec, const model::Origin& origin, int32_t padding) {
    if (prompts_.empty())
      fail(ErrorKind::BadFile,
           "{}: contains no prompt that leaves room for an answer; expected at least one",
           data_.files.front().path);
    infer::GenerationRules rules = infer::rules_of(origin, ends(origin));
    rules.forced_first = rules.forced_last = {};
    student_.emplace(std::move(prompts_), groups_of(data_.files, prompt_files_), std::move(rules),
                     StudentAnswers::Options{.share = options_.distillation.on_policy,
                                             .temperature = options_.distillation.temperature,
                                             .tokens = options_.reinforcement.answer_tokens,
                                             .batch = options_.batch,
                                             .context = spec.context,
                                             .padding = padding,
                                             .seed = options_.seed,
                                             .compute = compute(),
                                             .ranks = options_.ranks});
    generation_bytes_ = student_->bytes(model::Transformer(spec), options_.accumulate);
  }

  // Keeps the part of a training text before its last answer as a prompt.
  void add_prompt(const TrainedText& text, size_t file, int64_t context) {
    size_t begin = text.ids.size();
    while (begin > 0 && !text.trained[begin - 1]) --begin;
    while (begin > 0 && text.trained[begin - 1]) --begin;
    if (begin == 0 || static_cast<int64_t>(begin) >= context) return;
    prompts_.emplace_back(text.ids.begin(), text.ids.begin() + static_cast<int64_t>(begin));
    prompt_files_.push_back(file);
  }

  // The texts of a part, before they are packed.
  struct Rendered {
    std::vector<TrainedText> texts;
    std::vector<std::vector<TextImage>> images;
    std::vector<size_t> files;
  };

  void refuse_with_images() const;
  void open_images(const model::Spec& spec, const text::Tokenizer& tokenizer);
  void write_weights(const std::string& folder, model::Transformer& model,
                     const model::Origin& origin, std::optional<int32_t> end) const override {
    if (!encoder_) return ConversationsTask::write_weights(folder, model, origin, end);
    model::save_image_text(folder, images_from_, model, encoder_->connector, origin, end);
  }
  SamplePrompt sample_prompt(const model::Transformer& model) const override {
    SamplePrompt prompt = ConversationsTask::sample_prompt(model);
    if (images_ && !prompt.ids.empty()) prompt.images = images_->of_prompt(prompt_images_);
    return prompt;
  }

  // Returns the most tokens of a text. Images take many.
  int64_t limit(const model::Spec& spec) const {
    return images_from_.empty() || options_.length > 0 ? longest_row(spec) : spec.context;
  }

  // Converts the records to tokens. Without validation data, evenly spaced records are held out,
  // with all their texts.
  void render(const model::Spec& spec, const text::Tokenizer& tokenizer, const Say& say) {
    ConversationText text(chat_, tokenizer, options_.train_on);
    if (images_) text.show(images_->shown());
    Rendered training, held_out;
    SpecialNames names(tokenizer);
    bool prompted_held_out = false;
    const auto add = [&](const Conversation& record, bool held) {
      for (const auto& message : record.messages) names.add(message.json);
      bool kept = false;
      for (TrainedText& made : text.texts(record)) {
        find_ends(made, tokenizer);
        if (writes() && !held) add_prompt(made, record.file, spec.context);
        kept |= keep(std::move(made), record, limit(spec), held ? held_out : training);
      }
      if (!kept || !(prompt_.empty() || (held && !prompted_held_out))) return;
      prompt_ = text.prompt(record);
      if (images_) prompt_images_ = images_->find(record, prompt_);
      prompted_held_out = held;
    };
    const bool separate = !validation_.records.empty(), measured = purpose_ == Purpose::measure;
    for (int64_t i = 0; i < std::ssize(data_.records); ++i) {
      const bool held = !separate && is_held_out(i, options_.validation);
      add(data_.records[static_cast<size_t>(i)], measured || held);
    }
    for (const Conversation& record : validation_.records) add(record, true);
    if (purpose_ == Purpose::train)
      say(fmt::format("the first record ({}) is {}", data_.records.front().location,
                      summary_of(data_.records.front())));
    report(limit(spec), say);
    if (images_ && purpose_ == Purpose::train) report_images(say);
    say_names(names, say);
    if (purpose_ == Purpose::measure) training = held_out;
    if (training.texts.empty())
      fail(ErrorKind::BadFile, "{}: contains no text with a trained token; expected answers",
           data_.files.front().path);
    finish(training, held_out, limit(spec), tokenizer);
  }

  // Adds a text to a part, unless it is too long or nothing is trained. Returns whether it does.
  bool keep(TrainedText text, const Conversation& record, int64_t longest, Rendered& part) {
    std::vector<TextImage> images;
    if (images_) images = images_of(record, text);
    if (std::ssize(text.ids) > longest) {
      ++long_;
      if (options_.too_long == TooLong::skip) return false;
      if (!images.empty() && images.back().tokens.back() + encoder_->tokens() > longest) {
        ++cut_images_;
        return false;
      }
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
    part.images.push_back(std::move(images));
    part.files.push_back(record.file);
    return true;
  }

  // Returns the images in a text, whose tokens are not trained.
  std::vector<TextImage> images_of(const Conversation& record, TrainedText& text) const {
    for (size_t i = 0; i < text.ids.size(); ++i)
      if (images_->is_token(text.ids[i])) text.trained[i] = false;
    return images_->find(record, text.ids);
  }

  void report_images(const Say& say) const {
    if (images_->count() > 0)
      say(fmt::format("{} images in {} tiles, each of which takes {} tokens", images_->count(),
                      images_->tiles(), encoder_->tokens()));
    say(options_.lora.rank > 0
            ? "adapters of the decoder are trained; the encoder of images and its connector are not"
            : "the decoder and the connector are trained; the encoder of images is not");
  }

  void report(int64_t longest, const Say& say) const {
    if (long_ > 0) {
      say(fmt::format("{} texts with more than {} tokens are {}", long_, longest,
                      options_.too_long == TooLong::cut ? "truncated" : "skipped"));
    }
    if (cut_images_ > 0)
      say(fmt::format(
          "{} of them are skipped, since an image would be truncated; expected a larger "
          "`length`, at most the context",
          cut_images_));
    if (untrained_ > 0)
      say(fmt::format("{} texts without a trained token are skipped", untrained_));
    if (ends_.empty() && purpose_ == Purpose::train)
      say("no special token ends the trained answers, so the model does not learn to stop");
  }

  void finish(const Rendered& training, const Rendered& held_out, int64_t longest,
              const text::Tokenizer& tokenizer) {
    row_ = std::min(longest, useful_row(training, held_out));
    groups_ = groups_of(data_.files, training.files);
    example_ = parts_of(shown_once(training.texts.front()), tokenizer);
    add(training, training_);
    add(held_out, held_out_);
    for (const auto& images : training.images)
      for (const TextImage& image : images) tiles_ += std::ssize(image.tokens);
  }

  // Returns the text with one token of each tile.
  TrainedText shown_once(const TrainedText& text) const {
    if (!images_) return text;
    TrainedText shown;
    for (size_t i = 0; i < text.ids.size(); ++i) {
      if (i > 0 && images_->is_token(text.ids[i]) && text.ids[i] == text.ids[i - 1]) continue;
      shown.ids.push_back(text.ids[i]);
      shown.trained.push_back(text.trained[i]);
    }
    return shown;
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

  void add(const Rendered& part, LabelledSequences& all) const {
    for (const TrainedText& text : part.texts) {
      all.ids.add(text.ids);
      all.labels.add(labels_of_text(text));
    }
    all.images = images_;
    all.images_of = part.images;
  }

  Conversations data_, validation_;
  std::string images_from_;  // the folder of a model that reads images; empty = it does not
  std::shared_ptr<model::ImageEncoder> encoder_;  // whose connector is trained
  std::shared_ptr<ChatImages> images_;
  std::vector<TextImage> prompt_images_;  // of the samples
  LabelledSequences training_, held_out_;
  std::vector<PackedRows::Group> groups_;
  int64_t row_ = 0;  // tokens of a row
  int64_t long_ = 0, untrained_ = 0, cut_images_ = 0;
  int64_t tiles_ = 0;  // of the images in training
  // If the student writes answers: the prompts until it exists, and the file of each.
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<size_t> prompt_files_;
  std::optional<StudentAnswers> student_;
  uint64_t generation_bytes_ = 0;
};

void ChatsTask::refuse_with_images() const {
  if (images_from_.empty()) return;
  const auto refuse = [&](bool given, const char* field) {
    check_field(!given, field, "given for a model that reads images; expected a run without it");
  };
  refuse(!options_.distillation.teacher.empty(), "teacher");
  refuse(options_.average > 1 && options_.lora.rank == 0, "average");
}

void ChatsTask::open_images(const model::Spec& spec, const text::Tokenizer& tokenizer) {
  check_field(
      tokenizer.size() <= spec.vocabulary, "chat_template",
      "needs tokens that the model lacks, and one that reads images does not grow; expected "
      "a template of its own tokens");
  encoder_ = model::open_image_encoder(images_from_, spec, model::Weights::mapped, {});
  move_to(default_device(), *encoder_);
  for (const model::NamedParameter& own : own_parameters())
    own.parameter->value = copy(own.parameter->value);  // that of the file is read-only
  images_ = std::make_shared<ChatImages>(encoder_, tokenizer);
  images_->read(data_.records);
  images_->read(validation_.records);
  if (!own_parameters().empty()) traits_.measures_steps = false;  // a step changes the connector
}

// The encoder computes each tile forward only.
PlannedWork ChatsTask::planned_work() const {
  constexpr double kForward = 1.0 / 3;  // of the time of a pass: writing it
  if (student_)
    return {.passes_per_step = 1 + kForward * options_.distillation.on_policy,
            .generation_bytes = generation_bytes_};
  if (!encoder_) return {};
  const model::Spec& spec = encoder_->model.spec;
  const int64_t tokens = model::Input(spec.input, spec.width).length();
  const Cost cost = training_cost(spec, 1, tokens, 1, DType::f32);
  const double of_pass = static_cast<double>(tiles_) / loaded().passes_per_epoch();
  PlannedWork work;
  work.other_parameters = model::parameter_count(encoder_->model);
  for (const model::NamedParameter& own : own_parameters())
    work.other_trained += elements(own.parameter->shape);
  work.other_parameters += work.other_trained;
  work.other_bytes = model::weight_bytes(encoder_->model);
  work.other_flops = of_pass * cost.flops_per_step / 3;
  const auto output = static_cast<uint64_t>(tokens * spec.width) * sizeof(float);
  work.other_activation_bytes =
      static_cast<uint64_t>(of_pass + 1) * kKeptOutputs * output +
      cost.activation_bytes / static_cast<uint64_t>(std::max<int64_t>(1, spec.encoder->layers));
  return work;
}

}  // namespace

std::unique_ptr<ExamplesTask> make_chats_task(const TrainOptions& options,
                                              ExamplesTask::Purpose purpose) {
  return std::make_unique<ChatsTask>(options, purpose);
}

}  // namespace fovea::train
