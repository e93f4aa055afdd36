// Importance matrices in both formats of llama.cpp.

#include "checkpoint/importance.h"

#include "base/gguf.h"
#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace fovea::model {
namespace {

ImportanceMatrix example() {
  ImportanceMatrix matrix;
  matrix.texts = {"text.txt"};
  matrix.chunks = 3;
  matrix.chunk_length = 512;
  matrix.tensors["blk.0.attn_q.weight"] = {{2, 4, 0, 6}, {10}};
  matrix.tensors["blk.0.ffn_up_exps.weight"] = {{1, 3, 0, 0}, {5, 0}};
  return matrix;
}

// A file of the older format, with 2 calls for each tensor.
std::string old_file() {
  std::string bytes;
  const auto integer = [&](int32_t value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const std::string name = "blk.0.attn_q.weight", text = "text.txt";
  integer(1);
  integer(static_cast<int32_t>(name.size()));
  bytes += name;
  integer(2);
  integer(4);
  for (const float sum : {2.0f, 4.0f, 0.0f, 6.0f})
    bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  integer(7);
  integer(static_cast<int32_t>(text.size()));
  return bytes + text;
}

class Importance : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::string path = folder / "imatrix.gguf";
};

TEST_F(Importance, IsReadAsWritten) {
  write_importance(path, example());
  const ImportanceMatrix read = read_importance(path), expected = example();
  EXPECT_EQ(read.texts, expected.texts);
  EXPECT_EQ(read.chunks, 3);
  EXPECT_EQ(read.chunk_length, 512);
  ASSERT_EQ(read.tensors.size(), 2u);
  for (const auto& [name, columns] : expected.tensors) {
    EXPECT_EQ(read.tensors.at(name).sums, columns.sums);
    EXPECT_EQ(read.tensors.at(name).counts, columns.counts);
  }
  const Gguf file(path);
  EXPECT_EQ(file.text("general.type"), "imatrix");
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up_exps.weight.in_sum2")->shape,
            (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(file.find_tensor("blk.0.ffn_up_exps.weight.counts")->shape,
            (std::vector<int64_t>{2, 1}));
}

TEST_F(Importance, WeightsHaveAMeanOfOne) {
  const ImportanceMatrix matrix = example();
  EXPECT_EQ(matrix.weights_of("blk.0.attn_q.weight", 1, 4),
            (std::vector<float>{2 / 3.0f, 4 / 3.0f, 1e-3f, 2}));
  // An expert that no token has reached has equal weights.
  EXPECT_EQ(matrix.weights_of("blk.0.ffn_up_exps.weight", 2, 2),
            (std::vector<float>{0.5f, 1.5f, 1, 1}));
  EXPECT_TRUE(matrix.weights_of("blk.9.attn_q.weight", 1, 4).empty());
  expect_error(ErrorKind::InvalidArgument, {"blk.0.attn_q.weight has 4 sums; expected 1 x 8"},
               [&] { matrix.weights_of("blk.0.attn_q.weight", 1, 8); });
}

TEST_F(Importance, ReadsTheOlderFormat) {
  write_file_atomically(path, old_file());
  const ImportanceMatrix read = read_importance(path);
  EXPECT_EQ(read.texts, std::vector<std::string>{"text.txt"});
  EXPECT_EQ(read.chunks, 7);
  EXPECT_EQ(read.weights_of("blk.0.attn_q.weight", 1, 4),
            example().weights_of("blk.0.attn_q.weight", 1, 4));
}

TEST_F(Importance, RefusesDamagedFiles) {
  const auto refused = [&](const std::string& bytes, const std::string& part) {
    write_file_atomically(path, bytes);
    expect_error(ErrorKind::BadFile, {"imatrix.gguf", part}, [&] { read_importance(path); });
  };
  const std::string old = old_file();
  refused("", "ends too early");
  refused(old.substr(0, 50), "ends too early");
  refused(std::string(4, '\0'), "has no tensors");
  refused("\xff\xff\xff\xff", "negative size");
  std::string nan = old;
  nan[old.find("weight") + 6 + 8 + 3] = '\x7f';
  nan[old.find("weight") + 6 + 8 + 2] = '\xff';
  refused(nan, "blk.0.attn_q.weight has numbers that are negative or not finite");
  GgufMetadata metadata;
  metadata.text("general.type", "model");
  write_file_atomically(path, GgufImage(metadata, {}).pieces());
  expect_error(ErrorKind::BadFile, {"general.type is not imatrix"}, [&] { read_importance(path); });
}

}  // namespace
}  // namespace fovea::model
