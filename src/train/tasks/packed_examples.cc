#include "tasks/packed_examples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "losses/token_rows.h"

namespace fovea::train {
namespace {

std::vector<int32_t> lengths_of(const LabelledSequences& texts) {
  std::vector<int32_t> lengths;
  for (int64_t i = 0; i < texts.ids.count(); ++i)
    lengths.push_back(static_cast<int32_t>(texts.ids.length(i)));
  return lengths;
}

int64_t count_labels(const int32_t* labels, int64_t count) {
  return std::count_if(labels, labels + count, [](int32_t label) { return label >= 0; });
}

Examples::Part part_of(const LabelledSequences& texts) {
  Examples::Part part{texts.ids.count(), texts.ids.total(), 0, 0};
  for (int64_t i = 0; i < texts.labels.count(); ++i)
    part.predictions += count_labels(texts.labels[i], texts.labels.length(i));
  return part;
}

// Returns the tokens of an epoch.
int64_t tokens_of(const LabelledSequences& texts, const std::vector<PackedRows::Group>& groups) {
  double tokens = 0;
  for (const PackedRows::Group& group : groups)
    for (int64_t i = group.begin; i < group.end; ++i)
      tokens += group.weight * static_cast<double>(texts.ids.length(i));
  return std::llround(tokens);
}

// Adds the images of a text that begins at `start` of a row.
void add_images(const std::vector<TextImage>& of_text, int64_t row, int64_t start,
                BatchImages& all) {
  for (const TextImage& image : of_text) {
    BatchImages::Placed& placed = all.images.emplace_back(image.number, row, image.tokens);
    for (int64_t& token : placed.tokens) token += start;
  }
}

}  // namespace

Batch packed_batch(const LabelledSequences& texts, const std::vector<std::vector<int64_t>>& rows,
                   int64_t length, int32_t padding) {
  const int64_t count = std::ssize(rows), L = length;
  Batch batch;
  TokenRows ids(count, L, padding), labels(count, L, -1);
  DocumentStarts starts(rows.size());
  BatchImages images = texts.images ? texts.images->of_batch() : BatchImages();
  for (size_t r = 0; r < rows.size(); ++r) {
    int64_t used = 0;
    const auto row = static_cast<int64_t>(r);
    for (const int64_t text : rows[r]) {
      const int64_t start = PackedRows::next_start(used), tokens = texts.ids.length(text);
      std::copy_n(texts.ids[text], tokens, ids.row(row) + start);
      std::copy_n(texts.labels[text], tokens, labels.row(row) + start);
      if (texts.images) add_images(texts.images_of[static_cast<size_t>(text)], row, start, images);
      batch.predictions += count_labels(texts.labels[text], tokens);
      batch.tokens += tokens;
      starts[r].push_back(start);
      used = start + tokens;
    }
    // The padding at the end is divided too, since attention to a long text takes more time.
    for (used = PackedRows::next_start(used); used < L; used += PackedRows::kTile)
      starts[r].push_back(used);
  }
  batch.target.ids = ids.tensor();
  batch.labels = labels.tensor();
  if (!images.images.empty()) batch.images = std::make_shared<const BatchImages>(std::move(images));
  batch.documents = std::make_shared<const DocumentStarts>(std::move(starts));
  return batch;
}

PackedExamples::PackedExamples(LabelledSequences training, LabelledSequences validation,
                               const std::vector<PackedRows::Group>& groups,
                               const PackedOptions& options)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      options_(options),
      rows_(lengths_of(training_), groups, options.length, options.seed) {
  learnt = part_of(training_);
  learnt.tokens = tokens_of(training_, groups);
  held_out = part_of(validation_);
  std::vector<int64_t> all(static_cast<size_t>(validation_.ids.count()));
  std::iota(all.begin(), all.end(), 0);
  validation_rows_ = PackedRows::packed(lengths_of(validation_), all, options.length);
}

Batch PackedExamples::training(int64_t pass) const {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t r = 0; r < options_.batch; ++r) rows.push_back(rows_(pass * options_.batch + r));
  return of(training_, rows);
}

double PackedExamples::passes_per_epoch() const {
  return static_cast<double>(rows_.rows(1)) / static_cast<double>(options_.batch);
}

int64_t PackedExamples::validation_batches() const {
  return (std::ssize(validation_rows_) + options_.batch - 1) / options_.batch;
}

Batch PackedExamples::validation(int64_t n) const {
  const auto first = validation_rows_.begin() + n * options_.batch;
  const auto last =
      validation_rows_.begin() + std::min((n + 1) * options_.batch, std::ssize(validation_rows_));
  return of(validation_, {first, last});
}

}  // namespace fovea::train
