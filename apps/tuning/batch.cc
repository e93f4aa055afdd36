#include "tuning/batch.h"

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "base/json.h"

namespace fovea::tuning {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBatchStatuses[] = {"validating", "in_progress", "finalizing", "cancelling",
                                          "completed",  "failed",      "cancelled"};

BatchStatus batch_status_of(const std::string& text, const std::string& name) {
  const auto found = std::find(std::begin(kBatchStatuses), std::end(kBatchStatuses), text);
  if (found == std::end(kBatchStatuses))
    fail(ErrorKind::BadFile, "{}: status is {}; expected one of a batch", name, text);
  return static_cast<BatchStatus>(found - std::begin(kBatchStatuses));
}

}  // namespace

const char* name_of(BatchStatus status) { return kBatchStatuses[static_cast<int>(status)]; }

bool is_final(BatchStatus status) { return status >= BatchStatus::completed; }

bool may_become(BatchStatus from, BatchStatus to) {
  using S = BatchStatus;
  switch (to) {
    case S::validating: return false;
    case S::in_progress: return from == S::validating;
    case S::finalizing: return from == S::in_progress;
    case S::cancelling: return from == S::validating || from == S::in_progress;
    case S::completed: return from == S::finalizing;
    case S::failed: return !is_final(from);
    case S::cancelled: return from == S::cancelling;
  }
  return false;
}

std::string write_batch(const Batch& batch) {
  Json json = {{"id", batch.id},
               {"number", batch.number},
               {"endpoint", batch.endpoint},
               {"input_file", batch.input_file},
               {"metadata", batch.metadata},
               {"status", name_of(batch.status)},
               {"times", Json::object()},
               {"total", batch.total},
               {"completed", batch.completed},
               {"failed", batch.failed},
               {"output_file", batch.output_file},
               {"error_file", batch.error_file},
               {"errors", Json::array()}};
  for (const auto& [status, time] : batch.times) json["times"][name_of(status)] = time;
  for (const BatchError& error : batch.errors)
    json["errors"].push_back({{"code", error.code},
                              {"message", error.message},
                              {"parameter", error.parameter},
                              {"line", error.line}});
  return pretty(json);
}

Batch read_batch(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  if (!json.is_object() || !json.contains("times") || !json["times"].is_object() ||
      !json.contains("errors"))
    fail(ErrorKind::BadFile, "{}: is no batch; expected the file of one", name);
  Batch batch;
  batch.id = get_string(json, "id", name);
  batch.number = get_int(json, "number", name, 0);
  batch.endpoint = get_string(json, "endpoint", name);
  batch.input_file = get_string(json, "input_file", name);
  if (json.contains("metadata")) batch.metadata = json["metadata"];
  batch.status = batch_status_of(get_string(json, "status", name), name);
  for (const auto& [status, time] : json["times"].items())
    batch.times[batch_status_of(status, name)] = get_int(json["times"], status, name);
  batch.total = get_int(json, "total", name, 0);
  batch.completed = get_int(json, "completed", name, 0);
  batch.failed = get_int(json, "failed", name, 0);
  batch.output_file = get_string(json, "output_file", name);
  batch.error_file = get_string(json, "error_file", name);
  for (const auto& error : json["errors"])
    batch.errors.push_back({get_string(error, "code", name), get_string(error, "message", name),
                            get_string(error, "parameter", name), get_int(error, "line", name, 0)});
  return batch;
}

}  // namespace fovea::tuning
