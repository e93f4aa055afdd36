// The hashes of an untrusted index may be correct for a forged graph. hnswlib does not check the
// graph, and one in five forgeries caused an access out of bounds. Each forgery must now give a
// usable graph or a one-line error; AddressSanitizer detects invalid accesses.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "base/error.h"
#include "fovea/core/random.h"
#include "search/vector_graph.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

constexpr int64_t kCount = 400, kWidth = 4;
constexpr size_t kHead = 96;
// The bytes of one vector in the file: the number of its links and 32 links, its elements, its
// label.
constexpr size_t kElement = 33 * 4 + kWidth * 4 + 8;

class ForgedGraph : public testing::Test {
 protected:
  ForgedGraph() : vectors_(empty({kCount, kWidth})) {
    Random random(5, Stream::init);
    for (int64_t i = 0; i < kCount * kWidth; ++i) vectors_.data_as<float>()[i] = random.normal();
    bytes_ = infer::VectorGraph(vectors_, infer::Similarity::dot).bytes();
  }

  // Returns whether the graph is accepted.
  bool read(std::string_view bytes) {
    // The copy has the exact size, so that a sanitizer detects reads beyond its end.
    const std::vector<char> copy(bytes.begin(), bytes.end());
    try {
      const infer::VectorGraph graph({copy.data(), copy.size()}, "graph.hnsw", kCount, kWidth,
                                     infer::Similarity::dot);
      for (const int64_t i : {0, 17, 399}) {
        EXPECT_EQ(graph.vector(i).size(), size_t{kWidth});
        const auto found = graph.nearest({vectors_.data_as<float>() + i * kWidth, kWidth}, 10, 256);
        EXPECT_LE(found.size(), 10u);
        for (size_t n = 0; n < found.size(); ++n) {
          EXPECT_TRUE(found[n].number >= 0 && found[n].number < kCount);
          EXPECT_TRUE(n == 0 || found[n - 1].similarity >= found[n].similarity);
        }
      }
      return true;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_EQ(error.kind(), ErrorKind::BadFile) << message;
      EXPECT_TRUE(message.starts_with("graph.hnsw: ") && message.find('\n') == message.npos &&
                  message.size() < 200)
          << message;
      return false;
    }
  }

  template <class T>
  std::string with(size_t place, T value) const {
    std::string bytes = bytes_;
    std::memcpy(bytes.data() + place, &value, sizeof value);
    return bytes;
  }

  Tensor vectors_;
  std::string bytes_;
};

TEST_F(ForgedGraph, UnmodifiedGraphIsAccepted) {
  ASSERT_TRUE(read(bytes_));
  const infer::VectorGraph graph(bytes_, "graph.hnsw", kCount, kWidth, infer::Similarity::dot);
  EXPECT_EQ(graph.bytes(), bytes_);
  EXPECT_GT(bytes_.size(), kHead + kCount * (kElement + 4)) << "some vectors are on upper levels";
}

TEST_F(ForgedGraph, ForgedHeaderFieldsAreRefused) {
  for (size_t place = 0; place < kHead; place += 4) {
    uint32_t old = 0;
    std::memcpy(&old, bytes_.data() + place, sizeof old);
    for (const uint32_t value : {0u, 1u, old - 1, old + 1, old * 2, old ^ 0x80000000u, 0x7FFFFFFFu,
                                 0xFFFFFFFFu, 1u << 30}) {
      const bool of_new_levels = place == 80 || place == 84;  // used only for new vectors
      if (value == old) continue;
      EXPECT_EQ(read(with(place, value)), of_new_levels) << place << " " << value;
    }
  }
}

TEST_F(ForgedGraph, ForgedLinksAreRefused) {
  const size_t upper = kHead + kCount * kElement;
  for (size_t i = 0; i < kCount; i += 7) {
    const size_t element = kHead + i * kElement;
    for (const uint32_t value : {uint32_t{kCount}, 0xFFFFFFFFu, 0x80000000u, 1u << 20})
      EXPECT_FALSE(read(with(element + 4, value))) << "changed a link of vector " << i;
    for (const uint32_t value : {33u, 0xFFFFu, 0x10001u})
      EXPECT_FALSE(read(with(element, value))) << "changed the number of its links";
    EXPECT_FALSE(read(with(element + kElement - 8, uint64_t{i + 1}))) << "changed its label";
    for (const float value : {INFINITY, NAN})
      EXPECT_FALSE(read(with(element + 33 * 4, value))) << "changed its elements";
  }
  EXPECT_FALSE(read(with(upper, 68u))) << "claimed a missing level";
  EXPECT_FALSE(read(with(upper, 0xFFFFFFFFu)));
}

TEST_F(ForgedGraph, RandomChangesAreHarmless) {
  std::mt19937_64 random(1);
  size_t taken = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string bytes = bytes_;
    // A third of the forgeries change the links of upper levels, which are few.
    const size_t begin = i % 3 == 0 ? kHead + kCount * kElement : 0;
    for (size_t n = 1 + random() % 3; n > 0; --n) {
      const size_t place = begin + random() % (bytes.size() - begin);
      if (i % 2 == 0) {
        bytes[place] = static_cast<char>(random());
      } else {
        const uint32_t values[] = {0,      1,          kCount - 1,
                                   kCount, 0xFFFFFFFF, static_cast<uint32_t>(random())};
        const size_t word = std::min(place / 4 * 4, bytes.size() - 4);
        std::memcpy(bytes.data() + word, &values[random() % 6], 4);
      }
    }
    taken += read(bytes);
  }
  EXPECT_TRUE(taken > 100 && taken < 5900) << taken;
}

TEST_F(ForgedGraph, WrongLengthsAreRefused) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 500; ++i)
    EXPECT_FALSE(read(std::string_view(bytes_).substr(0, random() % bytes_.size())));
  for (const size_t more : {1, 4, 68, 1000}) EXPECT_FALSE(read(bytes_ + std::string(more, '\0')));
}

TEST_F(ForgedGraph, WrongCountsAndWidthsAreRefused) {
  for (const int64_t count : {int64_t{0}, int64_t{399}, int64_t{401}, INT64_MAX, int64_t{-1}}) {
    EXPECT_THROW(infer::VectorGraph(bytes_, "graph.hnsw", count, kWidth, infer::Similarity::dot),
                 Error)
        << count;
  }
  for (const int64_t width : {int64_t{3}, int64_t{5}, INT64_MAX, INT64_MAX / 4}) {
    EXPECT_THROW(infer::VectorGraph(bytes_, "graph.hnsw", kCount, width, infer::Similarity::dot),
                 Error)
        << width;
  }
}

// The elements are finite, but their products are not.
TEST_F(ForgedGraph, HugeElementsAreOrdered) {
  std::mt19937_64 random(3);
  std::string bytes = bytes_;
  for (size_t i = 0; i < kCount; ++i) {
    for (size_t x = 0; x < kWidth; ++x) {
      const float value = random() % 2 == 0 ? 3e38f : -3e38f;
      std::memcpy(bytes.data() + kHead + i * kElement + 33 * 4 + x * 4, &value, sizeof value);
    }
  }
  for (int64_t i = 0; i < kCount * kWidth; ++i) vectors_.data_as<float>()[i] *= 1e30f;
  EXPECT_TRUE(read(bytes));
}

// With a forged width in index.json, a query's vector was read beyond its end.
TEST(VectorGraph, RefusesAQueryOfAnotherWidth) {
  const infer::VectorGraph graph(full({10, 8}, 1), infer::Similarity::dot);
  const std::vector<float> query(9, 1.0f);
  expect_error(ErrorKind::InvalidArgument, {"9 elements", "expected 8"},
               [&] { graph.nearest(query, 1, 64); });
}

}  // namespace
}  // namespace fovea
