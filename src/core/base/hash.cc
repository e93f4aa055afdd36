#include "base/hash.h"

#include <xxhash.h>

#include <new>

#include "base/error.h"
#include "base/files.h"

namespace fovea {

uint64_t hash_bytes(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string hash_text(uint64_t hash) { return fmt::format("{:016x}", hash); }

Hasher::Hasher() : state_(XXH3_createState()) {
  if (!state_ || XXH3_64bits_reset(state_.get()) != XXH_OK) throw std::bad_alloc();
}

void Hasher::add(std::string_view bytes) {
  XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
}

void Hasher::add(const MappedFile& file) {
  constexpr size_t kPiece = 16 << 20;
  for (size_t begin = 0; begin < file.size(); begin += kPiece) {
    const std::string_view piece = file.bytes().substr(begin, kPiece);
    add(piece);
    file.release(piece.data(), piece.size());
  }
}

uint64_t Hasher::hash() const { return XXH3_64bits_digest(state_.get()); }

void Hasher::Free::operator()(XXH3_state_s* state) const { XXH3_freeState(state); }

}  // namespace fovea
