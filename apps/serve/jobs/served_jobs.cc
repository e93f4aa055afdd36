#include "serve/jobs/served_jobs.h"

#include "serve/jobs/batch_routes.h"
#include "serve/jobs/tuning_routes.h"

namespace fovea::serve {

void ServedJobs::add_routes(http::Router& router, size_t most_upload) {
  add_tuning_routes(router, tuning_, most_upload,
                    {.check_file = [this](const std::string& id) { batches_.check_unused(id); },
                     .end_serving = [this](const std::string& name) { results_.remove(name); }});
  add_batch_routes(router, batches_);
}

void ServedJobs::start(http::Router router, const Line& warn) {
  tuning_.start([this](const tuning::TunedModel& tuned) { results_.add(tuned); }, warn);
  batches_.start(std::move(router), warn);
}

}  // namespace fovea::serve
