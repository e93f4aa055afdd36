#include "tuning/batch_store.h"

#include <ctime>

#include "base/error.h"
#include "base/files.h"
#include "tuning/random_id.h"

namespace fovea::tuning {
namespace {

constexpr const char* kBatchPrefix = "batch_";

}  // namespace

BatchStore::BatchStore(std::string folder) : folder_(std::move(folder) + "/batches") {
  if (!is_folder(folder_)) return;
  for (const std::string& id : list_folders(folder_)) {
    const std::string record = folder_ + "/" + id + "/batch.json";
    if (!is_id(id, kBatchPrefix) || !is_file(record)) continue;
    Batch batch = read_batch(read_file(record), record);
    if (batch.id != id || !batches_.emplace(batch.number, batch).second)
      fail(ErrorKind::BadFile, "{}: has the id or the number of another batch", record);
  }
}

Batch& BatchStore::add(Batch batch) {
  batch.id = random_id(kBatchPrefix);
  batch.number = batches_.empty() ? 0 : batches_.rbegin()->first + 1;
  batch.times[batch.status] = std::time(nullptr);
  make_directories(path(batch, ""));
  save(batch);
  return batches_[batch.number] = std::move(batch);
}

Batch* BatchStore::find(const std::string& id) {
  for (auto& [number, batch] : batches_)
    if (batch.id == id) return &batch;
  return nullptr;
}

std::string BatchStore::path(const Batch& batch, const std::string& name) const {
  return folder_ + "/" + batch.id + "/" + name;
}

void BatchStore::save(const Batch& batch) const {
  write_file_atomically(path(batch, "batch.json"), write_batch(batch));
}

void BatchStore::set_status(Batch& batch, BatchStatus status) const {
  if (!may_become(batch.status, status))
    fail(ErrorKind::Internal, "{}: is {}, cannot become {}", batch.id, name_of(batch.status),
         name_of(status));
  batch.status = status;
  batch.times[status] = std::time(nullptr);
  save(batch);
}

}  // namespace fovea::tuning
