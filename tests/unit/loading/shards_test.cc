// Weights in several files replace the model of a folder in a single step.

#include "loading/shards.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "safetensors/safetensors.h"
#include "support/faulty_calls.h"

namespace fovea::model {
namespace {

using Tensors = std::map<std::string, Tensor>;

// Tensors of 40, 80, 20 and 40 bytes, all of whose elements are `value`.
Tensors four(float value) {
  return {{"a", full({10}, value)},
          {"b", full({20}, value)},
          {"c", full({5}, value)},
          {"d", full({10}, value)}};
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

// Returns the value of all elements of the model in a folder.
float value_in(const std::string& folder) {
  const SafeTensors file = SafeTensors::open_model(folder);
  EXPECT_EQ(file.stored().size(), 4u);
  std::set<float> values;
  for (const StoredTensor& stored : file.stored())
    for (const float v : to_floats(file.tensor(stored.name))) values.insert(v);
  EXPECT_EQ(values.size(), 1u);
  return *values.begin();
}

TEST(Shards, AreFilledInTheOrderOfTheNames) {
  EXPECT_EQ(shards_of(four(1), 1000), (Shards{{"a", "b", "c", "d"}}));
  EXPECT_EQ(shards_of(four(1), 120), (Shards{{"a", "b"}, {"c", "d"}}));
  EXPECT_EQ(shards_of(four(1), 60), (Shards{{"a"}, {"b"}, {"c", "d"}}));
  EXPECT_EQ(shards_of(four(1), 1), (Shards{{"a"}, {"b"}, {"c"}, {"d"}}));
  EXPECT_EQ(shards_of({}, 1), (Shards{{}}));
}

TEST(Shards, HaveAnotherNumberThanThoseInTheFolder) {
  EXPECT_EQ(shards_of(four(1), 120, {2}), (Shards{{"a"}, {"b"}, {"c", "d"}}));
  EXPECT_EQ(shards_of(four(1), 120, {2, 3}), (Shards{{"a"}, {"b"}, {"c"}, {"d"}}));
  EXPECT_EQ(shards_of(four(1), 1, {4}).size(), 4u);  // none can be divided
  EXPECT_EQ(shards_of(four(1), 1000, {1}).size(), 1u);
}

TEST(WriteWeights, ReplacesEveryKindOfModelByEveryOther) {
  const TemporaryFolder folder;
  float value = 0;
  const auto expect = [&](uint64_t size, size_t files) {
    write_weights(folder.path(), four(++value), size);
    EXPECT_EQ(value_in(folder.path()), value);
    const auto names = names_in(folder.path());
    EXPECT_EQ(names.contains("model.safetensors"), size == 1000);
    EXPECT_EQ(names.contains("model.safetensors.index.json"), size != 1000);
    EXPECT_EQ(names.size(), files + (size == 1000 ? 0 : 1));  // and the index
  };
  expect(1000, 1);
  expect(120, 2);
  expect(120, 3);
  expect(60, 4);
  for (const uint64_t size : {1, 1, 1}) expect(size, 4);
  expect(1000, 1);
  expect(1, 4);
  expect(1000, 1);
}

TEST(WriteWeights, NamesFilesAndSizesAsTransformers) {
  const TemporaryFolder folder;
  write_weights(folder.path(), four(1), 120);
  const std::string index = read_file(folder / "model.safetensors.index.json", 10'000);
  for (const char* part : {"\"total_size\": 180", "\"total_parameters\": 45",
                           "\"c\": \"model-00002-of-00002.safetensors\""})
    EXPECT_NE(index.find(part), index.npos) << index;
}

// Whatever call fails, the folder has the old model or the new one.
TEST(WriteWeights, LeavesAWholeModelAfterAFailure) {
  for (const uint64_t before : {1000, 120, 1}) {
    for (const uint64_t after : {1000, 120, 1}) {
      for (int call = 1;; ++call) {
        const TemporaryFolder folder;
        write_weights(folder.path(), four(1), before);
        bool failed = false;
        {
          const FaultyCalls faulty(call);
          try {
            write_weights(folder.path(), four(2), after);
          } catch (const Error&) {
            failed = true;
          }
          if (faulty.calls() < call) break;
        }
        const float value = value_in(folder.path());
        EXPECT_TRUE(value == 1 || value == 2) << before << " to " << after << ", call " << call;
        write_weights(folder.path(), four(3), after);  // what is left does not disturb the next one
        EXPECT_EQ(value_in(folder.path()), 3) << failed;
      }
    }
  }
}

}  // namespace
}  // namespace fovea::model
