#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "http/router.h"
#include "serve/jobs/batches.h"
#include "serve/jobs/tuned_models.h"
#include "tuning/fine_tuning.h"

namespace fovea::serve {

// The fine-tuning jobs and the batches of a server, which share a folder.
class ServedJobs {
 public:
  using Line = std::function<void(const std::string& line)>;
  // `sequences`: as Batches; `models` contains the base models; `note` receives lines for the log.
  ServedJobs(const tuning::RunnerOptions& options, int64_t sequences, ModelList& models, Line note)
      : tuning_(options),
        batches_(tuning_.files(), tuning_.folder(), options.most_bytes, sequences),
        results_(models, std::move(note)) {}

  // Adds the routes of files, jobs and batches, and the deletion of results.
  void add_routes(http::Router& router, size_t most_upload);
  // Begins to run jobs, and to answer batches by the routes of `router`.
  void start(http::Router router, const Line& warn);
  void stop_batches() { batches_.stop(); }
  void stop_jobs(std::chrono::seconds grace) { tuning_.stop(grace); }  // see FineTuning::stop()

 private:
  tuning::FineTuning tuning_;
  Batches batches_;
  TunedModels results_;
};

}  // namespace fovea::serve
