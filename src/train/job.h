#pragma once

#include <memory>
#include <optional>

#include "checkpoint/snapshot.h"
#include "data/batches.h"
#include "data/token_store.h"
#include "fovea/train.h"
#include "model/transformer.h"

namespace fovea {

// Everything that a run needs before its first step.
struct Job {
  TrainOptions options;
  Spec spec;  // validated
  DType compute = DType::f32;
  std::optional<Tokenizer> tokenizer;
  std::unique_ptr<Corpus> corpus;
  std::unique_ptr<TokenStore> store;
  std::optional<Snapshot> snapshot;  // to resume from
  Transformer model;                 // with its weights
  TrainPlan plan;

  int64_t context() const { return spec.context; }
};

// Checks every option and the data and builds the job; with `read_only` nothing is written
// anywhere. Errors name the option or the file; OutOfMemory if the plan needs more than there is.
Job prepare(const Spec& spec, const TrainOptions& options, bool read_only,
            const std::function<void(std::string)>& say);

// The settings that decide a run's numbers, as state.json keeps them: a resumed run must have the
// same.
nlohmann::ordered_json settings(const Job& job);

}  // namespace fovea
