#include "safetensors/safetensors.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

constexpr DType kAllTypes[] = {DType::f32, DType::bf16, DType::f64,
                               DType::f16, DType::i32,  DType::i64};

// Returns random bits, including NaN payloads, infinities and subnormal numbers.
Tensor random_bits(Shape shape, DType dtype, std::mt19937_64& random) {
  Tensor x = empty(std::move(shape), dtype);
  for (size_t i = 0; i < x.bytes(); ++i) x.data_as<char>()[i] = static_cast<char>(random());
  return x;
}

void expect_same(const Tensor& got, const Tensor& expected) {
  ASSERT_TRUE(got);
  EXPECT_EQ(got.dtype(), expected.dtype());
  EXPECT_EQ(got.shape(), expected.shape());
  ASSERT_EQ(got.bytes(), expected.bytes());
  EXPECT_EQ(std::string_view(got.data_as<char>(), got.bytes()),
            std::string_view(expected.data_as<char>(), expected.bytes()));
}

TEST(SafeTensors, RoundTripsEveryTypeBitForBit) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  std::map<std::string, Tensor> tensors;
  for (const DType dtype : kAllTypes) {
    const std::string name(name_of(dtype));
    tensors[name + ".scalar"] = random_bits({}, dtype, random);
    tensors[name + ".vector"] = random_bits({7}, dtype, random);
    tensors[name + ".matrix"] = random_bits({3, 5}, dtype, random);
    tensors[name + ".none"] = random_bits({0}, dtype, random);
    tensors[name + ".hollow"] = random_bits({4, 0, 2}, dtype, random);
  }
  write_safetensors(folder / "f.safetensors", tensors);
  const SafeTensors file(folder / "f.safetensors");
  ASSERT_EQ(file.stored().size(), tensors.size());
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  for (const auto& [name, tensor] : tensors) {
    SCOPED_TRACE(name);
    expect_same(file.tensor(name), tensor);
    // Files written by fovea need no copies: each tensor is aligned in the mapping.
    EXPECT_EQ(file.tensor(name).data(), file.find(name)->data);
  }
}

TEST(SafeTensors, RoundTripsRandomHeaders) {
  const TemporaryFolder folder;
  std::mt19937_64 random(2);
  for (int round = 0; round < 300; ++round) {
    std::map<std::string, Tensor> tensors;
    for (uint64_t count = random() % 12; count > 0; --count) {
      std::string name;
      for (uint64_t i = random() % 20; i > 0; --i) name += "ab.\"\\/\n\x01_0 {}"[random() % 14];
      name += (random() % 4 == 0) ? "\xc3\xa9\xf0\x9f\x98\x80" : "";
      Shape shape;
      for (uint64_t axes = random() % 5; axes > 0; --axes)
        shape.push_back(static_cast<int64_t>(random() % 4));
      tensors[name] = random_bits(shape, kAllTypes[random() % 6], random);
    }
    write_safetensors(folder / "f.safetensors", tensors);
    const std::string bytes = read_file(folder / "f.safetensors");
    uint64_t header;
    std::memcpy(&header, bytes.data(), 8);
    EXPECT_EQ(header % 8, 0u);
    const SafeTensors file(folder / "f.safetensors");
    ASSERT_EQ(file.stored().size(), tensors.size());
    for (const auto& [name, tensor] : tensors) expect_same(file.tensor(name), tensor);
    write_safetensors(folder / "again.safetensors", tensors);
    EXPECT_EQ(read_file(folder / "again.safetensors"), bytes);
  }
}

// Compares the exact bytes of a file, so that the format does not change by accident.
TEST(SafeTensors, WritesKnownBytes) {
  const TemporaryFolder folder;
  write_safetensors(folder / "f.safetensors", {{"b", tensor_of({1.0f}, {1})},
                                               {"a", tensor_of({2.0f, 3.0f}, {2}, DType::f32)},
                                               {"c", zeros({}, DType::i64)}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"c":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[16,20]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::string elements("\0\0\0\0\0\0\0\0\0\0\0\x40\0\0\x40\x40\0\0\x80\x3f", 20);
  EXPECT_EQ(read_file(folder / "f.safetensors").substr(8), padded + elements);
}

TEST(SafeTensors, SavesOverTheFileItReads) {
  const TemporaryFolder folder;
  const std::string path = folder / "f.safetensors";
  write_safetensors(path, {{"w", tensor_of({1, 2, 3}, {3})}});
  const std::string before = read_file(path);
  const Tensor mapped = SafeTensors(path).tensor("w");  // outlives the reader
  write_safetensors(path, {{"w", mapped}});
  EXPECT_EQ(read_file(path), before);
  EXPECT_EQ(to_floats(mapped), (std::vector<float>{1, 2, 3}));
}

// A prompt cache may have any name; it was written as x.bin and then refused as a pickle. Models of
// such names are still refused (ModelFolder).
TEST(SafeTensors, AreReadWhateverTheirName) {
  const TemporaryFolder folder;
  write_safetensors(folder / "x.bin", {{"a", full({2}, 3.0)}});
  EXPECT_EQ(to_floats(SafeTensors(folder / "x.bin").tensor("a")), (std::vector<float>{3, 3}));
}

TEST(SafeTensors, CopiesUnalignedTensors) {
  const TemporaryFolder folder;
  std::string header = R"({"h":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},)"
                       R"("w":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})";
  const uint64_t length = header.size();
  write_file_atomically(
      folder / "f.safetensors",
      Pieces{{reinterpret_cast<const char*>(&length), 8}, header, {"\x80\x3f\0\0\x80\x3f", 6}});
  const Tensor w = SafeTensors(folder / "f.safetensors").tensor("w");
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w.data()) % 4, 0u);
  EXPECT_EQ(w.data_as<float>()[0], 1.0f);
}

TEST(SafeTensors, NamesAMissingTensor) {
  const TemporaryFolder folder;
  write_safetensors(folder / "f.safetensors", {{"w", zeros({1})}});
  expect_error(ErrorKind::BadFile,
               {"f.safetensors: tensor v is missing; expected it among the 1 tensors"},
               [&] { SafeTensors(folder / "f.safetensors").tensor("v"); });
  expect_error(ErrorKind::InvalidArgument, {"tensor __metadata__: is a reserved name"},
               [&] { write_safetensors(folder / "f", {{"__metadata__", zeros({1})}}); });
  expect_error(ErrorKind::InvalidArgument, {"tensor x: is unset"},
               [&] { write_safetensors(folder / "f", {{"x", {}}}); });
}

TEST(SafeTensors, CountsNonFiniteNumbers) {
  const float inf = INFINITY;
  const Tensor x = tensor_of({0.0f, 1e-45f, -inf, inf, NAN, 3e38f, -0.0f}, {7});
  EXPECT_EQ(count_nonfinite(x), 3);
  Tensor halves = empty({4}, DType::f16);
  const uint16_t bits[] = {0x7c00, 0xfe01, 0x7bff, 0x0001};
  std::memcpy(halves.data(), bits, sizeof bits);
  EXPECT_EQ(count_nonfinite(halves), 2);
  Tensor doubles = empty({3}, DType::f64);
  doubles.data_as<double>()[0] = NAN;
  doubles.data_as<double>()[1] = 1e308;
  doubles.data_as<double>()[2] = -INFINITY;
  EXPECT_EQ(count_nonfinite(doubles), 2);
  Tensor upper = empty({2}, DType::bf16);
  upper.data_as<bf16>()[0] = narrow(NAN);
  upper.data_as<bf16>()[1] = narrow(1.0f);
  EXPECT_EQ(count_nonfinite(upper), 1);
  EXPECT_EQ(count_nonfinite(empty({3, 0})), 0);
  Tensor whole = empty({1}, DType::i64);
  whole.data_as<int64_t>()[0] = -1;
  EXPECT_EQ(count_nonfinite(whole), 0);
}

// Compares all 65,536 half-precision numbers with arithmetic in double, which represents each
// exactly.
TEST(SafeTensors, WidensEveryHalfExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31),
              mantissa = static_cast<int>(bits & 1023);
    const float got = widen_half(static_cast<uint16_t>(bits));
    EXPECT_EQ(std::signbit(got), (bits & 0x8000) != 0);
    if (exponent == 31 && mantissa != 0) {
      ASSERT_TRUE(std::isnan(got)) << bits;
      // Compares the payloads without the highest bit, which marks a quiet NaN and is set by the
      // conversion.
      EXPECT_EQ(std::bit_cast<uint32_t>(got) & 0x3fffff, static_cast<uint32_t>(mantissa & 511)
                                                             << 13);
      continue;
    }
    const double magnitude = exponent == 31  ? INFINITY
                             : exponent == 0 ? std::ldexp(mantissa, -24)
                                             : std::ldexp(1024 + mantissa, exponent - 25);
    ASSERT_EQ(std::fabs(static_cast<double>(got)), magnitude) << bits;
  }
  Tensor halves = empty({1, 2}, DType::f16);
  halves.data_as<uint16_t>()[0] = 0x3c00;
  halves.data_as<uint16_t>()[1] = 0xc000;
  EXPECT_EQ(to_floats(widen_halves(halves)), (std::vector<float>{1, -2}));
  EXPECT_EQ(widen_halves(halves).shape(), (Shape{1, 2}));
}

TEST(SafeTensors, ListsTheFirstNames) {
  EXPECT_EQ(first_names({"a"}), "a");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e"}), "a, b, c, d, e");
  EXPECT_EQ(first_names({"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more");
}

TEST(SafeTensorsFiles, AreReadAndReplacedByTensorsOfTheirOwn) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "two.safetensors";
  write_safetensors(path, {{"a", tensor_of({1, 2}, {2})}, {"b", full({1}, 3, DType::i32)}});
  const std::map<std::string, Tensor> read = read_safetensors(path);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(to_floats(read.at("a")), (std::vector<float>{1, 2}));
  write_safetensors(path, read);  // from its own mapping
  EXPECT_EQ(read_safetensors(path).at("b").span<int32_t>()[0], 3);
  expect_error(ErrorKind::BadFile, {"none.safetensors"},
               [&] { read_safetensors(folder / "none.safetensors"); });
}

}  // namespace
}  // namespace fovea
