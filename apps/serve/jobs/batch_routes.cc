#include "serve/jobs/batch_routes.h"

#include <fmt/format.h>

#include "serve/request/fields.h"
#include "serve/request/unknown_fields.h"
#include "serve/routes/handlers.h"
#include "serve/routes/object_list.h"

namespace fovea::serve {
namespace {

using tuning::Batch, tuning::BatchStatus;

constexpr int64_t kMostOnPage = 100;  // as in OpenAI's API

Json id_or_null(const std::string& id) { return id.empty() ? Json() : Json(id); }

Json errors_json(const Batch& batch) {
  if (batch.errors.empty()) return nullptr;
  Json data = Json::array();
  for (const tuning::BatchError& error : batch.errors)
    data.push_back({{"code", error.code},
                    {"line", error.line > 0 ? Json(error.line) : Json()},
                    {"message", error.message},
                    {"param", id_or_null(error.parameter)}});
  return {{"object", "list"}, {"data", data}};
}

Json batch_json(const Batch& batch) {
  const auto time = [&](BatchStatus status) {
    const auto found = batch.times.find(status);
    return found == batch.times.end() ? Json() : Json(found->second);
  };
  return {{"id", batch.id},
          {"object", "batch"},
          {"endpoint", batch.endpoint},
          {"errors", errors_json(batch)},
          {"input_file_id", batch.input_file},
          {"completion_window", "24h"},
          {"status", tuning::name_of(batch.status)},
          {"output_file_id", id_or_null(is_final(batch.status) ? batch.output_file : "")},
          {"error_file_id", id_or_null(is_final(batch.status) ? batch.error_file : "")},
          {"created_at", time(BatchStatus::validating)},
          {"in_progress_at", time(BatchStatus::in_progress)},
          {"expires_at", nullptr},
          {"finalizing_at", time(BatchStatus::finalizing)},
          {"completed_at", time(BatchStatus::completed)},
          {"failed_at", time(BatchStatus::failed)},
          {"expired_at", nullptr},
          {"cancelling_at", time(BatchStatus::cancelling)},
          {"cancelled_at", time(BatchStatus::cancelled)},
          {"request_counts",
           {{"total", batch.total}, {"completed", batch.completed}, {"failed", batch.failed}}},
          {"metadata", batch.metadata}};
}

Batch batch_of(const Batches& batches, const http::Request& request) {
  if (auto found = batches.find(request.rest)) return *found;
  throw ApiError{404, "batch_id: no such batch", "batch_id", "batch_not_found"};
}

Json created(Batches& batches, const http::Request& request) {
  const Json body = parse_body(request.body);
  BatchRequest parsed;
  read_fields(body, 0, parsed);
  const std::vector<FieldInfo>& fields = fields_of_route(BatchRequest::kPath);
  for (const std::string& key : unknown_keys(body, fields))
    if (!is_neutral(body[key]))
      throw ApiError{400, fmt::format("{}: is not supported; expected none", key), key,
                     "unknown_field"};
  return batch_json(batches.create(parsed));
}

Json listed(Batches& batches, const http::Request& request) {
  std::vector<Json> all;
  for (const Batch& batch : batches.all()) all.push_back(batch_json(batch));
  return page_of(all, request, limit_of(request, 20, kMostOnPage));
}

}  // namespace

void add_batch_routes(http::Router& router, Batches& batches) {
  const auto add = [&](const char* method, const char* path, auto answer) {
    router.add(guarded_route(method, path,
                             [&batches, answer](const http::Request& request,
                                                const std::shared_ptr<http::Exchange>& exchange) {
                               exchange->send(json_response(answer(batches, request)));
                             }));
  };
  add("POST", "/v1/batches", created);
  add("GET", "/v1/batches", listed);
  add("POST", "/v1/batches/{id}/cancel", [](Batches& of, const http::Request& request) {
    return batch_json(of.cancel(batch_of(of, request).id));
  });
  add("GET", "/v1/batches/{id}",
      [](Batches& of, const http::Request& request) { return batch_json(batch_of(of, request)); });
}

}  // namespace fovea::serve
