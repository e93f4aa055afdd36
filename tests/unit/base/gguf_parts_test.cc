// GGUF files that are parts of a model.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <utility>

#include "base/gguf.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

// A model in three parts, whose tensors have their own number as elements. Tests change `parts`
// before write().
class GgufParts : public testing::Test {
 protected:
  struct Part {
    int number, count;
    std::vector<std::pair<std::string, float>> tensors;
  };

  std::string path(int part) const {
    return folder / ("model-0000" + std::to_string(part) + "-of-00003.gguf");
  }
  void write(int total = 4) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto& [number, count, tensors] = parts[i];
      GgufMetadata metadata;
      if (i == 0) metadata.text("general.architecture", "llama");
      metadata.integer("split.no", static_cast<uint32_t>(number));
      metadata.integer("split.count", static_cast<uint32_t>(count));
      metadata.integer("split.tensors.count", static_cast<uint32_t>(total));
      std::vector<GgufTensor> all;
      for (const auto& [name, value] : tensors)
        all.push_back(
            {name, find_gguf_block(0), {1}, reinterpret_cast<const char*>(&value), sizeof value});
      write_file_atomically(path(static_cast<int>(i) + 1), GgufImage(metadata, all).pieces());
    }
  }
  void refused(std::initializer_list<std::string> texts, int opened = 1) const {
    expect_error(ErrorKind::BadFile, texts, [&] { Gguf file(path(opened)); });
  }

  TemporaryFolder folder;
  std::vector<Part> parts = {{0, 3, {{"b", 1}}}, {1, 3, {{"c", 2}, {"a", 3}}}, {2, 3, {{"d", 4}}}};
};

TEST_F(GgufParts, OpenByTheNameOfAnyPart) {
  write();
  for (const int opened : {1, 2, 3}) {
    const Gguf file(path(opened));
    EXPECT_EQ(file.path(), path(1));
    EXPECT_EQ(file.text("general.architecture"), "llama");
    ASSERT_EQ(file.files().size(), 3U);
    ASSERT_EQ(file.tensors().size(), 4U);
    std::string names;
    for (const GgufTensor& tensor : file.tensors()) {
      float value = 0;
      std::memcpy(&value, tensor.data, sizeof value);
      names += tensor.name + std::to_string(static_cast<int>(value));
      const std::string_view bytes = file.files()[tensor.part]->bytes();
      EXPECT_TRUE(tensor.data >= bytes.data() && tensor.data < bytes.data() + bytes.size());
    }
    EXPECT_EQ(names, "a3b1c2d4");
  }
}

// The given part may be a link, but none that its name leads to.
TEST_F(GgufParts, ALinkOutOfTheFolderIsRefused) {
  write();
  const TemporaryFolder other;
  std::filesystem::rename(path(2), other / "part");
  std::filesystem::create_symlink(other / "part", path(2));
  refused({"model-00002-of-00003.gguf: is a symbolic link out of the model's folder"});
  EXPECT_EQ(Gguf(path(2)).files().size(), 3U);
}

TEST_F(GgufParts, AMissingPartIsRefused) {
  write();
  std::filesystem::remove(path(2));
  refused({"model-00002-of-00003.gguf: is missing", "part 2 of the 3 parts"});
  refused({"model-00002-of-00003.gguf: is missing"}, 3);
  std::filesystem::remove(path(1));
  refused({"model-00001-of-00003.gguf: is missing"}, 3);
}

TEST_F(GgufParts, NumbersThatDoNotMatchAreRefused) {
  write(5);
  refused({"model-00001-of-00003.gguf: split.tensors.count is 5", "expected 4"});
  parts[1].number = 2;
  write();
  refused({"model-00002-of-00003.gguf: split.no is 2 and split.count is 3; expected 1 and 3"});
  refused({"model-00002-of-00003.gguf: is part 3 of 3", "-00003-of-00003.gguf"}, 2);
  parts[1] = {1, 4, {}};
  write();
  refused({"model-00002-of-00003.gguf: split.no is 1 and split.count is 4; expected 1 and 3"});
  parts[0].count = 4;
  write();
  refused({"model-00001-of-00003.gguf: is part 1 of 4", "ends in -00001-of-00004.gguf"});
  parts[0].number = -1;  // 4294967295: the metadata is unsigned
  write();
  refused({"model-00001-of-00003.gguf: split.no is 4294967295 and split.count is 4",
           "expected a number from 0 to 3"});
}

TEST_F(GgufParts, ATensorOfTwoPartsIsRefused) {
  parts[2].tensors = {{"c", 5}};
  write();
  refused({"model-00003-of-00003.gguf: contains c, as does", "model-00002-of-00003.gguf"});
}

// A file that is one of many by its name, but has no such keys, is a model.
TEST_F(GgufParts, TheNameAloneMeansNothing) {
  const float value = 1;
  GgufMetadata metadata;
  metadata.text("general.architecture", "llama");
  const std::vector<GgufTensor> tensors = {
      {"a", find_gguf_block(0), {1}, reinterpret_cast<const char*>(&value), sizeof value}};
  write_file_atomically(path(2), GgufImage(metadata, tensors).pieces());
  EXPECT_EQ(Gguf(path(2)).tensors().size(), 1U);
}

}  // namespace
}  // namespace fovea
