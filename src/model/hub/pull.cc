// The files of a plan are fetched into the cache, several at once.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "hub/cache.h"
#include "hub/digest.h"
#include "hub/name.h"
#include "hub/request.h"

namespace fovea::model {
namespace {

constexpr size_t kAtOnce = 4;  // files

// The progress of all files together.
class Watch {
 public:
  Watch(uint64_t bytes, const std::function<bool(const PullProgress&)>& progress)
      : progress_(progress) {
    now_.bytes = bytes;
  }
  void add(int64_t bytes) { done_ += bytes; }
  // Calls the caller's function at most every 0.1 s; returns false if the pull has to stop.
  bool tick() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock() && Clock::now() - last_ > std::chrono::milliseconds(100)) report("");
    return !stopped_;
  }
  void tell(const std::string& event) {
    const std::lock_guard lock(mutex_);
    report(event);
  }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  using Clock = std::chrono::steady_clock;
  void report(const std::string& event) {
    last_ = Clock::now();
    now_.done = static_cast<uint64_t>(std::max<int64_t>(0, done_));
    now_.event = event;
    if (progress_ && !progress_(now_)) stopped_ = true;
  }

  const std::function<bool(const PullProgress&)>& progress_;
  std::mutex mutex_;
  PullProgress now_;
  Clock::time_point last_ = {};
  std::atomic<int64_t> done_ = 0;
  std::atomic<bool> stopped_ = false;
};

// HASH.incomplete: bytes are written at their own offsets, so that two processes that write the
// same file on a file system without locks do no harm.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path) {
    constexpr mode_t kMode = 0666;  // less the umask
    file_ = system_calls().open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kMode);
    if (file_ < 0) refuse("opened");
    size_ = static_cast<uint64_t>(lseek(file_, 0, SEEK_END));
  }
  ~PartialFile() {
    if (file_ >= 0) system_calls().close(file_);
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  uint64_t size() const { return size_; }
  void write(std::string_view bytes) {
    size_ += bytes.size();
    while (!bytes.empty()) {
      const ssize_t written = system_calls().write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) refuse("written");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    // The disk writes while the network is read; otherwise move_to() would wait for all of it.
    if (size_ - flushed_ < kFlush) return;
    sync_file_range(file_, static_cast<off_t>(flushed_), static_cast<off_t>(size_ - flushed_),
                    SYNC_FILE_RANGE_WRITE);
    flushed_ = size_;
  }
  void cut() {  // to nothing
    if (ftruncate(file_, 0) != 0) refuse("cut");
    lseek(file_, 0, SEEK_SET);
    size_ = flushed_ = 0;
  }
  void move_to(const std::string& path) {
    if (system_calls().fsync(file_) != 0) refuse("written");
    if (system_calls().rename(path_.c_str(), path.c_str()) != 0 && !is_file(path))
      refuse("renamed");
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::Failed, "{}: cannot be {}: {}", path_, what, std::strerror(errno));
  }

  std::string path_;
  static constexpr uint64_t kFlush = uint64_t{16} << 20;
  int file_ = -1;
  uint64_t size_ = 0, flushed_ = 0;
};

class Pull {
 public:
  Pull(const HubPlan& plan, const HubSettings& settings,
       const std::function<bool(const PullProgress&)>& progress)
      : plan_(plan),
        settings_(settings),
        folder_(cache_folder(plan.name, settings)),
        transport_(hub_module().transport()),
        watch_(plan.missing(), progress) {}

  std::string run() {
    make_directories(folder_ + "/blobs");
    if (const uint64_t free = free_space(folder_), needed = plan_.missing(); free < needed)
      fail(ErrorKind::Failed, "{}: has {} bytes free; expected {} for {}", folder_, free, needed,
           text_of(plan_.name));
    tag_cache();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < std::min(kAtOnce, plan_.files.size()); ++i)
      threads.emplace_back([this] { fetch_files(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    if (watch_.stopped())
      fail(ErrorKind::Failed, "{}: stopped; what has been fetched is kept for the next pull",
           text_of(plan_.name));
    watch_.tell("");
    if (plan_.name.revision != plan_.commit) {
      const std::string ref = folder_ + "/refs/" + plan_.name.revision;
      make_directories(parent_of(ref));
      write_file_atomically(ref, plan_.commit);
    }
    const std::string snapshot = folder_ + "/snapshots/" + plan_.commit;
    return plan_.model.empty() ? snapshot : snapshot + "/" + plan_.model;
  }

 private:
  // Programs for backups leave out a folder with this file.
  void tag_cache() const {
    const std::string tag = settings_.cache + "/CACHEDIR.TAG";
    if (!is_file(tag))
      write_file_atomically(tag,
                            "Signature: 8a477f597d28d172789f06886806bc55\n"
                            "# This is a cache of models; see https://bford.info/cachedir/\n");
  }

  void fetch_files() {
    for (size_t i = next_++; i < plan_.files.size() && !watch_.stopped(); i = next_++) {
      try {
        fetch(plan_.files[i]);
        if (!watch_.stopped()) link_blob(folder_, plan_.commit, plan_.files[i]);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        watch_.stop();
      }
    }
  }

  bool has(const HubFile& file) const {
    std::error_code missing;
    return std::filesystem::file_size(folder_ + "/blobs/" + file.hash, missing) == file.bytes &&
           !missing;
  }

  void fetch(const HubFile& file) {
    const std::string lock_path =
        settings_.cache + "/.locks/" + cache_folder_name(plan_.name) + "/" + file.hash + ".lock";
    bool told = false;
    const CacheLock lock(lock_path, [&] {
      if (!told) watch_.tell(file.path + ": another program fetches it; waiting");
      told = true;
      return watch_.tick();
    });
    if (has(file)) {
      if (!file.cached) watch_.add(static_cast<int64_t>(file.bytes));
      return;
    }
    const std::string blob = folder_ + "/blobs/" + file.hash;
    const std::string partial = blob + ".incomplete";
    for (bool resumed = true; resumed;) {
      std::string found;
      {
        PartialFile out(partial);
        resumed = out.size() > 0;
        found = receive(file, out, partial);
        if (watch_.stopped()) return;
        if (found == file.hash) {
          out.move_to(blob);
          return;
        }
      }
      // The bytes of an earlier pull may be damaged; those of one pull that have another hash are
      // wrong at the server.
      watch_.add(-static_cast<int64_t>(file.bytes));
      system_calls().unlink(partial.c_str());
      if (!resumed)
        fail(ErrorKind::Failed, "{}: {}: has the hash {}; expected {}, as the Hub lists it",
             text_of(plan_.name), file.path, found, file.hash);
    }
  }

  // Receives the bytes that `out` lacks, and returns the hash of the whole file.
  std::string receive(const HubFile& file, PartialFile& out, const std::string& partial) {
    if (out.size() > file.bytes) out.cut();
    auto digest = digest_of(file);
    const auto begin = [&] {
      out.cut();
      digest = digest_of(file);
    };
    if (out.size() > 0) {
      add_file(*digest, partial, [&] { return watch_.tick(); });
      watch_.add(static_cast<int64_t>(out.size()));
    }
    HttpRequest request =
        request_to((plan_.name.dataset ? "datasets/" : "") + plan_.name.repository + "/resolve/" +
                       plan_.commit + "/" + url_encoded(file.path),
                   settings_);
    const auto tick = [this] { return watch_.tick(); };
    Patience patience;
    while (out.size() < file.bytes) {
      request.offset = out.size();
      const uint64_t before = out.size();
      bool first = true;
      const HttpResponse response = transport_->get(
          request,
          [&](const HttpResponse& head, std::string_view bytes) {
            if (first && head.status == 200 && out.size() > 0) {  // the server knows no ranges
              watch_.add(-static_cast<int64_t>(out.size()));
              begin();
            }
            first = false;
            if (out.size() + bytes.size() > file.bytes)
              fail(ErrorKind::Failed, "{}: {}: is longer than {} bytes, as the Hub lists it",
                   text_of(plan_.name), file.path, file.bytes);
            digest->add(bytes);
            out.write(bytes);
            watch_.add(static_cast<int64_t>(bytes.size()));
          },
          tick);
      if (watch_.stopped() || out.size() == file.bytes) break;
      if (!patience.wait(
              response, out.size() > before, text_of(plan_.name) + ": " + file.path,
              [this](const std::string& event) { watch_.tell(event); }, tick))
        break;
    }
    return watch_.stopped() ? "" : digest->hexadecimal();
  }

  const HubPlan& plan_;
  const HubSettings& settings_;
  const std::string folder_;
  const std::unique_ptr<Transport> transport_;
  Watch watch_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;  // of failure_
  std::exception_ptr failure_;
};

}  // namespace

std::string pull(const HubPlan& plan, const HubSettings& settings,
                 const std::function<bool(const PullProgress&)>& progress) {
  return Pull(plan, settings, progress).run();
}

}  // namespace fovea::model
