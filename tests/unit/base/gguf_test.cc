// The GGUF container: every type of value is read, and hostile files are refused with an error that
// names the fault.

#include "base/gguf.h"

#include <cstring>
#include <functional>
#include <random>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

constexpr const char* kGolden = "tests/goldens/gguf/every_type.gguf";

TEST(Gguf, ReadsEveryTypeOfValue) {
  const Gguf file(kGolden);
  EXPECT_EQ(file.integer("scalar.u8"), 255);
  EXPECT_EQ(file.integer("scalar.i8"), -128);
  EXPECT_EQ(file.integer("scalar.u16"), 65535);
  EXPECT_EQ(file.integer("scalar.i16"), -32768);
  EXPECT_EQ(file.integer("scalar.u32"), 4294967295);
  EXPECT_EQ(file.integer("scalar.i32"), -2147483648);
  EXPECT_EQ(file.integer("scalar.i64"), INT64_MIN);
  EXPECT_EQ(file.number("scalar.f32"), 0.5);
  EXPECT_EQ(file.number("scalar.f64"), 0.1);
  EXPECT_EQ(file.number("scalar.u8"), 255.0);
  EXPECT_EQ(file.boolean("scalar.bool"), true);
  EXPECT_EQ(file.text("scalar.text"), "naïve ▁ text");
  EXPECT_EQ(file.integers("array.integers"), (std::vector<int64_t>{-1, 0, 7}));
  EXPECT_EQ(file.numbers("array.numbers"), (std::vector<float>{0.25, -2}));
  EXPECT_EQ(file.texts("array.texts"), (std::vector<std::string_view>{"a", "", "▁b"}));
  EXPECT_EQ(file.text("absent"), std::nullopt);
  EXPECT_EQ(file.texts("absent"), std::nullopt);
}

TEST(Gguf, RefusesTheWrongType) {
  const Gguf file(kGolden);
  const auto refused = [](auto&& read, const char* message) {
    expect_error(ErrorKind::BadFile, {kGolden, message}, read);
  };
  refused([&] { file.integer("scalar.u64"); }, "scalar.u64 is u64 (byte ");
  refused([&] { file.integer("scalar.f32"); }, "scalar.f32 is f32 (byte ");
  refused([&] { file.integer("array.integers"); }, "is an array of 3 i32 (byte ");
  refused([&] { file.number("scalar.text"); }, "scalar.text is text (byte ");
  refused([&] { file.boolean("scalar.u8"); }, "expected true or false");
  refused([&] { file.text("scalar.bool"); }, "expected a string");
  refused([&] { file.texts("array.numbers"); }, "expected an array of strings");
  refused([&] { file.texts("scalar.text"); }, "expected an array of strings");
  refused([&] { file.numbers("array.integers"); }, "expected an array of f32");
  refused([&] { file.integers("scalar.u8"); }, "expected an array of integers");
  refused([&] { file.integers("array.numbers"); }, "expected an array of integers");
  refused([&] { file.raw("array.texts"); }, "expected an array of bytes");
}

template <class T>
std::string bytes_of(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string text_of(std::string_view text) {
  return bytes_of(uint64_t{text.size()}) + std::string(text);
}

std::string header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
  return "GGUF" + bytes_of(version) + bytes_of(tensors) + bytes_of(keys);
}

std::string integer(std::string_view key, uint32_t value) {
  return text_of(key) + bytes_of(uint32_t{4}) + bytes_of(value);
}

std::string tensor(std::string_view name, uint64_t columns, uint64_t offset, uint32_t type = 0,
                   uint32_t rank = 1) {
  std::string entry = text_of(name) + bytes_of(rank);
  for (uint32_t i = 0; i < rank; ++i) entry += bytes_of(i == 0 ? columns : uint64_t{1});
  return entry + bytes_of(type) + bytes_of(offset);
}

std::string padded(std::string bytes, size_t data) {
  bytes.resize((bytes.size() + 31) / 32 * 32 + data);
  return bytes;
}

void read_every_way(const Gguf& file, const std::string& key) {
  const std::vector<std::function<void()>> ways = {
      [&] { file.integer(key); }, [&] { file.number(key); }, [&] { file.boolean(key); },
      [&] { file.text(key); },    [&] { file.texts(key); },  [&] { file.integers(key); },
      [&] { file.numbers(key); }, [&] { file.raw(key); }};
  for (const auto& way : ways) {
    try {
      way();
    } catch (const Error&) {  // the value has another type
    }
  }
}

class HostileGguf : public testing::Test {
 protected:
  void refused(const std::string& bytes, std::initializer_list<std::string> parts,
               ErrorKind kind = ErrorKind::BadFile) {
    write_file_atomically(path_, bytes);
    expect_error(kind, parts, [&] { Gguf file(path_); });
  }
  void accepted(const std::string& bytes) {
    write_file_atomically(path_, bytes);
    EXPECT_NO_THROW(Gguf{path_});
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "model.gguf";
};

TEST_F(HostileGguf, BadHeaderIsRefused) {
  refused("", {"model.gguf: ends within the magic that needs 4 bytes (byte 0)"});
  refused("GGML" + bytes_of(3u), {"does not begin with GGUF (byte 0)"});
  refused(header(0, 0, 1), {"version is 1 (byte 4); expected 2 or 3"}, ErrorKind::Unsupported);
  refused(header(0, 0, 0x03000000), {"as in a big-endian file"}, ErrorKind::Unsupported);
  accepted(header(0, 0, 2));
  accepted(header(0, 0));
}

TEST_F(HostileGguf, TruncatedFilesAreRefused) {
  const std::string whole = read_file(kGolden);
  accepted(whole);
  for (size_t size = 0; size < 3000; ++size) refused(whole.substr(0, size), {"model.gguf: "});
  for (size_t size = 3000; size < whole.size() - 64; size += 97)
    refused(whole.substr(0, size), {"model.gguf: "});
}

TEST_F(HostileGguf, HugeSizesAreRefused) {
  refused(header(UINT64_MAX, 0), {"claims 18446744073709551615 tensors"});
  refused(header(0, UINT64_MAX), {"claims 18446744073709551615 keys"});
  refused(header(0, 1) + bytes_of(UINT64_MAX), {"ends within a key that needs 1844674407370955"});
  refused(header(0, 1) + text_of(std::string(2000, 'a')),
          {"a key of 2000 bytes that is not a valid name"});
  const std::string array = header(0, 1) + text_of("a") + bytes_of(9u);
  refused(array + bytes_of(4u) + bytes_of(uint64_t{1} << 62),
          {"ends within a, an array of 46116860"});
  refused(array + bytes_of(8u) + bytes_of(UINT64_MAX), {"ends within a string that needs 8 bytes"});
  refused(array + bytes_of(9u) + bytes_of(uint64_t{1}), {"a is an array of arrays"},
          ErrorKind::Unsupported);
  refused(header(1, 0) + tensor("w", UINT64_MAX, 0), {"w has a dimension of 1844674407370955"});
  refused(header(1, 0) + tensor("w", uint64_t{1} << 62, 0), {"is too short for w: 46116860184"});
  refused(header(1, 0) + tensor("w", 0, 0), {"w has a dimension of 0"});
  refused(header(1, 0) + tensor("w", 4, 0, 0, 5), {"w has 5 dimensions", "expected 1 to 4"});
  refused(header(1, 0) + tensor("w", 4, 0, 0, 0), {"w has 0 dimensions"});
}

TEST_F(HostileGguf, BadNamesAreRefused) {
  refused(header(0, 1) + integer("a\nb", 1), {"a key of 3 bytes that is not a valid name"});
  refused(header(0, 1) + integer("", 1), {"a key of 0 bytes that is not a valid name"});
  refused(header(0, 2) + integer("a", 1) + integer("a", 2), {"model.gguf: contains a twice"});
  refused(padded(header(2, 0) + tensor("w", 4, 0) + tensor("w", 4, 32), 64), {"contains w twice"});
}

TEST_F(HostileGguf, UnknownTypesAreRefused) {
  refused(header(0, 1) + text_of("a") + bytes_of(13u), {"a has the type 13", "expected 0 to 12"});
  refused(padded(header(1, 0) + tensor("w", 4, 0, 99), 64), {"w is of type 99, which is not known"},
          ErrorKind::Unsupported);
  refused(padded(header(1, 0) + tensor("w", 33, 0, 2), 64),
          {"w has rows of 33 elements", "expected a multiple of 32 for Q4_0"});
}

// Every type: rows of complete blocks, and as many bytes as they need.
TEST_F(HostileGguf, ShortBlocksAreRefused) {
  int types = 0;
  for (uint32_t number = 0; number < 64; ++number) {
    const GgufBlock* block = find_gguf_block(number);
    if (block == nullptr) continue;
    ++types;
    const uint64_t columns = 3 * block->elements;
    const size_t bytes = 3 * block->bytes;
    const auto with = [&](uint64_t row, size_t data) {
      return padded(header(1, 0) + tensor("w", row, 0, number), data);
    };
    accepted(with(columns, bytes));
    refused(with(columns, bytes - 1), {fmt::format("w is at 0 with {} bytes", bytes)});
    if (block->elements == 1) continue;
    for (const uint64_t row : {columns - 1, columns + block->elements / 2, uint64_t{1}}) {
      refused(with(row, 2 * bytes),
              {fmt::format("w has rows of {} elements", row),
               fmt::format("a multiple of {} for {}", block->elements, block->name)});
    }
  }
  EXPECT_GE(types, 30);
}

TEST_F(HostileGguf, BadOffsetsAreRefused) {
  const auto two = [](uint64_t first, uint64_t second, size_t data = 64) {
    return padded(header(2, 0) + tensor("a", 8, first) + tensor("b", 8, second), data);
  };
  accepted(two(0, 32));
  accepted(two(32, 0));
  refused(two(0, 0), {"overlap at 0; expected no shared bytes"});
  refused(two(0, 8), {"b is at 8 with 32 bytes; expected a multiple of 32"});
  refused(two(0, 64), {"b is at 64 with 32 bytes", "within the 64 bytes of data"});
  refused(two(0, UINT64_MAX - 31), {"b is at 18446744073709551584"});
  refused(two(0, 32, 63), {"b is at 32 with 32 bytes", "within the 63 bytes of data"});
}

TEST_F(HostileGguf, BadAlignmentIsRefused) {
  const auto with = [](uint32_t alignment) {
    return padded(header(1, 1) + integer("general.alignment", alignment) + tensor("a", 8, 0), 128);
  };
  accepted(with(32));
  accepted(with(64));
  refused(with(0), {"general.alignment is 0; expected a power of two"});
  refused(with(24), {"general.alignment is 24; expected a power of two"});
  refused(with(UINT32_MAX), {"general.alignment is 4294967295"});
  refused(padded(header(0, 1) + text_of("general.alignment") + bytes_of(8u) + text_of("32"), 64),
          {"general.alignment is text (byte ", "expected an integer"});
}

// A damaged file is refused, or its values can be read or refused one by one.
TEST_F(HostileGguf, AnyDamageIsHarmless) {
  const std::string whole = read_file(kGolden);
  std::mt19937 random(0);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = whole;
    for (int change = 0; change <= i % 4; ++change)
      bytes[random() % 3000] = static_cast<char>(random());
    write_file_atomically(path_, bytes);
    try {
      const Gguf file(path_);
      for (const GgufValue& value : file.values()) read_every_way(file, value.key);
    } catch (const Error&) {
    }
  }
}

TEST(Gguf, RoundTrips) {
  const TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  GgufMetadata metadata;
  metadata.integer("integer", 7);
  metadata.number("number", 0.5f);
  metadata.boolean("boolean", true);
  metadata.text("text", "▁");
  metadata.integers("integers", {-1, 2});
  metadata.numbers("numbers", {0.25f});
  metadata.booleans("booleans", {true, false});
  metadata.texts("texts", {"a", ""});
  metadata.raw("raw", "\xff");
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const auto* data = reinterpret_cast<const char*>(values.data());
  write_file_atomically(path, GgufImage(metadata, {{"b", find_gguf_block(0), {2, 3}, data, 24},
                                                   {"a", find_gguf_block(0), {6}, data, 24}})
                                  .pieces());
  const Gguf file(path);
  EXPECT_EQ(file.integer("integer"), 7);
  EXPECT_EQ(file.number("number"), 0.5);
  EXPECT_EQ(file.boolean("boolean"), true);
  EXPECT_EQ(file.text("text"), "▁");
  EXPECT_EQ(file.integers("integers"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(file.numbers("numbers"), std::vector<float>{0.25f});
  EXPECT_EQ(file.texts("texts"), (std::vector<std::string_view>{"a", ""}));
  EXPECT_EQ(file.raw("raw"), "\xff");
  ASSERT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.find_tensor("b")->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(file.find_tensor("b")->data, data, 24), 0);
  EXPECT_EQ(file.find_tensor("c"), nullptr);
}

}  // namespace
}  // namespace fovea
