#include "data/token_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/unnamed_file.h"

namespace fovea::train {
namespace {

constexpr char magic[8] = {'F', 'O', 'V', 'E', 'A', 'T', 'O', 'K'};

constexpr uint64_t kVersion = 2;

using Part = TokenCounts::Part;

struct Footer {
  uint64_t corpus = 0, tokenizer = 0, width = 0, parts = 0;
  uint64_t ids_hash = 0;
  uint64_t version = kVersion;
  char name[8] = {};
  uint64_t hash = 0;  // hash of the counts of the parts and the preceding bytes of the footer
};
static_assert(sizeof(Footer) == 64 && sizeof(Part) == 32,
              "their memory is written, so they must have no padding");

std::string_view bytes_of(const std::vector<Part>& parts) {
  return {reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(Part)};
}

uint64_t hash_of(const std::vector<Part>& parts, const Footer& footer) {
  Hasher hasher;
  hasher.add(bytes_of(parts));
  hasher.add({reinterpret_cast<const char*>(&footer), offsetof(Footer, hash)});
  return hasher.hash();
}

// Throws Failed, with the reason, unless `fine`.
void require(bool fine, const std::string& path, const char* call) {
  if (fine) return;
  fail(ErrorKind::Failed,
       "{}: cannot be written ({}: {}); expected a writable folder with space for the tokens", path,
       call, std::generic_category().message(errno));
}

void write(int file, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = system_calls().write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    require(written > 0, path, "write");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

// Returns the hash of the first bytes of a file, and releases their memory piece by piece.
uint64_t hash_of(const MappedFile& file, std::string_view bytes) {
  constexpr size_t kPiece = 1 << 20;
  Hasher hasher;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
    const std::string_view piece = bytes.substr(0, kPiece);
    hasher.add(piece);
    file.release(piece.data(), piece.size());
  }
  return hasher.hash();
}

}  // namespace

TokenCacheWriter::TokenCacheWriter(const std::string& path) : path_(path) {
  const std::filesystem::path final_path(path);
  // remove_leftovers() recognises this name.
  temporary_ =
      fmt::format("{}/.{}.saving-{}", parent_of(path), final_path.filename().string(), getpid());
  system_calls().unlink(temporary_.c_str());  // from a killed process with the same id
  file_ = system_calls().open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  require(file_ >= 0, path_, "open");
}

TokenCacheWriter::~TokenCacheWriter() {
  if (file_ < 0) return;
  system_calls().close(file_);
  system_calls().unlink(temporary_.c_str());
}

void TokenCacheWriter::append(std::string_view ids) {
  hasher_.add(ids);
  write(file_, path_, ids);
}

void TokenCacheWriter::commit(const TokenCounts& counts) {
  Footer footer{.corpus = counts.corpus,
                .tokenizer = counts.tokenizer,
                .width = counts.width,
                .parts = counts.parts.size(),
                .ids_hash = hasher_.hash()};
  std::memcpy(footer.name, magic, sizeof magic);
  footer.hash = hash_of(counts.parts, footer);
  write(file_, path_, bytes_of(counts.parts));
  write(file_, path_, {reinterpret_cast<const char*>(&footer), sizeof footer});
  require(system_calls().fsync(file_) == 0, path_, "fsync");
  require(system_calls().rename(temporary_.c_str(), path_.c_str()) == 0, path_, "rename");
  system_calls().close(std::exchange(file_, -1));
}

TemporaryTokens::TemporaryTokens() : file_(unnamed_file()) {}

TemporaryTokens::~TemporaryTokens() { system_calls().close(file_); }

void TemporaryTokens::append(std::string_view ids) {
  write(file_, "the temporary file of the tokens", ids);
}

std::shared_ptr<const MappedFile> TemporaryTokens::mapped() const {
  return std::make_shared<const MappedFile>(fmt::format("/proc/self/fd/{}", file_));
}

std::optional<TokenCache> open_token_cache(const std::string& path) {
  if (!is_file(path)) return {};
  auto file = std::make_shared<const MappedFile>(path);
  Footer footer;
  std::string_view rest = file->bytes();
  if (rest.size() < sizeof footer) return {};
  std::memcpy(&footer, rest.data() + rest.size() - sizeof footer, sizeof footer);
  rest.remove_suffix(sizeof footer);
  const bool ours =
      std::memcmp(footer.name, magic, sizeof magic) == 0 && footer.version == kVersion;
  if (!ours || (footer.width != 2 && footer.width != 4) ||
      footer.parts > rest.size() / sizeof(Part))
    return {};
  TokenCounts counts{footer.corpus, footer.tokenizer, footer.width,
                     std::vector<Part>(static_cast<size_t>(footer.parts))};
  const std::string_view table = rest.substr(rest.size() - bytes_of(counts.parts).size());
  std::memcpy(counts.parts.data(), table.data(), table.size());
  rest.remove_suffix(table.size());
  if (footer.hash != hash_of(counts.parts, footer)) return {};
  uint64_t tokens = 0;
  for (const Part& part : counts.parts) tokens += static_cast<uint64_t>(part.tokens);
  if (rest.size() != tokens * footer.width || footer.ids_hash != hash_of(*file, rest)) return {};
  return TokenCache{std::move(file), std::move(counts)};
}

}  // namespace fovea::train
