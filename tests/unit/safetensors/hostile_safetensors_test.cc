// Safetensors files with hostile headers. Each is refused with a message that names the problem.

#include <algorithm>
#include <filesystem>

#include "safetensors/safetensors.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

std::string with_length(uint64_t length, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&length), 8) + rest;
}

std::string file_of(const std::string& header, size_t data = 0) {
  return with_length(header.size(), header + std::string(data, '\0'));
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& dtype = "F32") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

class HostileSafeTensors : public testing::Test {
 protected:
  void write(const std::string& bytes) { write_file_atomically(path_, bytes); }
  void refused(const std::string& bytes, std::initializer_list<std::string> parts,
               ErrorKind kind = ErrorKind::BadFile) {
    SCOPED_TRACE(bytes.substr(std::min<size_t>(8, bytes.size()), 100));
    write(bytes);
    expect_error(kind, parts, [&] { SafeTensors file(path_); });
  }
  void accepted(const std::string& bytes) {
    SCOPED_TRACE(bytes.substr(std::min<size_t>(8, bytes.size()), 100));
    write(bytes);
    EXPECT_NO_THROW(SafeTensors{path_});
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "model.safetensors";
};

TEST_F(HostileSafeTensors, BadHeaderLengthIsRefused) {
  for (const size_t size : {0, 1, 7}) {
    refused(std::string(size, '\1'),
            {"model.safetensors: has " + std::to_string(size) + " bytes; expected a safetensors"});
  }
  refused(with_length(1, ""), {"header length 1 exceeds the file (file size 8)"});
  refused(with_length(0, ""), {"the header does not begin with {"});
  refused(with_length(3, "{}"), {"header length 3", "file size 10"});
  refused(with_length(uint64_t{1} << 63, "{}"),
          {"header length 9223372036854775808", "file size 10"});
  refused(with_length(UINT64_MAX, "{}"), {"header length 18446744073709551615"});
  refused(with_length(UINT64_MAX - 7, "{}"), {"header length 18446744073709551608"});
}

TEST_F(HostileSafeTensors, HugeHeaderIsRefusedWithoutReadingIt) {
  write(with_length(100'000'001, "{"));
  std::filesystem::resize_file(path_, 200'000'000);  // sparse
  expect_error(ErrorKind::OutOfMemory,
               {"header length 100000001 is over the limit; expected at most 100000000"},
               [&] { SafeTensors file(path_); });
}

TEST_F(HostileSafeTensors, InvalidHeaderTextIsRefused) {
  refused(file_of(" {}"), {"does not begin with { (byte 8)"});
  refused(file_of("[]"), {"does not begin with {"});
  refused(file_of("{"), {"model.safetensors: header: unexpected end of input (byte 1"});
  refused(file_of("{\"a"), {"(byte "});
  refused(file_of("{\"\xff\":1}"), {"UTF-8", "(byte "});
  refused(file_of("{}x"), {"header:", "(byte ", "expected end of input"});
  refused(file_of("{}{}"), {"expected end of input"});
  refused(file_of("{}\n"), {"invalid padding (byte 2); expected spaces"});
  refused(file_of(std::string("{}\0", 3)), {"a NUL byte (byte 2"});
  refused(file_of(std::string("{\"a\0\":1}", 8)), {"a NUL byte (byte 3"});
  accepted(file_of("{}"));
  accepted(file_of("{}      "));
}

TEST_F(HostileSafeTensors, DuplicateKeysAreRefused) {
  refused(file_of("{" + entry("w", "[1]", "[0,4]") + "," + entry("w", "[1]", "[4,8]") + "}", 8),
          {"duplicate tensor w"});
  refused(file_of(R"({"w":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
          {"tensor w: duplicate key dtype (byte "});
  refused(
      file_of(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"data_offsets":[0,4]}})", 4),
      {"tensor w: duplicate key data_offsets"});
  refused(file_of(R"({"__metadata__":{},"__metadata__":{}})"), {"duplicate key __metadata__"});
  refused(file_of(R"({"__metadata__":{"a":"1","a":"1"}})"), {"__metadata__: duplicate key a"});
}

TEST_F(HostileSafeTensors, InvalidMetadataIsRefused) {
  accepted(file_of(R"({"__metadata__":{"a":"1","b":""}})"));
  for (const std::string value : {"1", "null", "true", "1.5", "{}", "[]", "{\"b\":\"c\"}"}) {
    refused(file_of("{\"__metadata__\":{\"a\":" + value + "}}"),
            {"__metadata__: a is ", "expected a string"});
  }
  for (const std::string value : {"1", "null", "[]", "\"x\""}) {
    refused(file_of("{\"__metadata__\":" + value + "}"),
            {"__metadata__ is ", "expected an object"});
  }
}

TEST_F(HostileSafeTensors, InvalidEntriesAreRefused) {
  for (const std::string value : {"1", "null", "[]", "\"F32\""}) {
    refused(file_of("{\"w\":" + value + "}"), {"w is ", "expected an object"});
  }
  refused(file_of(R"({"w":{}})"), {"tensor w: is incomplete", "dtype, shape and data_offsets"});
  refused(file_of(R"({"w":{"dtype":"F32","shape":[1]}})"), {"tensor w: is incomplete"});
  refused(file_of(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4),
          {"tensor w: unknown key \"x\""});
  refused(file_of(R"({"w":{"dtype":32,"shape":[1],"data_offsets":[0,4]}})", 4),
          {"tensor w: dtype is 32 (byte ", "expected a string"});
  refused(file_of(R"({"w":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4),
          {"tensor w: shape holds 1"});
  refused(file_of(R"({"w":{"dtype":"F32","shape":[[1]],"data_offsets":[0,4]}})", 4),
          {"tensor w: shape holds an array"});
  refused(file_of(R"({"w":{"dtype":"F32","shape":[{}],"data_offsets":[0,4]}})", 4),
          {"tensor w: shape holds an object"});
}

TEST_F(HostileSafeTensors, InvalidOffsetsAreRefused) {
  refused(file_of("{" + entry("w", "[1]", "[4,0]") + "}", 4),
          {"tensor w: begins at 4 and ends at 0"});
  for (const std::string bad :
       {"-4", "4.0", "1e2", "\"4\"", "null", "9007199254740993", "18446744073709551616", "true"}) {
    refused(file_of("{" + entry("w", "[1]", "[0," + bad + "]") + "}", 4),
            {"tensor w: data_offsets holds "});
    refused(file_of("{" + entry("w", "[" + bad + "]", "[0,4]") + "}", 4),
            {"tensor w: shape holds "});
  }
  refused(file_of("{" + entry("w", "[1]", "[0]") + "}", 4), {"data_offsets holds an array of 1"});
  refused(file_of("{" + entry("w", "[1]", "[0,4,8]") + "}", 4),
          {"data_offsets holds an array of 3"});
  refused(file_of("{" + entry("w", "[1]", "[]") + "}", 4), {"data_offsets holds an array of 0"});
}

TEST_F(HostileSafeTensors, GapsAndOverlapsAreRefused) {
  const std::string a = entry("a", "[2]", "[0,8]");
  refused(file_of("{" + a + "," + entry("b", "[2]", "[4,12]") + "}", 12),
          {"tensor b overlaps tensor a (data byte 4)"});
  refused(file_of("{" + a + "," + entry("b", "[2]", "[0,8]") + "}", 8), {"overlaps"});
  refused(file_of("{" + a + "," + entry("b", "[2]", "[12,20]") + "}", 20),
          {"a gap of 4 bytes between the tensors a and b (data byte 8)"});
  refused(file_of("{" + entry("a", "[2]", "[4,12]") + "}", 12),
          {"4 bytes before the first tensor a"});
  refused(file_of("{" + a + "}", 9), {"1 bytes after the last tensor (data byte 8)"});
  refused(file_of("{" + a + "}", 7), {"tensor a ends after the file (data byte 8 of 7)"});
  refused(file_of("{}", 1), {"1 bytes after the last tensor"});
  accepted(file_of("{" + entry("b", "[2]", "[8,16]") + "," + a + "}", 16));  // in any order
}

TEST_F(HostileSafeTensors, EmptyTensorsAreAccepted) {
  const std::string a = entry("a", "[2]", "[0,8]");
  accepted(file_of("{" + entry("z", "[0]", "[0,0]") + "}"));
  accepted(file_of("{" + a + "," + entry("z", "[3,0]", "[0,0]") + "}", 8));
  accepted(file_of(
      "{" + a + "," + entry("z", "[0]", "[8,8]") + "," + entry("y", "[0]", "[8,8]") + "}", 8));
  refused(file_of("{" + a + "," + entry("z", "[0]", "[4,4]") + "}", 8),
          {"tensor z overlaps tensor a"});
  refused(file_of("{" + a + "," + entry("z", "[0]", "[12,12]") + "}", 8), {"a gap of 4 bytes"});
  accepted(file_of("{" + entry("s", "[]", "[0,4]") + "}", 4));
}

TEST_F(HostileSafeTensors, OverflowingShapesAreRefused) {
  refused(file_of("{" + entry("w", "[4194305,4194305,211106198978564]", "[0,16]") + "}", 16),
          {"tensor w of shape [4194305, 4194305, 211106198978564] and dtype F32 overflows"});
  refused(file_of("{" + entry("w", "[4294967296,4294967296]", "[0,0]") + "}"),
          {"overflows; expected a size that fits into memory"});
  refused(file_of("{" + entry("w", "[4503599627370496,1024]", "[0,0]") + "}"),
          {"overflows; expected a size that fits into memory"});
  accepted(file_of("{" + entry("w", "[1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4));
  refused(file_of("{" + entry("w", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4),
          {"tensor w: shape holds an array of more than 8"});
  refused(file_of("{" + entry("w", "[3]", "[0,16]") + "}", 16),
          {"tensor w of shape [3] and dtype F32 has 16 bytes; expected 12"});
}

TEST_F(HostileSafeTensors, UnknownDtypesAreRefused) {
  for (const std::string bad : {"F99", "f32", "", "F32 ", "float32"}) {
    refused(file_of("{" + entry("w", "[1]", "[0,4]", bad) + "}", 4),
            {"tensor w: unknown dtype \"" + bad + "\""});
  }
  refused(file_of("{" + entry("w", "[3]", "[0,2]", "F4") + "}", 2),
          {"tensor w of shape [3] and dtype F4 ends within a byte"});
  struct Case {
    const char* dtype;
    size_t bytes;  // size of eight elements
  };
  for (const auto& [dtype, bytes] :
       {Case{"BOOL", 8}, Case{"I16", 16}, Case{"U16", 16}, Case{"U32", 32}, Case{"U64", 64},
        Case{"C64", 64}, Case{"F8_E4M3", 8}, Case{"F8_E5M2", 8}, Case{"F8_E8M0", 8},
        Case{"F6_E2M3", 6}, Case{"F4", 4}}) {
    SCOPED_TRACE(dtype);
    write(file_of("{" + entry("a", "[8]", "[0," + std::to_string(bytes) + "]", dtype) + "," +
                      entry("b", "[1]", fmt::format("[{},{}]", bytes, bytes + 4)) + "}",
                  bytes + 4));
    const SafeTensors file(path_);
    EXPECT_NO_THROW(file.tensor("b"));  // the other tensors can be read
    expect_error(ErrorKind::Unsupported,
                 {"model.safetensors: dtype " + std::string(dtype) + " is not supported for a;"},
                 [&] { file.tensor("a"); });
  }
}

TEST_F(HostileSafeTensors, DeepNestingIsRefused) {
  std::string deep = "{\"w\":";
  for (int i = 0; i < 100000; ++i) deep += "[";
  refused(file_of(deep), {"w is an array", "expected an object"});
}

TEST_F(HostileSafeTensors, TruncatedFilesAreRefused) {
  write_safetensors(path_, {{"a", zeros({3})}, {"b", zeros({2, 2}, DType::bf16)}});
  const std::string whole = read_file(path_);
  for (size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_THROW(SafeTensors{path_}, Error) << size;
  }
}

// No flipped bit of the header may crash the reader: the file is refused, or its tensors still
// cover all data.
TEST_F(HostileSafeTensors, FlippedBitsAreHarmless) {
  write_safetensors(path_, {{"a", zeros({3})}, {"b", zeros({2, 2}, DType::bf16)}});
  const std::string whole = read_file(path_);
  for (size_t bit = 0; bit < 8 * (whole.size() - 20); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    write(flipped);
    try {
      const SafeTensors file(path_);
      size_t bytes = 0;
      for (const StoredTensor& tensor : file.stored()) bytes += tensor.bytes;
      EXPECT_EQ(bytes, 20u);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}

// A search that is quadratic in the number of tensors would exceed the time limit of the test.
TEST_F(HostileSafeTensors, ManyTensorsAreReadInLinearTime) {
  const auto many = [](int count) {
    std::string header = "{";
    for (int i = 0; i < count; ++i) {
      header += entry(fmt::format("layer.{}", i * 7919LL % count), "[1]",
                      fmt::format("[{},{}]", 4 * i, 4 * i + 4));
      header += i + 1 < count ? "," : "}";
    }
    return file_of(header, 4 * static_cast<size_t>(count));
  };
  write(many(100'000));
  const SafeTensors file(path_);
  EXPECT_EQ(file.stored().size(), 100'000u);
  EXPECT_EQ(file.tensor("layer.99999").size(), 1);
  refused(many(250'001),
          {"model.safetensors: more than 250000 tensors; expected fewer in one file"},
          ErrorKind::OutOfMemory);
}

}  // namespace
}  // namespace fovea
