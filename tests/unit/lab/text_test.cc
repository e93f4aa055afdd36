#include "lab/text.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fovea/core/options.h"
#include "lab/linear_classifier.h"
#include "support/temporary_folder.h"

namespace fovea {
namespace {

std::vector<int32_t> numbers(const Tensor& x) {
  return {x.span<int32_t>().begin(), x.span<int32_t>().end()};
}

TEST(LabText, WindowsHaveTheNextTokensAsLabels) {
  const TemporaryFolder folder;
  std::string letters;
  for (int i = 0; i < 1000; ++i) letters += static_cast<char>('a' + i * i / 7 % 23);
  write_file_atomically(folder / "text.txt", letters);
  const lab::Text text({folder / "text.txt"});
  EXPECT_EQ(text.training().size(), 900u);
  EXPECT_EQ(text.held_out().size(), 100u);
  const lab::Batch batch = text.training_batch(3, 4, 16, 1);
  EXPECT_EQ(batch.ids.shape(), (Shape{4, 16}));
  EXPECT_EQ(batch.predictions, 64);
  const std::vector<int32_t> ids = numbers(batch.ids), labels = numbers(batch.labels);
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    if (i % 16 == 15) continue;  // the last token of a row
    EXPECT_EQ(labels[i], ids[i + 1]);
  }
  EXPECT_EQ(numbers(text.training_batch(3, 4, 16, 1).ids), ids);
  EXPECT_NE(numbers(text.training_batch(4, 4, 16, 1).ids), ids);
  const std::vector<lab::Batch> held_out = text.held_out_batches(3, 2, 10);
  ASSERT_EQ(held_out.size(), 2u);
  EXPECT_EQ(held_out[1].ids.shape(), (Shape{1, 10}));
  const std::vector<int32_t> last = numbers(held_out[1].ids);  // window 6 of 9
  EXPECT_TRUE(std::equal(last.begin(), last.end(), text.held_out().begin() + 60));
  EXPECT_THROW(text.held_out_batches(3, 2, 100), FieldError);
}

TEST(LabText, IsThatOfAllDocuments) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.jsonl", "{\"text\": \"abc\"}\n\n{\"text\": \"ba\"}\n");
  write_file_atomically(folder / "b.txt", "cab");
  write_file_atomically(folder / "c.txt", "");
  const lab::Text text({folder.path()});
  EXPECT_EQ(text.training().size() + text.held_out().size(), 3u + 1 + 2 + 1 + 3);
}

TEST(LabClassifier, SeparatesClasses) {
  lab::Classified learned, unseen;
  for (int32_t i = 0; i < 90; ++i) {
    lab::Classified& part = i % 3 == 2 ? unseen : learned;
    const auto noise = 0.1f * static_cast<float>(i * i % 7 - 3);
    const int32_t label = i / 3 % 4;
    part.rows.push_back((label % 2 == 0 ? 1.0f : -1.0f) + noise);
    part.rows.push_back((label / 2 == 0 ? 1.0f : -1.0f) - noise);
    part.labels.push_back(label);
  }
  EXPECT_EQ(lab::linear_accuracy(learned, unseen, 4), 1);
}

}  // namespace
}  // namespace fovea
