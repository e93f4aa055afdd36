#include "data/token_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace fovea::train {
namespace {

constexpr char magic[8] = {'F', 'O', 'V', 'E', 'A', 'T', 'O', 'K'};

struct Footer {
  TokenCacheContents counts;
  uint64_t ids_hash = 0;
  uint64_t version = 1;
  char name[8] = {};
  uint64_t hash = 0;  // hash of the preceding bytes of the footer
};
static_assert(sizeof(Footer) == 88, "its memory is written, so it must have no padding");

uint64_t hash_of(const Footer& footer) {
  return hash_bytes({reinterpret_cast<const char*>(&footer), offsetof(Footer, hash)});
}

}  // namespace

TokenCacheWriter::TokenCacheWriter(const std::string& path) : path_(path) {
  const std::filesystem::path final_path(path);
  // remove_leftovers() recognises this name.
  temporary_ =
      fmt::format("{}/.{}.saving-{}", parent_of(path), final_path.filename().string(), getpid());
  system_calls().unlink(temporary_.c_str());  // from a killed process with the same id
  file_ = system_calls().open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  require(file_ >= 0, "open");
}

TokenCacheWriter::~TokenCacheWriter() {
  if (file_ < 0) return;
  system_calls().close(file_);
  system_calls().unlink(temporary_.c_str());
}

void TokenCacheWriter::require(bool fine, const char* call) const {
  if (fine) return;
  fail(ErrorKind::Failed,
       "{}: cannot be written ({}: {}); expected a writable folder with space for the tokens",
       path_, call, std::generic_category().message(errno));
}

void TokenCacheWriter::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = system_calls().write(file_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    require(written > 0, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void TokenCacheWriter::append(std::string_view ids) {
  hasher_.add(ids);
  write(ids);
}

void TokenCacheWriter::commit(const TokenCacheContents& counts) {
  Footer footer{.counts = counts, .ids_hash = hasher_.hash()};
  std::memcpy(footer.name, magic, sizeof magic);
  footer.hash = hash_of(footer);
  write({reinterpret_cast<const char*>(&footer), sizeof footer});
  require(system_calls().fsync(file_) == 0, "fsync");
  require(system_calls().rename(temporary_.c_str(), path_.c_str()) == 0, "rename");
  system_calls().close(std::exchange(file_, -1));
}

std::optional<TokenCache> open_token_cache(const std::string& path) {
  if (!is_file(path)) return {};
  auto file = std::make_shared<const MappedFile>(path);
  Footer footer;
  if (file->size() < sizeof footer) return {};
  const std::string_view ids = file->bytes().substr(0, file->size() - sizeof footer);
  std::memcpy(&footer, ids.data() + ids.size(), sizeof footer);
  const bool ours = std::memcmp(footer.name, magic, sizeof magic) == 0 && footer.version == 1;
  const uint64_t width = footer.counts.width;
  if (!ours || (width != 2 && width != 4) ||
      ids.size() != static_cast<uint64_t>(footer.counts.tokens) * width)
    return {};
  if (footer.hash != hash_of(footer) || footer.ids_hash != hash_bytes(ids)) return {};
  return TokenCache{std::move(file), footer.counts};
}

}  // namespace fovea::train
