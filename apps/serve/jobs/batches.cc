#include "serve/jobs/batches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <unordered_set>
#include <utility>

#include "base/fields.h"
#include "base/files.h"
#include "fovea/text/text_lines.h"
#include "jobs/line_queue.h"
#include "serve/jobs/batch_run.h"
#include "tuning/job_runner.h"

namespace fovea::serve {
namespace {

using tuning::Batch, tuning::BatchError, tuning::BatchStatus;

constexpr size_t kMostUnfinished = 100, kMostErrors = 20;
constexpr size_t kBlocks = 16;  // of lines in progress, each on its own thread
constexpr const char *kOutput = "output.jsonl", *kGood = "good.jsonl", *kBad = "bad.jsonl";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

bool is_good(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  const Json response = json.is_object() ? json.value("response", Json()) : Json();
  return response.is_object() && response.value("status_code", 0) == 200;
}

// Appends lines to a file that is complete once close() returns.
class LinesFile {
 public:
  explicit LinesFile(std::string path) : path_(std::move(path)), file_(path_, std::ios::binary) {}
  void add(const std::string& line) {
    file_ << line << '\n';
    ++count_;
  }
  void close() {
    file_.close();
    if (!file_)
      throw Error(ErrorKind::Failed,
                  path_ + ": cannot be written; expected a writable directory with free space");
  }
  int64_t count() const { return count_; }

 private:
  std::string path_;
  std::ofstream file_;
  int64_t count_ = 0;
};

}  // namespace

Batches::Batches(tuning::FileStore& files, const std::string& folder, uint64_t most_bytes,
                 int64_t sequences)
    : files_(files),
      folder_(folder),
      most_bytes_(most_bytes),
      lines_(static_cast<size_t>(std::max<int64_t>(1, sequences / kShare))),
      store_(folder) {}

void Batches::start(http::Router router, std::function<void(const std::string&)> warn) {
  router_ = std::move(router);
  warn_ = std::move(warn);
  thread_ = std::thread([this] { work(); });
}

void Batches::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Batch Batches::create(const BatchRequest& request) {
  const auto file = files_.find(request.input_file);
  check_field(file.has_value(), "input_file_id", "no such file; expected the id of an upload");
  check_field(file->purpose == "batch", "input_file_id", "is a file for {}; expected one for batch",
              file->purpose);
  check_field(std::ranges::count(batch_paths(), request.endpoint) > 0, "endpoint", "expected {}",
              fmt::join(batch_paths(), ", "));
  const std::lock_guard lock(mutex_);
  const auto unfinished = std::ranges::count_if(
      store_.all(), [](const auto& each) { return !is_final(each.second.status); });
  check_field(static_cast<size_t>(unfinished) < kMostUnfinished, "input_file_id",
              "{} batches are waiting; expected fewer: wait or cancel one", unfinished);
  check_field(store_.all().size() < kMostBatches, "input_file_id",
              "the server has {} batches; the operator must remove some", kMostBatches);
  Batch batch;
  batch.endpoint = request.endpoint;
  batch.input_file = request.input_file;
  batch.metadata = request.metadata;
  const Batch added = store_.add(std::move(batch));
  changed_.notify_all();
  return added;
}

std::vector<Batch> Batches::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Batch> all;
  for (const auto& [number, batch] : store_.all()) all.push_back(batch);
  std::ranges::reverse(all);
  return all;
}

std::optional<Batch> Batches::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, batch] : store_.all())
    if (batch.id == id) return batch;
  return std::nullopt;
}

Batch Batches::cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Batch& batch = *store_.find(id);
  check_field(may_become(batch.status, BatchStatus::cancelling), "batch_id",
              "the batch is {}; expected one that is validating or in_progress",
              name_of(batch.status));
  store_.set_status(batch, BatchStatus::cancelling);
  return batch;
}

void Batches::check_unused(const std::string& file) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, batch] : store_.all())
    check_field(is_final(batch.status) || batch.input_file != file, "file_id",
                "is used by {}, which is {}; expected a file of finished batches", batch.id,
                name_of(batch.status));
}

bool Batches::halted(const std::string& id) const {
  return stopping_ || find(id)->status == BatchStatus::cancelling;
}

void Batches::fail(const std::string& id, std::vector<BatchError> errors) {
  const std::lock_guard lock(mutex_);
  Batch& batch = *store_.find(id);
  batch.errors = std::move(errors);
  store_.set_status(batch, BatchStatus::failed);
}

std::optional<std::string> Batches::next() const {
  for (const auto& [number, batch] : store_.all())
    if (!is_final(batch.status)) return batch.id;
  return std::nullopt;
}

void Batches::work() {
  while (true) {
    std::optional<std::string> id;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || (id = next()); });
      if (stopping_) return;
    }
    try {
      advance(*id);
    } catch (const std::exception& error) {
      if (stopping_) return;
      warn_(*id + ": " + error.what());
      give_up(*id, error);
    }
  }
}

// Fails a batch for an error of the server, whose paths are no matter of clients.
void Batches::give_up(const std::string& id, const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  const bool full = known != nullptr && known->kind() == ErrorKind::OutOfMemory;
  try {
    const std::string output = path_of(*find(id), kOutput);
    for (const char* ending : {".part", ".journal"}) remove_tree(output + ending);
    fail(id, {{full ? "insufficient_storage" : "server_error",
               full ? error.what() : "the server cannot write or read its files", "", 0}});
  } catch (const Error&) {
    // The disk is full: the batch has failed in memory.
  }
}

// Takes a batch from its status to a final one, unless the server ends.
void Batches::advance(const std::string& id) {
  if (find(id)->status == BatchStatus::validating) validate(*find(id));
  const Batch batch = *find(id);
  if (stopping_ || is_final(batch.status)) return;
  const std::string output = path_of(batch, kOutput);
  // A server that ended while it finalized the batch has left the whole output.
  if (!is_file(output)) answer(batch);
  if (stopping_) return;
  {
    const std::lock_guard lock(mutex_);
    Batch& now = *store_.find(id);
    if (now.status == BatchStatus::in_progress) store_.set_status(now, BatchStatus::finalizing);
  }
  finalize(*find(id));
  remove_tree(output);
}

void Batches::validate(const Batch& batch) {
  std::vector<BatchError> errors;
  std::unordered_set<std::string> ids;
  int64_t number = 0;
  const auto refuse = [&](const char* code, const std::string& message, const char* parameter) {
    errors.push_back({code, message, parameter, number});
  };
  const std::string path = files_.path(batch.input_file);
  try {
    text::LineReader reader(path);
    for (std::vector<std::string> lines; !(lines = reader.next(256)).empty();) {
      if (halted(batch.id)) return;
      for (const std::string& text : lines) {
        const std::string name = fmt::format("{}: line {}", batch.input_file, ++number);
        if (errors.size() == kMostErrors) break;
        const BatchLine line = read_batch_line(text, name, static_cast<size_t>(number), false);
        if (!line.error.empty())
          refuse("invalid_line", line.error, "");
        else if (line.path != batch.endpoint)
          refuse("mismatched_endpoint",
                 fmt::format("{}: url: expected {}, the batch's endpoint", name, batch.endpoint),
                 "url");
        else if (!ids.insert(line.custom_id).second)
          refuse("duplicate_custom_id", name + ": custom_id: occurs twice", "custom_id");
      }
    }
  } catch (const Error& error) {  // no text
    refuse("invalid_file", replaced(error.what(), path, batch.input_file), "");
  }
  if (!errors.empty()) return fail(batch.id, std::move(errors));
  const std::lock_guard lock(mutex_);
  Batch& now = *store_.find(batch.id);
  now.total = number;
  if (now.status == BatchStatus::validating) store_.set_status(now, BatchStatus::in_progress);
}

// Writes the output of all lines, or of those before the batch is cancelled.
void Batches::answer(const Batch& batch) {
  jobs::LineJob job;
  job.files = {files_.path(batch.input_file)};
  job.out = path_of(batch, kOutput);
  job.key = {{"batch", batch.id}};
  job.block_lines = (lines_ + kBlocks - 1) / kBlocks;
  job.report = [&](const jobs::JobProgress& progress, uint64_t) {
    const std::lock_guard lock(mutex_);
    Batch& now = *store_.find(batch.id);
    now.failed = progress.errors;
    now.completed = progress.lines - progress.errors;
  };
  const BatchRun run{router_, batch.id, false, batch.input_file,
                     [this] { return stopping_.load(); }};
  std::atomic<uint64_t> used = tuning::bytes_below(folder_);
  const auto compute = [&](const jobs::LineBlock& block) {
    jobs::BlockResult result = run.answer(block);
    used += result.bytes.size();
    if (used > most_bytes_)
      throw Error(ErrorKind::OutOfMemory,
                  fmt::format("the answers do not fit; of {} MB for files and jobs, all are used",
                              most_bytes_ >> 20));
    return result;
  };
  const size_t threads = std::min(lines_, kBlocks);
  jobs::LineQueue queue(job, 4 * threads);
  {
    std::vector<std::jthread> all;
    for (size_t i = 0; i < threads; ++i)
      all.emplace_back(
          [&] { jobs::compute_blocks(queue, compute, [&] { return halted(batch.id); }); });
  }
  if (!stopping_) queue.finish();
}

// Divides the output among a file of answers and one of errors, and ends the batch.
void Batches::finalize(const Batch& batch) {
  const std::string good_path = path_of(batch, kGood), bad_path = path_of(batch, kBad);
  LinesFile good(good_path), bad(bad_path);
  text::LineReader reader(path_of(batch, kOutput));
  for (std::vector<std::string> lines; !(lines = reader.next(256)).empty();)
    for (const std::string& line : lines) (is_good(line) ? good : bad).add(line);
  good.close();
  bad.close();
  Batch ended = batch;
  ended.completed = good.count();
  ended.failed = bad.count();
  if (good.count() > 0 && ended.output_file.empty())
    ended.output_file = tuning::FileStore::new_id();
  if (bad.count() > 0 && ended.error_file.empty()) ended.error_file = tuning::FileStore::new_id();
  // The ids are known before the files are moved, so that a repetition does not move them again.
  {
    const std::lock_guard lock(mutex_);
    store_.save(*store_.find(batch.id) = ended);
  }
  const auto adopt = [&](const std::string& id, const char* kind, const std::string& path) {
    if (!id.empty())
      files_.adopt(id, fmt::format("{}_{}.jsonl", batch.id, kind), "batch_output", path);
  };
  adopt(ended.output_file, "output", good_path);
  adopt(ended.error_file, "error", bad_path);
  for (const std::string& path : {good_path, bad_path}) remove_tree(path);
  const bool cancelled = batch.status == BatchStatus::cancelling;
  const std::lock_guard lock(mutex_);
  store_.set_status(*store_.find(batch.id),
                    cancelled ? BatchStatus::cancelled : BatchStatus::completed);
}

std::string Batches::path_of(const Batch& batch, const char* name) const {
  const std::lock_guard lock(mutex_);
  return store_.path(batch, name);
}

}  // namespace fovea::serve
