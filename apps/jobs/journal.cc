#include "jobs/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/ordered_json.h"
#include "fovea/core/error.h"
#include "fovea/core/read_file.h"

namespace fovea::jobs {
namespace {

using Json = nlohmann::ordered_json;

std::string value_of(const Json& job, const std::string& name) {
  return job.contains(name) ? json_line(job[name]) : "none";
}

Json as_json(const Journal::Entry& entry) {
  const JobProgress& p = entry.progress;
  return {{"lines", p.lines},
          {"bytes", entry.bytes},
          {"tokens", p.tokens},
          {"cut", p.cut},
          {"first_cut", p.first_cut},
          {"errors", p.errors},
          {"first_error", p.first_error},
          {"hash", p.lines_hash},
          {"output_hash", entry.output}};
}

Journal::Entry entry_of(const Json& line) {
  Journal::Entry entry;
  entry.bytes = line.at("bytes");
  entry.output = line.at("output_hash");
  JobProgress& p = entry.progress;
  p.lines = line.at("lines");
  p.tokens = line.at("tokens");
  p.cut = line.at("cut");
  p.first_cut = line.at("first_cut");
  p.errors = line.value("errors", int64_t{0});
  p.first_error = line.value("first_error", "");
  p.lines_hash = line.at("hash");
  return entry;
}

}  // namespace

std::string difference(const Json& one, const Json& other) {
  for (const Json* const job : {&one, &other})
    for (const auto& [name, ignored] : job->items())
      if (value_of(one, name) != value_of(other, name)) return name;
  return "";
}

Journal::Journal(const std::string& path, const Json& job, const Holds& holds)
    : output_(path), path_(path + ".journal"), job_(Json::parse(json_line(job))) {
  const uint64_t whole = read(holds);
  if (entry_.progress.lines == 0) {
    restart();
    return;
  }
  if (truncate(path_.c_str(), static_cast<off_t>(whole)) != 0) cannot_write();
  file_.open(path_, std::ios::binary | std::ios::app);
}

// Reads the journal and returns the length of its valid beginning in bytes.
uint64_t Journal::read(const Holds& holds) {
  if (!std::filesystem::exists(path_)) return 0;
  const std::string content = read_file(path_);
  std::string_view line;
  uint64_t whole = 0;
  const auto next = [&] {
    const size_t end = content.find('\n', whole);
    if (end == content.npos) return false;  // the last line may be incomplete
    line = std::string_view(content).substr(whole, end - whole);
    whole = end + 1;
    return true;
  };
  if (!next()) return 0;
  try {
    const Json begun = parse_ordered_json(line, path_);
    const std::string other = difference(begun, job_);
    uint64_t held = whole;
    while (!damaged_ && next()) {
      const Entry entry = entry_of(parse_ordered_json(line, path_));
      damaged_ = !holds(entry);
      if (damaged_) break;
      entry_ = entry;
      held = whole;
    }
    whole = held;
    if (entry_.progress.lines > 0 && !other.empty())
      throw Error(ErrorKind::BadFile,
                  fmt::format("{0}.part: was started with {1} {2}, now {3}; expected the same; "
                              "to start again, delete {0}.part and {0}.journal",
                              output_, other, value_of(begun, other), value_of(job_, other)));
  } catch (const Json::exception&) {
    not_a_journal();
  } catch (const JsonFault&) {
    not_a_journal();
  }
  return whole;
}

void Journal::not_a_journal() const {
  throw Error(
      ErrorKind::BadFile,
      fmt::format("{0}: is not a journal of this program; to start again, delete it and {1}.part",
                  path_, output_));
}

void Journal::restart() {
  entry_ = {};
  file_.close();
  file_.clear();
  file_.open(path_, std::ios::binary | std::ios::trunc);
  write(job_);
}

void Journal::add(const Entry& entry) {
  write(as_json(entry));
  entry_ = entry;
}

void Journal::write(const Json& line) {
  file_ << json_line(line) << '\n' << std::flush;
  if (!file_) cannot_write();
}

void Journal::cannot_write() const {
  throw Error(ErrorKind::Failed,
              path_ + ": cannot be written; expected a writable directory with free space");
}

void Journal::remove() const { unlink(path_.c_str()); }

}  // namespace fovea::jobs
