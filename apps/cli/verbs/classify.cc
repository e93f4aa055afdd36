#include "fovea/infer/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "cli/command.h"
#include "cli/reports/classified.h"
#include "cli/reports/classify_input.h"
#include "cli/reports/explained.h"
#include "cli/verbs/image_questions.h"
#include "cli/verbs/images.h"
#include "fovea/infer/image_prompt.h"
#include "fovea/model/model_path.h"
#include "fovea/open.h"
#include "jobs/line_job.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

class ClassifyCommand : public Command {
 public:
  ClassifyCommand()
      : Command(
            "classify MODEL [FILE|TEXT...] [OPTIONS]",
            "Predicts what the model's head predicts: the label of each text or pair of texts, "
            "the entities in it, the answer to a question in --context, or the words in the "
            "places of mask tokens. With --labels, a model of natural language inference "
            "chooses among any labels. With --explain, prints what each result rests on: the "
            "tokens' "
            "contributions by several methods, each with a deletion test. Reads the lines of files "
            "or of standard input, or TEXT arguments. A model of images predicts the label of each "
            "image; FILE is then an image, a folder of images, or - for standard input, and "
            "--labels needs a model of images and texts. With --question, such a model that writes "
            "answers, among --labels or in its own words.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_, "model directory"));
    table.add(positionals("FILE|TEXT", {"-i", "--input"},
                          "text file, - for standard input, or a text", arguments_));
    table.add(job_output(out_));
    table.add(choice("--input-format", {},
                     "what a line is: a text, a pair (two texts and a tab between them) or a JSON "
                     "object with text and text_pair, or question and context; automatic = by the "
                     "extension of the file (.tsv, .jsonl), else a text",
                     lines_, {"automatic|auto", "text|txt", "pairs|tsv", "json|jsonl"}));
    add_fields(table, options_,
               {{.field = "raw", .aliases = {"--raw-scores", "--logits"}},
                {.field = "labels", .omitted = true},
                {.field = "hypothesis", .aliases = {"--hypothesis-template"}},
                {.field = "multi_label"},
                {.field = "joining", .aliases = {"--aggregation-strategy"}},
                {.field = "top", .aliases = {"-n", "--top-k"}},
                {.field = "answer_tokens", .aliases = {"--max-answer-len"}},
                {.field = "null_answer", .aliases = {"--handle-impossible-answer"}},
                {.field = "window", .aliases = {"--max-seq-len"}},
                {.field = "overlap", .aliases = {"--doc-stride", "--stride"}},
                {.field = "truncate", .omitted = true}});
    table.add(as("A,B,C", text("--labels", {"--candidate-labels"},
                               "candidate labels, separated by commas, for a model of natural "
                               "language inference",
                               labels_)));
    table.add(as(
        "FILE|TEXT",
        text("--context", {"-c"}, "the text in which the answers to the questions are", context_)));
    table.add(
        text("--question", {}, "question about each image, for a model that writes", question_));
    table.add(mmproj_option(mmproj_));
    table.add(number("--threshold", {},
                     "leave out labels with lower scores; unset: 0.5 if several labels may apply "
                     "to a text, else 0",
                     threshold_, 0, 1));
    table.add(flag("--no-truncate", {},
                   "refuse texts with too many tokens instead of truncating "
                   "them",
                   whole_));
    table.add(choice("--dtype", {}, "precision of the weights; automatic = as stored", weights_,
                     kWeightPrecisions));
    table.add(adapter_option(adapters_));
    add_fields(
        table, explain_,
        explain_spellings(
            {.field = "method", .name = "--explain", .placeholder = "[METHOD]", .implied = "all"}));
    table.show_only({"MODEL", "FILE|TEXT", "--out", "--input-format", "--labels", "--hypothesis",
                     "--multi-label", "--joining", "--context", "--question", "--null-answer",
                     "--top", "--threshold", "--raw", "--dtype", "--explain", "--target"});
  }

  int run(const OptionTable& table) override {
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    options_.truncate = !whole_;
    read_labels();
    check_explain_options(table);
    if (table.given("--question")) return answer_questions(table);
    if (table.given("--mmproj")) throw UsageError("--mmproj: requires --question");
    if (model::reads_images(model_))
      throw UsageError(
          fmt::format("--question: not given; {} answers questions about images", model_));
    if (model_use(model_) == ModelUse::images) return run_on_images(table);
    if (table.given("--context")) {
      context_ = file_or_text(context_);
      if (context_.find_first_not_of(" \t\r\n") == context_.npos)
        throw UsageError("--context: has no text; expected the text that has the answers");
    }
    const infer::Classifier classifier =
        infer::Classifier::open(model_, weight_precision(weights_), adapters_of(adapters_));
    warn(classifier.warnings());
    check_options(classifier, table);
    explaining_ = table.given("--explain");
    set_format(classifier, table);
    const FilesOrTexts input = files_or_texts(arguments_);
    if (!input.texts.empty()) return classify_texts(classifier, input.texts);
    return classify_lines(classifier, table, input.files);
  }

  bool runs_on_ranks(const OptionTable&) const override {
    return files_or_texts(arguments_).texts.empty();
  }

 private:
  // Lines that are sorted by length together; see embed. An explanation takes as long as hundreds
  // of labels.
  static constexpr size_t kLinesAtOnce = 512, kExplainedAtOnce = 8;

  void read_labels() {
    for (size_t begin = 0; begin <= labels_.size() && !labels_.empty();) {
      const size_t end = std::min(labels_.find(',', begin), labels_.size());
      const std::string part = labels_.substr(begin, end - begin);
      const size_t from = part.find_first_not_of(' '), to = part.find_last_not_of(' ');
      if (from == std::string::npos)
        throw UsageError("--labels: \"" + labels_ + "\": expected a label between the commas");
      options_.labels.push_back(part.substr(from, to - from + 1));
      begin = end + 1;
    }
  }

  // Refuses options that are for texts.
  void check_reads_images(const OptionTable& table) const {
    for (const char* option :
         {"--context", "--null-answer", "--joining", "--multi-label", "--out", "--input-format",
          "--no-truncate", "--batch-tokens", "--window", "--overlap", "--explain"})
      if (table.given(option))
        throw UsageError(
            fmt::format("{}: {} is a model of images; expected a model of texts", option, model_));
  }

  int answer_questions(const OptionTable& table) {
    if (model_use(model_) == ModelUse::images)
      throw UsageError(
          fmt::format("--question: {} writes no texts; expected no question, or a "
                      "model of images and texts such as LLaVA",
                      model_));
    const model::Model model =
        open_model(model_, weight_precision(weights_), {}, adapters_of(adapters_), mmproj_);
    if (!infer::reads_images(model))
      throw UsageError(fmt::format(
          "--question: {} reads no images; expected a model that does, or fovea classify MODEL "
          "QUESTION --context TEXT for a question about a text",
          model_));
    check_reads_images(table);
    if (table.given("--hypothesis"))
      throw UsageError("--hypothesis: cannot be combined with --question");
    if (options_.labels.empty() && (options_.top > 1 || options_.raw || table.given("--threshold")))
      throw UsageError(fmt::format("{}: requires --labels with --question", options_.raw ? "--raw"
                                                                            : options_.top > 1
                                                                                ? "--top"
                                                                                : "--threshold"));
    ClassifiedFormat format;
    format.json = json;
    format.top = options_.top;
    format.threshold = table.given("--threshold") ? threshold_ : -kNoLimit;
    return answer_about_images(
        model, arguments_,
        {question_, model_, options_.labels, options_.raw, options_.answer_tokens}, format);
  }

  int run_on_images(const OptionTable& table) {
    check_reads_images(table);
    require(table, false, {"--answer-tokens"}, "--question");
    if (table.given("--hypothesis") && options_.labels.empty())
      throw UsageError("--hypothesis: --labels is not given; expected candidate labels");
    const infer::ImageModel model =
        open_image_model(model_, weight_precision(weights_), adapters_of(adapters_));
    if (!options_.labels.empty() && !model.reads_texts())
      throw UsageError(
          fmt::format("--labels: {} reads no texts; expected a model of images and texts", model_));
    if (options_.labels.empty() && !model.has_labels())
      throw UsageError(fmt::format("{}: the model has no head for labels; expected {}", model_,
                                   model.reads_texts() ? "--labels A,B,C" : "such a model"));
    infer::ImageOptions options;
    options.raw = options_.raw;
    if (table.given("--hypothesis")) options.hypothesis = options_.hypothesis;
    ClassifiedFormat format;
    format.json = json;
    format.top = options_.top > 0 ? options_.top : options_.raw || !options_.labels.empty() ? 0 : 1;
    format.threshold = table.given("--threshold") ? threshold_ : -kNoLimit;
    return classify_images(model, arguments_, options_.labels, options, format);
  }

  // Refuses options of a task that the model does not have.
  void check_options(const infer::Classifier& classifier, const OptionTable& table) const {
    using enum infer::ClassifierTask;
    struct Use {
      const char* option;
      std::vector<infer::ClassifierTask> tasks;
      const char* head;
    };
    static const std::vector<Use> kUses = {
        {"--labels", {texts}, "a model of natural language inference"},
        {"--context", {answers}, "a model that answers questions"},
        {"--null-answer", {answers}, "a model that answers questions"},
        {"--answer-tokens", {answers}, "a model that answers questions"},
        {"--joining", {words}, "a model that labels words"},
        {"--window", {answers, words}, "a model that answers questions or labels words"},
        {"--overlap", {answers, words}, "a model that answers questions or labels words"},
        {"--raw", {texts}, "a model that labels texts"},
        {"--threshold", {texts}, "a model that labels texts"},
        {"--top", {texts, answers, masks}, "a model that labels texts, answers or fills masks"}};
    for (const Use& use : kUses)
      if (table.given(use.option) &&
          std::find(use.tasks.begin(), use.tasks.end(), classifier.task()) == use.tasks.end())
        throw UsageError(
            fmt::format("{}: {} is not such a model; expected {}", use.option, model_, use.head));
    for (const char* option : {"--hypothesis", "--multi-label"})
      if (table.given(option) && !table.given("--labels"))
        throw UsageError(
            fmt::format("{}: --labels is not given; expected candidate labels", option));
    if (table.given("--labels") && options_.raw)
      throw UsageError("--raw: cannot be combined with --labels");
  }

  void set_format(const infer::Classifier& classifier, const OptionTable& table) {
    const bool has_labels = !options_.labels.empty();
    const infer::ScoreFunction function = classifier.score_function();
    const bool several =
        has_labels ? options_.multi_label
                   : function == infer::ScoreFunction::sigmoid && classifier.labels().size() > 1;
    const bool all = options_.raw || (!has_labels && function == infer::ScoreFunction::none);
    format_.json = json;
    format_.top = options_.top > 0 ? options_.top : several || all ? 0 : 1;
    const bool given = table.given("--threshold");
    format_.threshold = given ? threshold_ : several && !all && options_.top == 0 ? 0.5 : -kNoLimit;
  }
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  int classify_texts(const infer::Classifier& classifier,
                     const std::vector<std::string>& texts) const {
    if (!out_.empty()) throw UsageError("--out: cannot be combined with TEXT; expected a file");
    jobs::LineBlock block;
    block.file = "arguments";
    block.lines = texts;
    const jobs::BlockResult result = classified(classifier, block);
    print(result.bytes);
    warn_of_cut(classifier, result.cut, result.first_cut);
    return 0;
  }

  static void warn_of_cut(const infer::Classifier& classifier, int64_t cut,
                          const std::string& first) {
    if (cut > 0)
      note(fmt::format(
          "warning: {} truncated to {} tokens, the first at {}; --no-truncate refuses such lines\n",
          cut == 1 ? "1 line" : fmt::format("{} lines", cut), classifier.max_tokens(),
          printable(first)));
  }

  int classify_lines(const infer::Classifier& classifier, const OptionTable& table,
                     const std::vector<std::string>& files) const {
    jobs::LineJob job;
    job.files = files;
    job.out = out_;
    job.key = decisive_options(table, {"--out", "--batch-tokens", "--threads", "--strict"});
    job.key["model"] = model::model_fingerprint(model_);
    job.key["context"] = hash_text(hash_bytes(context_));
    if (!adapters_.empty()) job.key["adapters"] = identity_of(adapters_of(adapters_));
    job.block_lines = explaining_ ? kExplainedAtOnce : kLinesAtOnce;
    const auto done = jobs::run_lines(
        job, [&](const jobs::LineBlock& block) { return classified(classifier, block); });
    if (!done) return stop_requested() ? stop_code() : 0;
    warn_of_cut(classifier, done->cut, done->first_cut);
    return 0;
  }

  jobs::BlockResult classified(const infer::Classifier& classifier,
                               const jobs::LineBlock& block) const {
    const std::vector<infer::TextInput> inputs = inputs_of(block, static_cast<InputLines>(lines_));
    infer::ClassifyOptions options = options_;
    options.name_of_text = [&](size_t i) { return block.name_of(i); };
    jobs::BlockResult result{{}, 0, 0, ""};
    std::vector<std::vector<study::Explanation>> explained;
    const ShownExplanations shown{explained, explain_, bar_style(!out_.empty())};
    const ShownExplanations* const below = explaining_ ? &shown : nullptr;
    const auto explain_all = [&](const std::vector<infer::TextInput>& texts) {
      if (explaining_) explained = study::explain_results(classifier, texts, explain_, options);
    };
    switch (classifier.task()) {
      case infer::ClassifierTask::texts: {
        const infer::Classifications labels =
            options.labels.empty() ? classifier.classify(inputs, options)
                                   : classifier.classify_by(texts_of(inputs, block), options);
        count(labels, block, result);
        explain_all(inputs);
        result.bytes = explaining_ ? explained_labels_text(labels, shown, block.first, format_)
                                   : labels_text(labels, block.first, format_);
        break;
      }
      case infer::ClassifierTask::words: {
        const auto entities = classifier.find_entities(texts_of(inputs, block), options);
        explain_all(inputs);
        result.bytes = entities_text(entities, block.first, format_, below);
        break;
      }
      case infer::ClassifierTask::answers: {
        const std::vector<infer::Question> questions = questions_of(inputs, block);
        const auto answers = classifier.answer(questions, options);
        explain_all(as_pairs(questions));
        result.bytes = answers_text(answers, block.first, format_, below);
        break;
      }
      case infer::ClassifierTask::masks: {
        const auto masks = classifier.fill_masks(texts_of(inputs, block), options);
        explain_all(inputs);
        result.bytes = masks_text(masks, block.first, format_, below);
        break;
      }
    }
    return result;
  }

  static std::vector<infer::TextInput> as_pairs(const std::vector<infer::Question>& questions) {
    std::vector<infer::TextInput> pairs;
    for (const infer::Question& question : questions)
      pairs.push_back({question.question, question.context});
    return pairs;
  }

  static void count(const infer::Classifications& labels, const jobs::LineBlock& block,
                    jobs::BlockResult& result) {
    for (size_t i = 0; i < labels.cut.size(); ++i) {
      result.tokens += labels.tokens[i];
      if (labels.cut[i] > 0 && result.cut++ == 0) result.first_cut = block.name_of(i);
    }
  }

  static std::vector<std::string> texts_of(const std::vector<infer::TextInput>& inputs,
                                           const jobs::LineBlock& block) {
    std::vector<std::string> texts;
    for (const infer::TextInput& input : inputs) {
      if (input.pair)
        throw Error(ErrorKind::BadFile,
                    block.name_of(texts.size()) + ": has two texts; expected one");
      texts.push_back(input.text);
    }
    return texts;
  }

  std::vector<infer::Question> questions_of(const std::vector<infer::TextInput>& inputs,
                                            const jobs::LineBlock& block) const {
    std::vector<infer::Question> questions;
    for (const infer::TextInput& input : inputs) {
      if (!input.pair && context_.empty())
        throw Error(ErrorKind::BadFile, block.name_of(questions.size()) +
                                            ": has no context; expected --context, or a line with "
                                            "question and context");
      questions.push_back({input.text, input.pair.value_or(context_)});
    }
    return questions;
  }

  std::string model_, out_, labels_, context_, question_, mmproj_;
  std::vector<std::string> adapters_, arguments_;
  infer::ClassifyOptions options_;
  ClassifiedFormat format_;
  double threshold_ = 0;
  int lines_ = 0, weights_ = 0;
  study::ExplainOptions explain_;
  bool whole_ = false, explaining_ = false;
};

}  // namespace

std::unique_ptr<Command> make_classify() { return std::make_unique<ClassifyCommand>(); }

}  // namespace fovea::cli
