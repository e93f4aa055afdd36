#include "loop/shared_evaluation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/append.h"
#include "kernels/sum_tree.h"
#include "parallel/gather_json.h"

namespace fovea::train {
namespace {

using nlohmann::json;

json json_of(const infer::Predictions& p) {
  json spans = json::array();
  for (const infer::SpanPrediction& s : p.spans)
    spans.push_back({s.sample, s.begin, s.end, s.score, s.none});
  return {p.loss,           p.labels,         p.choices,         p.ends,
          p.sets.width,     p.sets.labelled,  p.sets.chosen,     p.numbers,
          std::move(spans), p.rewards.chosen, p.rewards.rejected};
}

infer::Predictions predictions_in(const json& of) {
  infer::Predictions p;
  of[0].get_to(p.loss);
  of[1].get_to(p.labels);
  of[2].get_to(p.choices);
  of[3].get_to(p.ends);
  of[4].get_to(p.sets.width);
  of[5].get_to(p.sets.labelled);
  of[6].get_to(p.sets.chosen);
  of[7].get_to(p.numbers);
  for (const json& s : of[8])
    p.spans.push_back({s[0].get<int64_t>(), s[1].get<int64_t>(), s[2].get<int64_t>(),
                       s[3].get<double>(), s[4].get<double>()});
  of[9].get_to(p.rewards.chosen);
  of[10].get_to(p.rewards.rejected);
  return p;
}

void add(infer::Predictions& all, const infer::Predictions& more) {
  all.labels += more.labels;
  append(all.choices, more.choices);
  const int64_t before = all.ends.empty() ? 0 : all.ends.back();
  for (const int64_t end : more.ends) all.ends.push_back(before + end);
  all.sets.width = std::max(all.sets.width, more.sets.width);
  append(all.sets.labelled, more.sets.labelled);
  append(all.sets.chosen, more.sets.chosen);
  append(all.numbers, more.numbers);
  append(all.spans, more.spans);
  append(all.rewards.chosen, more.rewards.chosen);
  append(all.rewards.rejected, more.rewards.rejected);
}

}  // namespace

// Rank r predicts the batches r, r + ranks, ...
infer::Predictions predict_batches(Communicator* ranks, int64_t count,
                                   const std::function<infer::Predictions(int64_t n)>& of_batch) {
  infer::Predictions total;
  std::vector<double> losses;
  const auto take = [&](const infer::Predictions& one) {
    losses.push_back(one.loss);
    add(total, one);
  };
  if (ranks == nullptr) {
    for (int64_t n = 0; n < count; ++n) take(of_batch(n));
  } else {
    json own = json::array();
    for (int64_t n = ranks->rank(); n < count; n += ranks->size())
      own.push_back(json_of(of_batch(n)));
    const std::vector<json> all = gather_json(*ranks, own);
    for (int64_t n = 0; n < count; ++n)
      take(predictions_in(
          all[static_cast<size_t>(n % ranks->size())][static_cast<size_t>(n / ranks->size())]));
  }
  total.loss = tree_sum(losses) / static_cast<double>(std::max<int64_t>(1, total.labels));
  return total;
}

std::vector<infer::Generation> share_answers(
    Communicator* ranks, int64_t count, int64_t each,
    const std::function<std::vector<infer::Generation>(int64_t begin, int64_t end)>& make) {
  if (ranks == nullptr) return make(0, count);
  const int64_t r = ranks->rank(), all = ranks->size();
  json own = json::array();
  const int64_t begin = count * r / all, end = count * (r + 1) / all;
  if (begin < end)
    for (const infer::Generation& answer : make(begin, end))
      own.push_back({answer.ids, answer.text, answer.end_id});
  std::vector<infer::Generation> answers;
  answers.reserve(static_cast<size_t>(count * each));
  for (const json& of_rank : gather_json(*ranks, own))
    for (const json& answer : of_rank) {
      infer::Generation& one = answers.emplace_back();
      answer[0].get_to(one.ids);
      answer[1].get_to(one.text);
      answer[2].get_to(one.end_id);
    }
  return answers;
}

std::vector<std::string> share_texts(
    Communicator* ranks, int64_t count,
    const std::function<std::vector<std::string>(int64_t begin, int64_t end)>& make) {
  if (ranks == nullptr) return make(0, count);
  const int64_t r = ranks->rank(), all = ranks->size();
  std::vector<std::string> texts;
  for (const json& own : gather_json(*ranks, make(count * r / all, count * (r + 1) / all)))
    append(texts, own.get<std::vector<std::string>>());
  return texts;
}

}  // namespace fovea::train
