#include "tasks/student_answers.h"

#include <algorithm>
#include <numeric>

#include "base/append.h"
#include "fovea/core/random.h"
#include "loop/rollout_batch.h"
#include "loop/shared_evaluation.h"

namespace fovea::train {

StudentAnswers::StudentAnswers(std::vector<std::vector<int32_t>> prompts,
                               std::vector<WeightedGroup> groups, infer::GenerationRules rules,
                               const Options& options)
    : prompts_(std::move(prompts)),
      order_(std::move(groups), options.batch, 1, options.seed),
      rules_(std::move(rules)),
      options_(options) {
  for (const std::vector<int32_t>& prompt : prompts_)
    longest_prompt_ = std::max(longest_prompt_, std::ssize(prompt));
  longest_ = std::min(options_.context, longest_prompt_ + options_.tokens);
}

bool StudentAnswers::writes(int64_t pass) const {
  constexpr uint32_t kSubstream = (1u << 31) + 1;  // beside that of seed_of_answers()
  const auto words =
      philox(options_.seed, Stream::sampling, kSubstream, static_cast<uint64_t>(pass));
  return uniform(words[0]) < static_cast<float>(options_.share);
}

AnswerSettings StudentAnswers::settings() const {
  return {.temperature = options_.temperature, .compute = options_.compute};
}

uint64_t StudentAnswers::bytes(const model::Transformer& student, int64_t passes) const {
  return generation_bytes(student, passes * options_.batch, longest_prompt_, options_.tokens,
                          settings());
}

// Each answer is a row and a unit.
Batch StudentAnswers::batch_of(const std::vector<size_t>& prompts,
                               std::span<const infer::Generation> answers) const {
  RolloutBatch written;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int32_t>& ids = written.ids.emplace_back(prompts_[prompts[i]]);
    written.prompts.push_back(static_cast<int32_t>(ids.size()));
    append(ids, answers[i].ids);
    if (answers[i].end_id >= 0) ids.push_back(answers[i].end_id);
  }
  std::vector<size_t> all(prompts.size());
  std::iota(all.begin(), all.end(), 0);
  Batch batch = written.batch_of(all, options_.padding);
  batch.units = std::ssize(all);
  batch.meaning = WrittenAnswers();
  return batch;
}

StudentAnswers::Written StudentAnswers::write(const model::Transformer& student,
                                              const text::Tokenizer& tokenizer, int64_t first,
                                              int64_t count) const {
  std::vector<int64_t> passes;
  std::vector<size_t> used;  // prompts
  std::vector<AnswerPrompt> requests;
  for (int64_t pass = first; pass < first + count; ++pass) {
    if (!writes(pass)) continue;
    passes.push_back(pass);
    auto number = static_cast<uint64_t>(pass * options_.batch);
    for (const size_t prompt : order_.prompts(pass)) {
      const std::vector<int32_t>& ids = prompts_[prompt];
      requests.push_back({.ids = &ids,
                          .seed = seed_of_answers(options_.seed, number++),
                          .tokens = std::min(options_.tokens, options_.context - std::ssize(ids))});
      used.push_back(prompt);
    }
  }
  if (passes.empty()) return {};
  const std::vector<infer::Generation> answers =
      share_answers(options_.ranks, std::ssize(requests), 1, [&](int64_t begin, int64_t end) {
        return generate_answers(student, tokenizer, rules_,
                                {requests.begin() + begin, requests.begin() + end}, settings());
      });
  Written written;
  double tokens = 0, ended = 0;
  for (const infer::Generation& answer : answers) {
    tokens += static_cast<double>(answer.ids.size());
    ended += answer.end_id >= 0;
  }
  const auto each = static_cast<size_t>(options_.batch);
  for (size_t i = 0; i < passes.size(); ++i) {
    const auto begin = used.begin() + static_cast<int64_t>(i * each);
    written.batches[passes[i]] =
        batch_of({begin, begin + options_.batch}, std::span(answers).subspan(i * each, each));
  }
  const auto all = static_cast<double>(answers.size());
  written.metrics = {{"answer_tokens", tokens / all}, {"ended", ended / all}};
  return written;
}

}  // namespace fovea::train
