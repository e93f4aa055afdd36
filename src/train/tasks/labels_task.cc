#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "data/labelled.h"
#include "data/task_tokenizer.h"
#include "fovea/excerpt.h"
#include "train/tasks/examples_task.h"
#include "train/tasks/label_examples.h"
#include "train/tasks/special_tokens.h"

namespace fovea {
namespace {

constexpr int64_t kUsualText = 64;  // estimated tokens per text, for the plan

// Predicts the label of a text, or of each word.
class LabelsTask : public ExamplesTask {
 public:
  LabelsTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose), training_(read_labelled(options.labels)) {
    names_ = label_names(training_);
    if (purpose == Purpose::measure) return;
    check(names_.size() >= 2, "{}: has only one label, \"{}\"; expected at least two",
          options.labels.front(), names_.front());
    if (!options.validation_labels.empty()) {
      validation_ = read_labelled(options.validation_labels);
      check_field(validation_.by_word == training_.by_word, "validation_labels",
                  "has one label per {}, but `labels` has one per {}; expected the same kind",
                  validation_.by_word ? "word" : "text", training_.by_word ? "word" : "text");
    } else {
      hold_out();
    }
  }

  Tokenizer make_tokenizer(const Spec& spec) override {
    const EachText texts = [this](const auto& use) {
      for (const LabelledText& row : training_.rows) {
        for (const std::string* text : {&row.text, &row.pair})
          if (!text->empty()) use(*text);
        if (!row.words.empty()) use(fmt::format("{}", fmt::join(row.words, " ")));
      }
    };
    return make_task_tokenizer(TokenizerUse::masking, texts, options_.tokenizer, spec.context);
  }

  void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
             const Say& say) override {
    check_field(
        !(spec.encoder && spec.decoder) && spec.input.kind == InputKind::tokens, "labels",
        "the model is not a text encoder or decoder; expected an encoder or a decoder-only model "
        "for text");
    const HeadKind kind = training_.by_word ? HeadKind::token : HeadKind::sequence;
    if (spec.head.kind == kind && takes_over(origin.labels)) return;
    const bool fresh = origin.family == nullptr;
    if (fresh) set_padding(spec, tokenizer);
    const Family& family = fresh ? family_of_new(spec, tokenizer) : *origin.family;
    const std::string before = write_spec(spec);
    spec.head = head_of(family, spec, kind, std::ssize(names_));
    if (fresh) return;
    if (write_spec(spec) == before) {
      say(fmt::format("the head's {} outputs get new labels", names_.size()));
    } else {
      say(fmt::format("a new head for {} labels", names_.size()));
    }
  }

  std::vector<std::string> labels() const override { return names_; }

  PassSize pass_size(const Spec& spec) const override {
    return {options_.batch, std::min(spec.context, kUsualText)};
  }

  std::unique_ptr<Examples> examples(const Spec& spec, const TranslationTokenizers& tokenizers,
                                     const Origin&, bool, const Say& say) override {
    const Tokenizer& tokenizer = tokenizers.source;
    context_ = options_.length > 0 ? std::min(options_.length, spec.context) : spec.context;
    if (training_.empty + validation_.empty > 0)
      say(fmt::format("{} empty texts are skipped", training_.empty + validation_.empty));
    LabelledTokens learnt = tokenized(training_, tokenizer), held_out = learnt;
    if (purpose_ == Purpose::train) {
      held_out = tokenized(validation_, tokenizer);
      SpecialNames names(tokenizer);
      for (const LabelledText& row : training_.rows) {
        for (const std::string* text : {&row.text, &row.pair}) names.add(*text);
        for (const std::string& word : row.words) names.add(word);
      }
      say_names(names, say);
    }
    if (cut_ > 0) say(fmt::format("{} texts are truncated to {} tokens", cut_, context_));
    auto examples = std::make_unique<LabelExamples>(std::move(learnt), std::move(held_out),
                                                    options_.batch, spec, options_.seed);
    examples->hash = training_.hash ^ validation_.hash;
    return examples;
  }

  EvaluationTask evaluation() const override { return evaluation_task("labels"); }

 private:
  // Holds out evenly spaced texts, since files of labelled texts are often sorted by label.
  void hold_out() {
    std::vector<LabelledText> kept;
    const double share = options_.validation;
    const auto before = [&](size_t i) { return std::floor(static_cast<double>(i) * share); };
    for (size_t i = 0; i < training_.rows.size(); ++i) {
      auto& rows = before(i + 1) > before(i) ? validation_.rows : kept;
      rows.push_back(std::move(training_.rows[i]));
    }
    training_.rows = std::move(kept);
    validation_.by_word = training_.by_word;
  }

  // Uses the labels of the checkpoint if they include those of the data; returns whether they do.
  bool takes_over(const std::vector<std::string>& known) {
    const bool all = std::all_of(names_.begin(), names_.end(), [&](const std::string& name) {
      return std::find(known.begin(), known.end(), name) != known.end();
    });
    if (all) names_ = known;
    return all;
  }

  int32_t number_of(const std::string& label) const {
    const auto at = std::find(names_.begin(), names_.end(), label);
    if (at == names_.end()) {
      fail_field(ErrorKind::BadFile, "validation_labels",
                 "the label \"{}\" is not in `labels`; expected one of {}", excerpt(label),
                 fmt::join(names_.begin(),
                           names_.begin() + std::min<std::ptrdiff_t>(9, std::ssize(names_)), ", "));
    }
    return static_cast<int32_t>(at - names_.begin());
  }

  LabelledTokens tokenized(const LabelledTexts& texts, const Tokenizer& tokenizer) {
    LabelledTokens tokens;
    for (const LabelledText& row : texts.rows) {
      Encoding found = texts.by_word ? words_of(row, tokenizer) : text_of(row, tokenizer);
      std::vector<int32_t> labels =
          texts.by_word ? labels_of(row, found) : std::vector<int32_t>{number_of(row.label)};
      if (std::ssize(found.ids) > context_) cut(found, labels, texts.by_word);
      tokens.ids.add(found.ids);
      tokens.types.add(found.type_ids);
      tokens.labels.add(labels);
    }
    return tokens;
  }

  static Encoding text_of(const LabelledText& row, const Tokenizer& tokenizer) {
    const EncodingOptions options{.truncate_and_pad = false};
    return row.pair.empty() ? tokenizer.encoding(row.text, options)
                            : tokenizer.encoding(row.text, row.pair, options);
  }

  static Encoding words_of(const LabelledText& row, const Tokenizer& tokenizer) {
    return tokenizer.encoding(fmt::format("{}", fmt::join(row.words, " ")),
                              {.truncate_and_pad = false});
  }

  // Returns the label of each token: the first token of a word has the word's label; other tokens
  // have -1, no label.
  std::vector<int32_t> labels_of(const LabelledText& row, const Encoding& found) const {
    std::vector<int32_t> labels(found.ids.size(), -1);
    size_t token = 0, begin = 0;
    for (size_t word = 0; word < row.words.size(); ++word) {
      const size_t end = begin + row.words[word].size();
      while (token < labels.size() &&
             (found.special_mask[token] != 0 || found.byte_offsets[token].end <= begin))
        ++token;
      if (token < labels.size() && found.byte_offsets[token].begin < end)
        labels[token++] = number_of(row.labels[word]);
      begin = end + 1;
    }
    return labels;
  }

  // Truncates a text, but keeps its last token: a model may expect a special token at the end.
  void cut(Encoding& found, std::vector<int32_t>& labels, bool by_word) {
    ++cut_;
    const auto last = static_cast<size_t>(context_) - 1;
    found.ids[last] = found.ids.back();
    found.ids.resize(last + 1);
    found.type_ids.resize(last + 1);
    if (!by_word) return;
    labels.resize(last + 1);
    labels[last] = -1;
  }

  LabelledTexts training_, validation_;
  std::vector<std::string> names_;
  int64_t context_ = 0, cut_ = 0;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_labels_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose) {
  return std::make_unique<LabelsTask>(options, purpose);
}

}  // namespace fovea
