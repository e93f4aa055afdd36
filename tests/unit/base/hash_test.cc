#include "base/hash.h"

#include <gtest/gtest.h>

#include <string>

namespace fovea {
namespace {

// Compares with the XXH3 specification: hashes in manifests must not change with the version of the
// xxHash library.
TEST(Hash, HasTheSpecifiedValues) {
  EXPECT_EQ(hash_text(hash_bytes("")), "2d06800538d394c2");
  EXPECT_EQ(hash_text(hash_bytes("abc")), "78af5f94892f3950");
  EXPECT_EQ(hash_text(0xab), "00000000000000ab");
}

TEST(Hash, DoesNotDependOnPieces) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 7);
  for (const size_t cut : {0, 1, 240, 241, 1024, 4999, 5000}) {
    Hasher hasher;
    hasher.add(std::string_view(bytes).substr(0, cut));
    hasher.add(std::string_view(bytes).substr(cut));
    EXPECT_EQ(hasher.hash(), hash_bytes(bytes)) << cut;
  }
}

TEST(Hash, ChangesWithEachBit) {
  std::string bytes(300, 'x');
  const uint64_t before = hash_bytes(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(hash_bytes(bytes), before) << bit;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
  }
}

}  // namespace
}  // namespace fovea
