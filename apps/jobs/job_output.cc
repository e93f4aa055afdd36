#include "jobs/job_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/unnamed_file.h"
#include "fovea/core/error.h"
#include "jobs/journal.h"
#include "terminal/terminal.h"

namespace fovea::jobs {
namespace {

[[noreturn]] void cannot_write(const std::string& path) {
  throw Error(ErrorKind::Failed,
              fmt::format("{}: cannot be written ({}); expected a location with free space", path,
                          std::strerror(errno)));
}

void write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) throw cli::OutputClosed();
    if (count < 0) cannot_write(path);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

// Extends a 64-bit FNV-1a hash by more bytes; 0 starts a new hash. The hash detects damage and
// different files, but not forgery.
uint64_t hash_bytes(uint64_t before, std::string_view bytes) {
  uint64_t hash = before == 0 ? 0xcbf29ce484222325 : before;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// Closes its file on destruction.
struct File {
  explicit File(int opened) : descriptor(opened) {}
  ~File() {
    if (descriptor > STDERR_FILENO) close(descriptor);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int descriptor;
};

// Writes to standard output, a device or a FIFO.
class StreamOutput : public JobOutput {
 public:
  explicit StreamOutput(const std::string& path)
      : path_(path.empty() ? "standard output" : path),
        file_(path.empty() ? STDOUT_FILENO : open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
    if (file_.descriptor < 0) cannot_write(path_);
  }
  void add(std::string_view bytes, const JobProgress&) override {
    write_all(file_.descriptor, bytes, path_);
  }
  void finish(std::string_view) override {}

 private:
  std::string path_;
  File file_;
};

// Writes to a stream, whose first bytes are known only at the end, through a temporary file.
class HeldOutput : public JobOutput {
 public:
  explicit HeldOutput(const std::string& path) : stream_(path), held_(unnamed_file()) {}
  void add(std::string_view bytes, const JobProgress&) override {
    write_all(held_.descriptor, bytes, kName);
  }
  void finish(std::string_view beginning) override {
    if (pwrite(held_.descriptor, beginning.data(), beginning.size(), 0) < 0) cannot_write(kName);
    std::vector<char> piece(size_t{1} << 16);
    for (off_t at = 0;;) {
      const ssize_t count = pread(held_.descriptor, piece.data(), piece.size(), at);
      if (count < 0) cannot_write(kName);
      if (count == 0) return;
      stream_.add({piece.data(), static_cast<size_t>(count)}, {});
      at += count;
    }
  }

 private:
  static constexpr const char* kName = "temporary file";

  StreamOutput stream_;
  File held_;
};

// Writes a file that may be completed over several runs.
class JournalledOutput : public JobOutput {
 public:
  JournalledOutput(const std::string& path, const nlohmann::ordered_json& job)
      : path_(path),
        part_(path + ".part"),
        file_(open_part()),
        journal_(path, job, [this](const Journal::Entry& entry) { return holds(entry); }) {
    bytes_ = journal_.entry().bytes;
    hash_ = bytes_ > 0 ? journal_.entry().output : hash_bytes(0, "");
    if (journal_.is_damaged())
      cli::note(part_ + ": is damaged from byte " + std::to_string(bytes_) +
                " on; the rest is computed again\n");
    if (ftruncate(file_.descriptor, static_cast<off_t>(bytes_)) != 0 ||
        lseek(file_.descriptor, 0, SEEK_END) < 0)
      cannot_write(part_);
  }

  ~JournalledOutput() override {
    if (finished_ || journal_.entry().progress.lines > 0) return;
    unlink(part_.c_str());
    journal_.remove();
  }

  JobProgress progress() const override { return journal_.entry().progress; }

  void add(std::string_view bytes, const JobProgress& after) override {
    write_all(file_.descriptor, bytes, part_);
    bytes_ += bytes.size();
    hash_ = hash_bytes(hash_, bytes);
    if (after.lines == 0) return;  // only the opening was written
    if (fdatasync(file_.descriptor) != 0) cannot_write(part_);
    journal_.add({after, bytes_, hash_});
  }

  void finish(std::string_view beginning) override {
    if (pwrite(file_.descriptor, beginning.data(), beginning.size(), 0) < 0 ||
        fsync(file_.descriptor) != 0 || rename(part_.c_str(), path_.c_str()) != 0)
      cannot_write(path_);
    finished_ = true;
    journal_.remove();
  }

 private:
  int open_part() const {
    const int file = open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) cannot_write(part_);
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(file);
      throw Error(ErrorKind::Failed, part_ + ": another process writes it; expected no other job");
    }
    return file;
  }

  // Returns whether the output contains the bytes of the entry: reads it up to the entry's end.
  // While the journal is read, bytes_ and hash_ describe the output read so far.
  bool holds(const Journal::Entry& entry) {
    std::vector<char> piece(size_t{1} << 16);
    while (bytes_ < entry.bytes) {
      const uint64_t most = std::min<uint64_t>(piece.size(), entry.bytes - bytes_);
      const ssize_t count = pread(file_.descriptor, piece.data(), most, static_cast<off_t>(bytes_));
      if (count <= 0) return false;  // the entry's bytes are missing
      hash_ = hash_bytes(hash_, {piece.data(), static_cast<size_t>(count)});
      bytes_ += static_cast<uint64_t>(count);
    }
    return hash_ == entry.output;
  }

  std::string path_, part_;
  File file_;
  uint64_t bytes_ = 0, hash_ = hash_bytes(0, "");
  Journal journal_;
  bool finished_ = false;
};

}  // namespace

bool is_stream(const std::string& path) {
  struct stat status = {};
  return path.empty() || (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode));
}

uint64_t hash_lines(uint64_t before, const std::vector<std::string>& lines) {
  uint64_t hash = before;
  for (const std::string& line : lines) hash = hash_bytes(hash_bytes(hash, line), "\n");
  return hash;
}

std::unique_ptr<JobOutput> open_job_output(const std::string& path, bool beginning_at_the_end,
                                           const nlohmann::ordered_json& job) {
  if (!is_stream(path)) return std::make_unique<JournalledOutput>(path, job);
  if (beginning_at_the_end) return std::make_unique<HeldOutput>(path);
  return std::make_unique<StreamOutput>(path);
}

}  // namespace fovea::jobs
