#include "fovea/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/reports/score.h"
#include "cli/reports/similarity.h"
#include "cli/verbs/eval_probe.h"
#include "cli/verbs/eval_tasks.h"
#include "cli/verbs/eval_vectors.h"
#include "cli/verbs/images.h"
#include "fovea/compare.h"
#include "fovea/core/error.h"
#include "fovea/infer/translation_scores.h"
#include "fovea/text/text_lines.h"
#include "jobs/ranks.h"
#include "options/common_options.h"
#include "options/field_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/progress.h"
#include "terminal/signals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 50, kMostColumns = 10;
constexpr size_t kWidest = 30;  // of the names of labels, in characters

// Returns the name, at most kWidest characters of it, filled up with spaces.
std::string cell(const std::string& name, size_t width) {
  const std::string text = printable(name);
  return fmt::format("{:<{}.{}}", text, width, width);
}

std::string confusion_table(const infer::LabelReport& report, size_t width) {
  std::string out = "\n" + cell("label \\ predicted", width);
  for (const infer::LabelScores& label : report.labels)
    out += fmt::format("{:>10.9}", printable(label.name));
  out += '\n';
  for (size_t i = 0; i < report.labels.size(); ++i) {
    out += cell(report.labels[i].name, width);
    for (const int64_t count : report.confusion[i]) out += fmt::format("{:>10}", count);
    out += '\n';
  }
  return out;
}

// Returns the scores of each label as a table and, of few labels, the confusion matrix.
std::string label_table(const infer::LabelReport& report) {
  size_t width = 15;  // that of the other rows
  for (const infer::LabelScores& label : report.labels)
    width = std::max(width, std::min(label.name.size(), kWidest) + 2);
  std::string out =
      "\n" + cell("label", width) +
      fmt::format("{:>10}{:>10}{:>10}{:>10}\n", "precision", "recall", "F1", "support");
  const size_t shown = std::min(report.labels.size(), kMostRows);
  for (size_t i = 0; i < shown; ++i) {
    const infer::LabelScores& label = report.labels[i];
    out += cell(label.name, width) + fmt::format("{:>10.4f}{:>10.4f}{:>10.4f}{:>10}\n",
                                                 label.precision, label.recall, label.f1,
                                                 label.support);
  }
  if (shown < report.labels.size())
    out += fmt::format("({} more labels: --json)\n", report.labels.size() - shown);
  if (!report.confusion.empty() && report.labels.size() <= kMostColumns)
    out += confusion_table(report, std::max<size_t>(width, 19));
  return out;
}

std::string comparison_text(const Comparison& r) {
  return fmt::format(
      "perplexity     {:.4f} +- {:.4f}; reference {:.4f}\nloss           {:+.6f} +- {:.6f} nats "
      "per "
      "token, compared to the reference\ndivergence     {:.6f} +- {:.6f} nats per token, "
      "KL(reference || model)\nflips          {:.3f}% +- {:.3f}% of the most likely next "
      "tokens\nweights        {}; reference {}\ntokens         {}\n",
      r.perplexity, r.perplexity_error, r.full_perplexity, r.loss_difference,
      r.loss_difference_error, r.divergence, r.divergence_error, 100 * r.flips, 100 * r.flips_error,
      memory(static_cast<double>(r.weight_bytes)), memory(static_cast<double>(r.full_weight_bytes)),
      r.tokens);
}

std::string comparison_json(const Comparison& r) {
  return Json({{"perplexity", r.perplexity},
               {"full_perplexity", r.full_perplexity},
               {"divergence", r.divergence},
               {"flips", r.flips},
               {"loss_difference", r.loss_difference},
               {"perplexity_error", r.perplexity_error},
               {"loss_difference_error", r.loss_difference_error},
               {"divergence_error", r.divergence_error},
               {"flips_error", r.flips_error},
               {"weight_bytes", r.weight_bytes},
               {"full_weight_bytes", r.full_weight_bytes},
               {"tokens", r.tokens}})
             .dump() +
         "\n";
}

// Runs `fovea eval MODEL DATA --against FULL` and returns the exit code.
int run_compare(const model::Model& model, const std::string& against,
                const std::vector<std::string>& data, bool json) {
  const model::Model full = open_model(against);
  ProgressLine line;
  const Comparison result = compare(model, full, data, [&](double fraction) {
    line.show(fraction, "reading", fmt::format("read {:.0f}%", 100 * fraction));
    return !stop_requested();
  });
  line.clear();
  if (stop_requested()) return stop_code();
  print(json ? comparison_json(result) : comparison_text(result));
  return 0;
}

class EvalCommand : public Command {
 public:
  EvalCommand()
      : Command("eval MODEL DATA... [OPTIONS]",
                "Evaluates a model on data that fits its head. On text: loss (nats per token), "
                "perplexity and bits per byte (comparable across tokenizers) of a decoder; the "
                "loss of masked tokens of an encoder (--one-by-one: pseudo-perplexity). On "
                "conversations: loss, perplexity and accuracy of the answers' tokens. On "
                "--pairs: the loss of an encoder-decoder, and BLEU, chrF and ROUGE-L of its "
                "translations. On recordings (a .csv, .tsv or .jsonl file with audio and text): "
                "the loss of a speech model, and its word and character error rates. On --labels: "
                "the scores of a classifier, of all labels and of each. On --images: those of a "
                "classifier of images, or how many captions a model of images and texts "
                "retrieves. With --sts: how well the similarities of an embedding model's vectors "
                "agree with human scores. "
                "With --tasks: the accuracy of choices and of generated answers, and ROUGE. "
                "With --probe: the accuracy of a linear classifier on the vectors of MODEL, beside "
                "that on TF-IDF. With --retrieval and --sentences: how well "
                "vectors find documents, and compare and group sentences. With --hypotheses and "
                "--references: the scores of existing translations.") {}

  void declare(OptionTable& table) override {
    table.add(model_argument(model_));
    data_.translation.emplace();
    add_fields(table, data_,
               {{"text", {"--data", "-f", "--file"}, "DATA"},
                {"chat_template", {}, "", "NAME"},
                {.field = "pairs", .placeholder = "FILE...", .most = 2},
                {.field = "labels", .placeholder = "FILE...", .most = kMostFiles},
                {.field = "images", .placeholder = "DIR|FILE...", .most = kMostFiles},
                {"one_by_one", {"--pseudo-perplexity"}},
                {.field = "translation", .omitted = true},
                {"translation_beams", {"-b", "--beam-size", "--num-beams"}, "--beams"},
                {"translation_source_prefix", {}, "--source-prefix"},
                {"translation_task", {}, "--task", "NAME"}});
    table.add(
        as("FILE", text("--hypotheses", {"--hyp", "-i"},
                        "instead of MODEL and DATA: file of translations to score", hypotheses_)));
    table.add(as("FILE",
                 text("--references", {"--ref"},
                      "--hypotheses: file of reference translations, line by line", references_)));
    table.add(choice("--bleu-tokenizer", {"--tokenize"},
                     "--hypotheses: the words of BLEU, by the names of sacrebleu; for Japanese and "
                     "Korean char, since ja-mecab and ko-mecab need MeCab",
                     bleu_tokenizer_, {"13a", "zh", "char", "none"}));
    table.add(text("--score", {},
                   "instead of DATA: print the log-probability of each token of this text",
                   score_));
    table.add(list("--candidate", {"--candidates"},
                   "--score: print the log-probability of this continuation; may be repeated",
                   candidates_));
    table.add(as("FILE", text("--sts", {}, "file of scored sentence pairs, for an embedding model",
                              pairs_with_scores_)));
    table.add(
        of_model(as("DIR", text("--against", {},
                                "reference model to compare MODEL's predictions with", against_))));
    table.add(choice("--dtype", {"--precision"},
                     "precision of MODEL's weights; automatic = as stored", precision_,
                     kWeightPrecisions));
    table.add(cache_option(cache_));
    table.add(adapter_option(adapters_));
    table.add(mute_option(muted_));
    probe_.declare(table);
    tasks_.declare(table);
    vectors_.declare(table);
    probe_.declare_intervals(table);
    table.show_only({"MODEL", "DATA", "--pairs", "--labels", "--images", "--one-by-one",
                     "--hypotheses", "--references", "--score", "--sts", "--against", "--dtype",
                     "--probe", "--tasks", "--limit", "--retrieval", "--sentences"});
  }

  bool runs_on_ranks(const OptionTable& table) const override {
    const auto others = {"--hypotheses", "--references", "--probe",    "--sts",
                         "--tasks",      "--images",     "--score",    "--candidate",
                         "--against",    "--retrieval",  "--sentences"};
    return std::ranges::none_of(others, [&](const char* name) { return table.given(name); });
  }

  int run(const OptionTable& table) override {
    refuse_translation(table);
    if (!hypotheses_.empty() || !references_.empty()) return score_files(table);
    require(table, false, {"--bleu-tokenizer"}, "--hypotheses");
    if (model_.empty()) throw UsageError("MODEL: not given; expected a model directory");
    for (const char* action : {"--probe", "--tasks", "--retrieval", "--sentences"})
      table.refuse_without(action);
    if (table.given("--probe")) return run_probe(table);
    if (table.given("--retrieval")) return run_retrieval(table);
    if (table.given("--sentences")) return run_sentences(table);
    require(table, false, {"--bootstrap", "--seed"}, "--probe, --retrieval or --sentences");
    if (table.given("--sts")) return run_similarity(table);
    const auto open = [this] {
      return without_heads(open_model(model_, weight_precision(precision_), cache_type(cache_),
                                      adapters_of(adapters_)),
                           muted_);
    };
    if (table.given("--tasks")) {
      allow_only(table, "--tasks",
                 {"MODEL", "--limit", "--dtype", "--cache-dtype", "--adapter", "--mute"});
      tasks_.fetch(table.given("--yes"));
      catch_signals();
      return tasks_.run(open(), data_.limit, json);
    }
    if (table.given("--images")) return run_images(table);
    if (table.given("--score") || !candidates_.empty()) {
      allow_only(table, "--score",
                 {"MODEL", "--candidate", "--dtype", "--cache-dtype", "--adapter", "--mute"});
      print_scores(open(), score_, candidates_, json);
      return 0;
    }
    if (data_.text.empty() && data_.pairs.empty() && data_.labels.empty())
      throw UsageError(
          "DATA: not given; expected text files or directories, --pairs, --labels, --images, "
          "--sts, --sentences, --retrieval or --score");
    if (!against_.empty())
      allow_only(table, "--against",
                 {"MODEL", "DATA", "--dtype", "--cache-dtype", "--adapter", "--mute"});
    if (const jobs::Ranks* ranks = jobs::Ranks::current())
      data_.ranks = &ranks->communicator();
    else
      catch_signals();
    if (!against_.empty()) return run_compare(open(), against_, data_.text, json);
    const model::Model model = open();
    infer::TranslateOptions& translation = *data_.translation;
    translation.sequences = std::max(translation.sequences, translation.beams);
    const bool speech = model.spec().input.kind == model::InputKind::audio;
    require(table, !data_.pairs.empty() || speech, {"--cache-dtype"}, "--pairs or recordings");
    if (data_.pairs.empty() && !speech) data_.translation.reset();
    const infer::Evaluation result = evaluate_with_progress(model);
    if (jobs::Ranks::only_helps()) return 0;
    for (const std::string& text : result.notes) note("note: " + printable(text) + "\n");
    if (stop_requested()) return stop_code();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

 private:
  static void refuse_translation(const OptionTable& table) {
    if (table.given("--pairs")) return;
    for (const char* option : {"--beams", "--source-prefix", "--task"})
      if (table.given(option)) throw UsageError(fmt::format("{}: requires --pairs", option));
  }

  infer::Evaluation evaluate_with_progress(const model::Model& model) const {
    ProgressLine line;
    const auto start = std::chrono::steady_clock::now();
    infer::Evaluation result = evaluate(model, data_, [&](double fraction) {
      if (jobs::Ranks::only_helps()) return true;
      const double taken =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const std::string eta =
          fraction > 0 ? "  ETA " + duration(taken / fraction * (1 - fraction)) : "";
      line.show(fraction, "reading" + eta, fmt::format("read {:.0f}%{}", 100 * fraction, eta));
      return !stop_requested();
    });
    line.clear();
    return result;
  }

  int run_similarity(const OptionTable& table) {
    allow_only(table, "--sts", {"MODEL", "--dtype", "--adapter"});
    const infer::Embedder embedder =
        open_embedder(model_, weight_precision(precision_), adapters_of(adapters_));
    print(similarity_report(embedder, pairs_with_scores_, {}, json));
    return 0;
  }

  int run_images(const OptionTable& table) {
    allow_only(table, "--images", {"MODEL", "--dtype", "--adapter"});
    catch_signals();
    const infer::ImageModel model =
        open_image_model(model_, weight_precision(precision_), adapters_of(adapters_));
    ProgressLine line;
    const infer::Evaluation result = evaluate_images(model, data_.images, [&](double fraction) {
      line.show(fraction, "reading", fmt::format("read {:.0f}%", 100 * fraction));
      return !stop_requested();
    });
    line.clear();
    print(json ? as_json(result) : as_text(result));
    return 0;
  }

  int run_probe(const OptionTable& table) {
    allow_only(table, "--probe", {"MODEL", "--dtype", "--adapter", "--bootstrap", "--seed"});
    return probe_.run(open_embedder(model_, weight_precision(precision_), adapters_of(adapters_)),
                      json);
  }

  int run_retrieval(const OptionTable& table) {
    allow_only(table, "--retrieval", {"MODEL", "--dtype", "--adapter", "--bootstrap", "--seed"});
    vectors_.use_intervals(probe_.options());
    return vectors_.run_retrieval(model_, weight_precision(precision_), adapters_of(adapters_),
                                  json);
  }

  int run_sentences(const OptionTable& table) {
    allow_only(table, "--sentences", {"MODEL", "--dtype", "--adapter", "--bootstrap", "--seed"});
    vectors_.use_intervals(probe_.options());
    return vectors_.run_sentences(
        open_embedder(model_, weight_precision(precision_), adapters_of(adapters_)), json);
  }

  int score_files(const OptionTable& table) {
    if (hypotheses_.empty() || references_.empty())
      throw UsageError("--hypotheses, --references: expected both or neither");
    allow_only(table, "--hypotheses", {"--references", "--bleu-tokenizer"});
    const auto hypotheses = text::all_lines(hypotheses_), references = text::all_lines(references_);
    if (hypotheses.size() != references.size()) {
      throw Error(ErrorKind::BadFile,
                  fmt::format("{}: has {} lines, but {} has {}; expected equal numbers",
                              hypotheses_, hypotheses.size(), references_, references.size()));
    }
    const auto tokenizer = static_cast<infer::BleuTokenizer>(bleu_tokenizer_);
    const infer::MetricValues scores = infer::score_translations(hypotheses, references, tokenizer);
    const std::vector<infer::Metric> metrics = infer::translation_metrics(tokenizer);
    Json result;
    add_json(result, metrics, scores);
    result["sequences"] = hypotheses.size();
    print(json ? result.dump() + "\n" : rows_of(metrics, scores));
    return 0;
  }

  static std::string row(const std::string& name, const std::string& value) {
    return fmt::format("{:<15}{}\n", name, value);
  }

  static std::string rows_of(const std::vector<infer::Metric>& metrics,
                             const infer::MetricValues& values) {
    std::string out;
    for (const infer::Metric& metric : metrics) {
      const std::optional<double> value = infer::value_of(values, metric.name);
      if (!value) continue;
      std::string text = fmt::format("{:.{}f}", *value, metric.decimals);
      if (!metric.unit.empty()) text += " " + metric.unit;
      if (!metric.signature.empty()) text += "  " + metric.signature;
      out += row(metric.title, text);
    }
    return out;
  }

  static void add_json(Json& json, const std::vector<infer::Metric>& metrics,
                       const infer::MetricValues& values) {
    for (const infer::Metric& metric : metrics) {
      const std::optional<double> value = infer::value_of(values, metric.name);
      if (!value) continue;
      json[metric.name] = finite(*value);
      if (!metric.signature.empty()) json[metric.name + "_signature"] = metric.signature;
    }
  }

  // Returns null for NaN and infinity, which JSON lacks.
  static Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

  static std::string as_text(const infer::Evaluation& r) {
    const infer::EvaluationTask& task = infer::evaluation_task(r.objective);
    const char* sequences = r.objective == "pairs"       ? "pairs"
                            : r.objective == "answers"   ? "windows"
                            : r.objective == "speech"    ? "recordings"
                            : r.objective == "retrieval" ? "images"
                                                         : "texts";
    std::string out = rows_of(task.loss, r.metrics) + rows_of(task.metrics, r.metrics);
    if (r.sequences > 0) out += row(sequences, fmt::format("{}", r.sequences));
    if (r.objective != "retrieval")
      out += row(task.models.starts_with("classifiers") ? "labels" : "tokens",
                 fmt::format("{}", r.tokens));
    if (r.bytes > 0) out += row("bytes", fmt::format("{}", r.bytes));
    if (r.unknown > 0)
      out += row("unknown", fmt::format("{} characters that the vocabulary lacks", r.unknown));
    if (r.labels) out += label_table(*r.labels);
    return out;
  }

  static std::string as_json(const infer::Evaluation& r) {
    Json json = {{"objective", r.objective},
                 {"loss", finite(r.loss)},
                 {"perplexity", finite(r.perplexity)},
                 {"bits_per_byte", finite(r.bits_per_byte)},
                 {"tokens", r.tokens},
                 {"bytes", r.bytes},
                 {"unknown", r.unknown},
                 {"sequences", r.sequences}};
    add_json(json, infer::evaluation_task(r.objective).metrics, r.metrics);
    if (r.labels) json.update(Json::parse(infer::label_json(*r.labels)));
    return json_line(json) + "\n";
  }

  std::string model_;
  std::vector<std::string> adapters_, muted_;
  std::string against_, score_, pairs_with_scores_, hypotheses_, references_;
  std::vector<std::string> candidates_;
  int precision_ = 0, cache_ = 0, bleu_tokenizer_ = 0;
  EvaluationData data_;
  ProbeRequest probe_;
  TasksRequest tasks_;
  VectorsRequest vectors_;
};

}  // namespace

std::unique_ptr<Command> make_eval() { return std::make_unique<EvalCommand>(); }

}  // namespace fovea::cli
