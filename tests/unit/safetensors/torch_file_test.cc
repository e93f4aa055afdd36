// Files of torch.save(), which are read without running their pickle.

#include "safetensors/torch_file.h"

#include <map>

#include "base/crc32.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

template <class T>
std::string little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// A zip archive of stored entries.
std::string zip_of(const std::map<std::string, std::string>& entries, uint16_t method = 0) {
  std::string file, directory;
  for (const auto& [name, contents] : entries) {
    const auto size = static_cast<uint32_t>(contents.size()),
               offset = static_cast<uint32_t>(file.size());
    const std::string described = little<uint16_t>(20) + little<uint16_t>(0) + little(method) +
                                  little<uint32_t>(0) + little(crc32<kZipPolynomial>(contents)) +
                                  little(size) + little(size) +
                                  little(static_cast<uint16_t>(name.size())) + little<uint16_t>(0);
    file += little(0x04034b50u) + described + name + contents;
    directory += little(0x02014b50u) + little<uint16_t>(20) + described + std::string(10, '\0') +
                 little(offset) + name;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  return file + directory + little(0x06054b50u) + little<uint32_t>(0) + little(count) +
         little(count) + little(static_cast<uint32_t>(directory.size())) +
         little(static_cast<uint32_t>(file.size())) + little<uint16_t>(0);
}

// The instructions of pickles.
std::string text_of(const std::string& of) {
  return "X" + little(static_cast<uint32_t>(of.size())) + of;
}
std::string integer(int32_t of) { return "J" + little(of); }
std::string tuple(const std::string& of) { return "(" + of + "t"; }
const std::string kBegin = "\x80\x02";
const std::string kDictionary = "ccollections\nOrderedDict\n)R";

struct Stored {
  std::string type = "FloatStorage", key = "0";
  int32_t elements = 6, offset = 0;
  std::string shape = integer(2) + integer(3), strides = integer(3) + integer(1);
};
std::string tensor(const Stored& s = {}) {
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         tuple(tuple(text_of("storage") + "ctorch\n" + s.type + "\n" + text_of(s.key) +
                     text_of("cpu") + integer(s.elements)) +
               "Q" + integer(s.offset) + tuple(s.shape) + tuple(s.strides) + "\x89" + kDictionary) +
         "R";
}
std::string state(const std::string& value) {
  return kBegin + kDictionary + "(" + text_of("weight") + value + "u.";
}

class TorchFile : public testing::Test {
 protected:
  std::map<std::string, Tensor> read(const std::string& bytes) const {
    write_file_atomically(path_, bytes);
    return read_torch_file(path_);
  }
  std::map<std::string, Tensor> read_pickle(const std::string& pickle) const {
    return read(zip_of({{"a/data.pkl", pickle}, {"a/data/0", floats_}}));
  }
  void refused(const std::string& pickle, std::initializer_list<std::string> parts,
               ErrorKind kind) const {
    expect_error(kind, parts, [&] { read_pickle(pickle); });
  }

  TemporaryFolder folder_;
  std::string path_ = folder_ / "linear.pt";
  std::string floats_ = [] {
    std::string bytes;
    for (int i = 0; i < 6; ++i) bytes += little(static_cast<float>(i) / 2);
    return bytes;
  }();
};

TEST_F(TorchFile, HasTheTensorsThatTorchWrote) {
  const auto sparse = read_torch_file("tests/goldens/bge_m3/sparse_linear.pt"),
             colbert = read_torch_file("tests/goldens/bge_m3/colbert_linear.pt");
  ASSERT_EQ(sparse.size(), 2u);
  EXPECT_EQ(sparse.at("weight").dtype(), DType::f16);
  EXPECT_EQ(sparse.at("weight").shape(), Shape({1, 16}));
  EXPECT_EQ(sparse.at("bias").shape(), Shape({1}));
  EXPECT_EQ(colbert.at("weight").dtype(), DType::f32);
  EXPECT_EQ(colbert.at("weight").shape(), Shape({8, 16}));
}

TEST_F(TorchFile, HasThePartOfAStorage) {
  const Tensor whole = read_pickle(state(tensor())).at("weight");
  EXPECT_EQ(whole.shape(), Shape({2, 3}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(whole.data_as<float>()[i], static_cast<float>(i) / 2);
  Stored part;
  part.offset = 2;
  part.shape = part.strides = integer(1);
  EXPECT_EQ(read_pickle(state(tensor(part))).at("weight").data_as<float>()[0], 1);
}

TEST_F(TorchFile, RunsNothing) {
  refused(kBegin + "cos\nsystem\n" + tuple(text_of("true")) + "R.", {"the name os.system"},
          ErrorKind::Unsupported);
  refused(state("cbuiltins\neval\n" + tuple(text_of("1")) + "R"), {"the name builtins.eval"},
          ErrorKind::Unsupported);
  refused(kBegin + "ctorch\nFloatStorage\n)R.", {"a call of torch.FloatStorage"},
          ErrorKind::Unsupported);
  for (const char code : {'i', 'o', '\x81', '\x92', '\x93', 'P', 'I', 'S', ']', 'G', '\x95'})
    refused(kBegin + code, {"the instruction 0x"}, ErrorKind::Unsupported);
  refused(state(integer(1)), {"an element that is not a tensor"}, ErrorKind::Unsupported);
  refused(kBegin + tuple(text_of("module") + "N") + "Q.", {"a reference that is no storage"},
          ErrorKind::Unsupported);
}

TEST_F(TorchFile, RefusesTensorsBeyondTheirStorage) {
  const auto one = [&](const Stored& s, const char* part, ErrorKind kind = ErrorKind::BadFile) {
    refused(state(tensor(s)), {part}, kind);
  };
  one({.elements = 7}, "has no storage of 7 elements");
  one({.elements = -1}, "has no storage");
  one({.key = "../0"}, "has no storage");
  one({.offset = 1}, "expected a part of its 6 elements");
  one({.offset = -1}, "expected a part of its 6 elements");
  one({.shape = integer(-2) + integer(3)}, "whose shape is not of numbers");
  one({.shape = integer(2)}, "wrong number of axes");
  const std::string huge = integer(0x7fffffff) + integer(0x7fffffff) + integer(0x7fffffff);
  one({.shape = huge, .strides = huge}, "the size overflows");
  one({.strides = integer(1) + integer(2)}, "not contiguous", ErrorKind::Unsupported);
  one({.type = "DoubleStorage"}, "the name torch.DoubleStorage", ErrorKind::Unsupported);
  // Many tensors of one storage would take more memory than the file.
  std::string large(4096, '\0');
  Stored all{.elements = 1024, .shape = integer(1024), .strides = integer(1)};
  std::string shared = kBegin + kDictionary + "(" + text_of("a") + tensor(all) + "q\1";
  for (int i = 0; i < 3; ++i) shared += text_of(std::to_string(i)) + "h\1";
  expect_error(ErrorKind::Unsupported, {"shares its elements"},
               [&] { read(zip_of({{"a/data.pkl", shared + "u."}, {"a/data/0", large}})); });
}

TEST_F(TorchFile, RefusesDamagedPickles) {
  const std::string whole = state(tensor());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_ANY_THROW(read_pickle(whole.substr(0, length))) << length;
  const auto bad = [&](const std::string& pickle) {
    refused(pickle, {"the pickle"}, ErrorKind::BadFile);
  };
  bad(kBegin + ".");
  bad(kBegin + "t.");
  bad(kBegin + "u.");
  bad(kBegin + "h\5.");
  bad(kBegin + "q\1.");
  bad(kBegin + text_of("a") + "s.");
  bad(kBegin + "X\xff\xff\xff\xff.");
  bad(kBegin + std::string(150'000, '('));
  std::string nested = kBegin + ")";
  for (int i = 0; i < 150'000; ++i) nested += "\x85";
  bad(nested);
  std::string copied = kBegin + "}q" + std::string(1, '\0');
  for (int i = 0; i < 150'000; ++i) copied += std::string("h\0", 2);
  bad(copied);
  refused(std::string((1 << 20) + 1, 'N'), {"the pickle has 1048577 bytes"},
          ErrorKind::Unsupported);
}

TEST_F(TorchFile, RefusesDamagedArchives) {
  const std::string whole = zip_of({{"a/data.pkl", state(tensor())}, {"a/data/0", floats_}});
  EXPECT_EQ(read(whole).size(), 1u);
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_ANY_THROW(read(whole.substr(0, length))) << length;
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(~flipped[at]);
    try {
      read(flipped);
    } catch (const Error& error) {
      EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    }
  }
  expect_error(ErrorKind::BadFile, {"has no entry data.pkl"},
               [&] { read(zip_of({{"data.pkl", ""}, {"a/b/data.pkl", ""}})); });
  expect_error(ErrorKind::Unsupported, {"is compressed or encrypted"},
               [&] { read(zip_of({{"a/data.pkl", state(tensor())}}, 8)); });
  expect_error(ErrorKind::Unsupported, {"its byte order is big"}, [&] {
    read(zip_of({{"a/byteorder", "big"}, {"a/data.pkl", state(tensor())}, {"a/data/0", floats_}}));
  });
  std::string wrong = whole;
  wrong[wrong.find("data.pkl") + 20] ^= 1;
  expect_error(ErrorKind::BadFile, {"does not have its checksum"}, [&] { read(wrong); });
  expect_error(ErrorKind::BadFile, {"has no directory at its end"}, [&] { read("PK"); });
}

}  // namespace
}  // namespace fovea
