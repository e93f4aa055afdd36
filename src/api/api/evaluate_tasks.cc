#include "fovea/evaluate_tasks.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/task_records.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/ordered_json.h"
#include "fovea/infer/generate.h"
#include "metrics/rouge.h"
#include "metrics/words.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSpaces = " \t\n\v\f\r";

// A continuation of a context: the sum of the log-probabilities of its tokens, and its lengths.
struct Continuation {
  double logprob = 0;
  double characters = 0, bytes = 0, tokens = 0;
};

// The values of a metric, one per record.
class Values {
 public:
  void add(const std::string& metric, double value) {
    for (auto& [name, values] : all_)
      if (name == metric) return values.push_back(value);
    all_.push_back({metric, {value}});
  }
  // Returns the means, each with its standard error: the sample deviation / sqrt(n).
  infer::MetricValues summary() const {
    infer::MetricValues metrics;
    for (const auto& [name, values] : all_) {
      const auto n = static_cast<double>(values.size());
      double mean = 0, squares = 0;
      for (const double v : values) mean += v / n;
      for (const double v : values) squares += (v - mean) * (v - mean);
      metrics.emplace_back(name, mean);
      if (n > 1) metrics.emplace_back(name + "_stderr", std::sqrt(squares / (n - 1) / n));
    }
    return metrics;
  }

 private:
  std::vector<std::pair<std::string, std::vector<double>>> all_;
};

class TaskRun {
 public:
  TaskRun(const model::Model& model, const TaskData& data) : model_(model), data_(data) {}

  void choose(const TaskRecord& record, const std::string& context) {
    std::vector<Continuation> all;
    Json scores = Json::array();
    for (const std::string& choice : record.choices) {
      all.push_back(continuation(context, choice));
      scores.push_back({{"logprob", all.back().logprob}, {"tokens", all.back().tokens}});
    }
    const auto best = [&](double Continuation::* length) {
      size_t chosen = 0;
      const auto merit = [&](size_t i) {
        return all[i].logprob / (length == nullptr ? 1 : all[i].*length);
      };
      for (size_t i = 1; i < all.size(); ++i)
        if (merit(i) > merit(chosen)) chosen = i;
      return static_cast<int64_t>(chosen);
    };
    const int64_t chosen = best(nullptr);
    values_.add("accuracy", chosen == record.gold);
    values_.add("accuracy_per_character", best(&Continuation::characters) == record.gold);
    values_.add("accuracy_per_byte", best(&Continuation::bytes) == record.gold);
    values_.add("accuracy_per_token", best(&Continuation::tokens) == record.gold);
    ++result_.choices;
    sample({{"context", context},
            {"choices", record.choices},
            {"gold", record.gold},
            {"scores", scores},
            {"chosen", chosen}});
  }

  void generate_answer(const TaskRecord& record, const std::string& context) {
    infer::GenerateOptions options;
    options.sampling.temperature = 0;
    options.max_tokens = record.max_tokens;
    options.stop = record.stop;
    const infer::Generation made = infer::generate(model_, context, options)[0];
    result_.cut += made.dropped_tokens > 0;
    const std::string text = stripped(made.text);
    Json output = {{"context", context}, {"target", record.target}, {"text", text}};
    if (record.rouge) {
      const infer::Rouge r = infer::rouge(text, record.target);
      for (const auto& [name, value] : {std::pair("rouge_1", r.one),
                                        {"rouge_2", r.two},
                                        {"rouge_l", r.l},
                                        {"rouge_lsum", r.lsum}}) {
        values_.add(name, value);
        output[name] = value;
      }
    } else {
      values_.add("exact_match", text == record.target);
      output["exact_match"] = text == record.target;
    }
    ++result_.generated;
    sample(output);
  }

  TaskEvaluation finish() {
    result_.metrics = values_.summary();
    if (!data_.samples_out.empty()) write_file_atomically(data_.samples_out, samples_);
    return result_;
  }

 private:
  // Scores the delimiter and the choice after the context. Spaces at the end of the context belong
  // to the continuation, whose tokens are those of the whole text after the context's.
  Continuation continuation(std::string context, const std::string& choice) {
    std::string text = data_.delimiter + choice;
    const size_t kept = context.find_last_not_of(kSpaces) + 1;  // 0 if all is white space
    if (!context.empty() && kept > 0) {
      text = context.substr(kept) + text;
      context.resize(kept);
    }
    Continuation c{.characters = static_cast<double>(infer::characters_of(choice).size()),
                   .bytes = static_cast<double>(choice.size())};
    std::vector<int32_t> ids = infer::prompt_ids(model_, context + text);
    size_t before = context.empty() ? 0 : infer::prompt_ids(model_, context).size();
    if (before == 0) {  // as generate() begins an empty prompt
      const std::optional<int32_t> end = model_.tokenizer().eos_id();
      ids.insert(ids.begin(), end.value_or(0));
      before = 1;
    }
    before = std::min(before, ids.size());
    const auto most = static_cast<size_t>(model_.spec().context) + 1;  // the last one is not read
    if (ids.size() > most) {
      const size_t surplus = ids.size() - most;
      ids.erase(ids.begin(), ids.begin() + static_cast<int64_t>(surplus));
      before = before > surplus ? before - surplus : 1;
      ++result_.cut;
    }
    const std::vector<infer::TokenLogprob> scores = infer::score(model_, ids);
    for (size_t i = before; i < scores.size(); ++i) c.logprob += double{scores[i].logprob};
    c.tokens = static_cast<double>(ids.size() - before);
    return c;
  }

  void sample(const Json& output) {
    if (!data_.samples_out.empty()) samples_ += json_line(output) + "\n";
  }

  const model::Model& model_;
  const TaskData& data_;
  Values values_;
  TaskEvaluation result_;
  std::string samples_;
};

}  // namespace

void visit(TaskData& d, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000'000;
  v.text({"file", "records with \"context\", or names: hellaswag,mmlu (docs/training.md)"}, d.file);
  v.integer({"shots", "tasks: records with their answers before each context"}, d.shots, 0, 10'000);
  v.integer({"limit", "tasks: evaluate the first N records only; 0 = all"}, d.limit, 0, kMost);
  v.text({"delimiter", "tasks: text between a context and its continuation"}, d.delimiter);
  v.text({"samples_out", "tasks: file for a JSON line per record with the model's outputs"},
         d.samples_out);
}

TaskEvaluation evaluate_tasks(const model::Model& model, const TaskData& data,
                              const std::function<bool(double fraction)>& progress) {
  const FloatMode mode;
  check_fields(data);
  const TaskRecords all = read_task_records(data.file);
  const std::vector<TaskRecord>& records = all.records;
  const int64_t most_shots =
      all.examples.empty() ? std::ssize(records) - 1 : std::ssize(all.examples);
  check_field(data.shots <= most_shots, "shots", "{}; expected at most {}, since {} has {} records",
              data.shots, most_shots, data.file, records.size());
  check(model.has_tokenizer(), "tasks: the model has no tokenizer; expected one");
  const size_t count =
      data.limit > 0 ? std::min(records.size(), static_cast<size_t>(data.limit)) : records.size();
  TaskRun run(model, data);
  for (size_t i = 0; i < count; ++i) {
    if (progress && !progress(static_cast<double>(i) / static_cast<double>(count)))
      fail(ErrorKind::Failed, "tasks: stopped after {} of {} records", i, count);
    const std::string context = context_with_shots(all, i, data.shots, data.delimiter);
    if (records[i].chooses())
      run.choose(records[i], context);
    else
      run.generate_answer(records[i], context);
  }
  TaskEvaluation result = run.finish();
  result.records = static_cast<int64_t>(count);
  return result;
}

}  // namespace fovea
