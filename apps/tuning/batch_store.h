#pragma once

#include <map>
#include <optional>
#include <string>

#include "tuning/batch.h"

namespace fovea::tuning {

// The batches of a folder: batches/ID/ with batch.json and the output while it is written. A change
// is written before the function returns. Not safe to call from several threads at once.
class BatchStore {
 public:
  // Reads the batches in `folder`/batches. Throws BadFile if one is damaged.
  explicit BatchStore(std::string folder);

  Batch& add(Batch batch);             // sets the id, the number and the time
  Batch* find(const std::string& id);  // null if no batch has the id
  const std::map<int64_t, Batch>& all() const { return batches_; }  // by number, oldest first
  std::string path(const Batch& batch, const std::string& name) const;
  void save(const Batch& batch) const;
  // Throws Internal if the batch may not become `status`.
  void set_status(Batch& batch, BatchStatus status) const;

 private:
  const std::string folder_;
  std::map<int64_t, Batch> batches_;
};

}  // namespace fovea::tuning
