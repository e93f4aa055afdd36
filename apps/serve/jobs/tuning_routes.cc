#include "serve/jobs/tuning_routes.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/excerpt.h"
#include "http/multipart.h"
#include "serve/request/fields.h"
#include "serve/routes/handlers.h"
#include "serve/routes/object_list.h"

namespace fovea::serve {
namespace {

using tuning::FineTuning, tuning::Job, tuning::JobStatus;

constexpr const char* kPurposes[] = {"fine-tune", "batch"};  // of uploads
constexpr size_t kMostName = 100;                            // bytes of a name in an error
constexpr int64_t kMostFiles = 10'000, kMostJobs = 100;      // of a page, as in OpenAI's API

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json file_json(const tuning::StoredFile& file) {
  return {{"id", file.id},          {"object", "file"},
          {"bytes", file.bytes},    {"created_at", file.created},
          {"filename", file.label}, {"purpose", file.purpose},
          {"status", "processed"},  {"status_details", nullptr}};
}

Json error_json(const std::optional<tuning::JobError>& error) {
  if (!error) return nullptr;
  return {{"code", error->code},
          {"message", error->message},
          {"param", text_or_null(error->parameter)}};
}

Json hyperparameters_json(const Job& job) {
  return {{"n_epochs", job.epochs},
          {"batch_size", job.batch},
          {"learning_rate_multiplier", job.rate_multiplier}};
}

template <class T>
Json value_or_auto(const std::optional<T>& value) {
  return value ? Json(*value) : Json("auto");
}

Json method_json(const Job& job) {
  const tuning::JobRequest& request = job.request;
  Json hyperparameters = hyperparameters_json(job);
  if (request.method == tuning::JobMethod::dpo)
    hyperparameters["beta"] = value_or_auto(request.beta);
  Json options;
  if (request.method == tuning::JobMethod::reinforcement) {
    hyperparameters["compute_multiplier"] = value_or_auto(request.compute_multiplier);
    hyperparameters["eval_interval"] = value_or_auto(request.evaluation_interval);
    hyperparameters["eval_samples"] = value_or_auto(request.evaluation_samples);
    hyperparameters["answer_tokens"] = value_or_auto(request.answer_tokens);
    options["grader"] = request.grader;
  }
  options["hyperparameters"] = hyperparameters;
  const char* const type = tuning::name_of(request.method);
  return {{"type", type}, {type, options}};
}

Json job_json(const Job& job) {
  const bool succeeded = job.status == JobStatus::succeeded;
  return {{"id", job.id},
          {"object", "fine_tuning.job"},
          {"created_at", job.created},
          {"finished_at", job.finished > 0 ? Json(job.finished) : Json()},
          {"estimated_finish", nullptr},
          {"model", job.request.model},
          {"fine_tuned_model", succeeded ? Json(job.result_name()) : Json()},
          {"organization_id", ""},
          {"status", tuning::name_of(job.status)},
          {"error", error_json(job.error)},
          {"training_file", job.request.training_file},
          {"validation_file", text_or_null(job.request.validation_file)},
          {"result_files", Json::array()},
          {"integrations", Json::array()},
          {"trained_tokens", succeeded ? Json(job.trained_tokens) : Json()},
          {"user_provided_suffix", text_or_null(job.request.suffix)},
          {"seed", job.seed},
          {"hyperparameters", hyperparameters_json(job)},
          {"method", method_json(job)},
          {"metadata", job.request.metadata}};
}

Json checkpoint_json(const Job& job, const tuning::Checkpoint& checkpoint) {
  Json metrics = {{"step", checkpoint.step}};
  if (checkpoint.training_loss) metrics["train_loss"] = *checkpoint.training_loss;
  if (checkpoint.validation_loss) metrics["full_valid_loss"] = *checkpoint.validation_loss;
  return {{"id", checkpoint.id},
          {"object", "fine_tuning.job.checkpoint"},
          {"created_at", checkpoint.created},
          {"fine_tuned_model_checkpoint", checkpoint.name_in(job.result_name())},
          {"fine_tuning_job_id", job.id},
          {"step_number", checkpoint.step},
          {"metrics", metrics}};
}

// The handlers. An id of a request is only compared with those of existing files and jobs.
class TuningRoutes {
 public:
  TuningRoutes(FineTuning& tuning, DeletionHooks hooks)
      : tuning_(tuning), hooks_(std::move(hooks)) {}

  http::Response upload(const http::Request& request) const {
    const std::vector<http::FormPart> parts =
        http::form_parts(request.header("content-type"), request.body);
    const http::FormPart &purpose = one_part(parts, "purpose"), &file = one_part(parts, "file");
    for (const http::FormPart& part : parts)
      if (part.name.rfind("expires_after", 0) == 0)
        refuse_part("expires_after", "is not supported");
    if (std::ranges::count(kPurposes, purpose.content) == 0)
      refuse_part("purpose", "expected fine-tune or batch");
    if (!file.filename) refuse_part("file", "expected a file with a name");
    return json_response(
        file_json(tuning_.upload(*file.filename, file.content, std::string(purpose.content))));
  }

  http::Response list_files(const http::Request& request) const {
    const std::string purpose = query_of(request, "purpose"), order = query_of(request, "order");
    if (!order.empty() && order != "asc" && order != "desc") wrong_query("order", "asc or desc");
    std::vector<Json> all;
    for (const tuning::StoredFile& file : tuning_.files().list())
      if (purpose.empty() || purpose == file.purpose) all.push_back(file_json(file));
    if (order != "asc") std::reverse(all.begin(), all.end());
    return json_response(page_of(all, request, limit_of(request, kMostFiles, kMostFiles)));
  }

  http::Response one_file(const http::Request& request) const {
    return json_response(file_json(file(request)));
  }

  http::Response content(const http::Request& request) const {
    return {200, "application/octet-stream", {}, tuning_.files().content(file(request).id)};
  }

  http::Response remove_file(const http::Request& request) const {
    const std::string id = file(request).id;
    if (hooks_.check_file) hooks_.check_file(id);
    tuning_.remove_file(id);
    return json_response({{"id", id}, {"object", "file"}, {"deleted", true}});
  }

  http::Response remove_model(const http::Request& request) const {
    const std::string& name = request.rest;
    if (!tuning_.remove_model(name))
      throw ApiError{
          404,
          "model: \"" + excerpt(name, kMostName) +
              "\" is no result of a job; expected one, since other models are not deleted",
          "model", "model_not_found"};
    if (hooks_.end_serving) hooks_.end_serving(name);
    return json_response({{"id", name}, {"object", "model"}, {"deleted", true}});
  }

  http::Response create(const http::Request& request) const {
    FineTuningRequest parsed;
    read_fields(parse_body(request.body), 0, parsed);
    check_methods(parsed);
    return json_response(job_json(tuning_.create(parsed.job)));
  }

  http::Response list_jobs(const http::Request& request) const {
    std::vector<Json> all;
    for (const Job& job : tuning_.jobs()) all.push_back(job_json(job));
    return json_response(page_of(all, request, limit_of(request, 20, kMostJobs)));
  }

  http::Response one_job(const http::Request& request) const {
    return json_response(job_json(job(request)));
  }
  http::Response cancel(const http::Request& request) const {
    return json_response(job_json(tuning_.cancel(job(request).id)));
  }
  http::Response pause(const http::Request& request) const {
    return json_response(job_json(tuning_.pause(job(request).id)));
  }
  http::Response resume(const http::Request& request) const {
    return json_response(job_json(tuning_.resume(job(request).id)));
  }

  http::Response events(const http::Request& request) const {
    const std::vector<Json> all = tuning_.events(job(request).id);
    return json_response(page_of(all, request, limit_of(request, 20, kMostJobs)));
  }

  http::Response checkpoints(const http::Request& request) const {
    const Job of = job(request);
    std::vector<Json> all;
    for (const tuning::Checkpoint& each : tuning_.checkpoints(of.id))
      all.push_back(checkpoint_json(of, each));
    return json_response(page_of(all, request, limit_of(request, 10, kMostJobs)));
  }

 private:
  [[noreturn]] static void refuse_part(const char* name, const char* why) {
    throw ApiError{400, fmt::format("{}: {}", name, why), name, "invalid_value"};
  }

  static const http::FormPart& one_part(const std::vector<http::FormPart>& parts,
                                        const char* name) {
    const http::FormPart* found = nullptr;
    for (const http::FormPart& part : parts) {
      if (part.name != name) continue;
      if (found != nullptr) refuse_part(name, "occurs twice");
      found = &part;
    }
    if (found == nullptr) refuse_part(name, "is missing");
    return *found;
  }

  tuning::StoredFile file(const http::Request& request) const {
    if (auto found = tuning_.files().find(request.rest)) return *found;
    throw ApiError{404, "file_id: no such file", "file_id", "file_not_found"};
  }
  Job job(const http::Request& request) const {
    if (auto found = tuning_.job(request.rest)) return *found;
    throw ApiError{404, "fine_tuning_job_id: no such job", "fine_tuning_job_id", "job_not_found"};
  }

  FineTuning& tuning_;
  const DeletionHooks hooks_;
};

}  // namespace

void add_tuning_routes(http::Router& router, FineTuning& tuning, size_t most_upload,
                       const DeletionHooks& hooks) {
  using Handle = http::Response (TuningRoutes::*)(const http::Request& request) const;
  const auto add = [&](const char* method, const char* path, Handle handle, size_t most_body = 0) {
    http::Route route = guarded_route(
        method, path,
        [routes = TuningRoutes(tuning, hooks), handle, folder = tuning.folder()](
            const http::Request& request, const std::shared_ptr<http::Exchange>& exchange) {
          try {
            exchange->send((routes.*handle)(request));
          } catch (const FieldError&) {
            throw;
          } catch (const Error& error) {
            throw without_folder(error, folder);
          }
        });
    route.most_body = most_body;
    router.add(std::move(route));
  };
  add("POST", "/v1/files", &TuningRoutes::upload, most_upload);
  add("GET", "/v1/files", &TuningRoutes::list_files);
  add("GET", "/v1/files/{id}/content", &TuningRoutes::content);
  add("GET", "/v1/files/{id}", &TuningRoutes::one_file);
  add("DELETE", "/v1/files/{id}", &TuningRoutes::remove_file);
  add("DELETE", "/v1/models/{id}", &TuningRoutes::remove_model);
  add("POST", "/v1/fine_tuning/jobs", &TuningRoutes::create);
  add("GET", "/v1/fine_tuning/jobs", &TuningRoutes::list_jobs);
  add("GET", "/v1/fine_tuning/jobs/{id}/events", &TuningRoutes::events);
  add("GET", "/v1/fine_tuning/jobs/{id}/checkpoints", &TuningRoutes::checkpoints);
  add("GET", "/v1/fine_tuning/jobs/{id}", &TuningRoutes::one_job);
  add("POST", "/v1/fine_tuning/jobs/{id}/cancel", &TuningRoutes::cancel);
  add("POST", "/v1/fine_tuning/jobs/{id}/pause", &TuningRoutes::pause);
  add("POST", "/v1/fine_tuning/jobs/{id}/resume", &TuningRoutes::resume);
}

}  // namespace fovea::serve
