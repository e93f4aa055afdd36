#include "hub/digest.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace fovea::model {

std::unique_ptr<Digest> digest_of(const HubFile& file) {
  constexpr size_t kSha256Digits = 64;
  const bool large = file.hash.size() == kSha256Digits;
  std::unique_ptr<Digest> digest = hub_module().digest(large);
  if (!large) digest->add(fmt::format("blob {}", file.bytes) + '\0');
  return digest;
}

void add_file(Digest& digest, const std::string& path, const std::function<bool()>& tick) {
  constexpr size_t kPiece = size_t{4} << 20;
  if (std::filesystem::file_size(path) == 0) return;
  const MappedFile file(path);
  for (size_t i = 0; i < file.size() && tick(); i += kPiece) {
    const std::string_view piece = file.bytes().substr(i, kPiece);
    digest.add(piece);
    file.release(piece.data(), piece.size());
  }
}

}  // namespace fovea::model
