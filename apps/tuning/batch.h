#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::tuning {

enum class BatchStatus {
  validating,
  in_progress,
  finalizing,
  cancelling,
  completed,
  failed,
  cancelled
};
const char* name_of(BatchStatus status);
bool is_final(BatchStatus status);
bool may_become(BatchStatus from, BatchStatus to);

// Why a batch failed. `line`: of the input file; 0 = none.
struct BatchError {
  std::string code, message, parameter;
  int64_t line = 0;
};

// A file of requests that the server answers, as OpenAI's API describes it.
struct Batch {
  std::string id;  // "batch_" and 24 hexadecimal digits
  int64_t number = 0;
  std::string endpoint, input_file;
  nlohmann::ordered_json metadata;  // null = none
  BatchStatus status = BatchStatus::validating;
  std::map<BatchStatus, int64_t> times;          // when each status began; seconds since 1970
  int64_t total = 0, completed = 0, failed = 0;  // requests
  // Ids of files; empty = none. They are chosen before the files are moved to the others.
  std::string output_file, error_file;
  std::vector<BatchError> errors;
};

std::string write_batch(const Batch& batch);
// Throws BadFile; `name` is that of the file in errors.
Batch read_batch(std::string_view text, const std::string& name);

}  // namespace fovea::tuning
