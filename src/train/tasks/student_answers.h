#pragma once

#include <map>
#include <vector>

#include "loop/examples_task.h"
#include "loop/generate_answers.h"
#include "tasks/prompt_examples.h"

namespace fovea::train {

// The passes of a distillation whose answers the student writes (Agarwal et al. 2024, algorithm 1),
// beside those with the answers of the data. They depend on the seed, the number of the pass and
// the weights, so that a resumed run writes the same answers.
class StudentAnswers {
 public:
  struct Options {
    double share = 0.5, temperature = 1;  // of the passes; of the softmax
    int64_t tokens = 256;                 // maximum of an answer
    int64_t batch = 1;                    // answers of a pass
    int64_t context = 0;                  // of the student
    int32_t padding = 0;
    uint64_t seed = 0;
    DType compute = DType::f32;
    Communicator* ranks = nullptr;  // that write together; null = this process alone
  };
  // `groups`: the prompts of each file; all are shorter than the context.
  StudentAnswers(std::vector<std::vector<int32_t>> prompts, std::vector<WeightedGroup> groups,
                 infer::GenerationRules rules, const Options& options);

  // Whether the student writes the answers of this pass.
  bool writes(int64_t pass) const;
  int64_t longest() const { return longest_; }  // tokens of a prompt and an answer
  uint64_t bytes(const model::Transformer& student, int64_t passes) const;  // of writing a step

  struct Written {
    std::map<int64_t, Batch> batches;  // by pass
    infer::MetricValues metrics;       // for the log; none without batches
  };
  // Returns the batches that the student writes among `count` passes. Collective.
  Written write(const model::Transformer& student, const text::Tokenizer& tokenizer, int64_t first,
                int64_t count) const;

 private:
  AnswerSettings settings() const;
  Batch batch_of(const std::vector<size_t>& prompts,
                 std::span<const infer::Generation> answers) const;

  std::vector<std::vector<int32_t>> prompts_;
  PromptExamples order_;
  infer::GenerationRules rules_;
  Options options_;
  int64_t longest_prompt_ = 0, longest_ = 0;
};

// The examples of a step, some of whose passes are replaced.
class WithWritten : public Examples {
 public:
  WithWritten(const Examples& given, const std::map<int64_t, Batch>& written)
      : given_(given), written_(written) {}

  Batch training(int64_t pass) const override {
    const auto found = written_.find(pass);
    return found != written_.end() ? found->second : given_.training(pass);
  }
  double passes_per_epoch() const override { return given_.passes_per_epoch(); }
  int64_t validation_batches() const override { return given_.validation_batches(); }
  Batch validation(int64_t n) const override { return given_.validation(n); }

 private:
  const Examples& given_;
  const std::map<int64_t, Batch>& written_;
};

}  // namespace fovea::train
