#include "tasks/preference_examples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/hash.h"
#include "fovea/core/random.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

constexpr uint32_t kPreferenceSubstream = 21;  // of Stream::shuffle

uint64_t preference_key(uint64_t seed, int64_t epoch, size_t which) {
  const auto words = philox(seed, Stream::shuffle, kPreferenceSubstream,
                            static_cast<uint64_t>(epoch) | uint64_t{which} << 40);
  return uint64_t{words[0]} << 32 | words[1];
}

struct RowsOfTexts {
  std::vector<std::vector<int64_t>> rows;
  int64_t length;
};

// Packs texts into rows of a multiple of `longest` tokens, at most `most`, so that the rows have
// the fewest tokens, padding included.
RowsOfTexts smallest_rows(const std::vector<int32_t>& lengths, const std::vector<int64_t>& texts,
                          int64_t longest, int64_t most) {
  RowsOfTexts best;
  for (int64_t factor = 1; factor == 1 || factor * longest <= most; ++factor) {
    const int64_t length = std::min(factor * longest, most);
    auto rows = PackedRows::packed(lengths, texts, length);
    if (factor == 1 || std::ssize(rows) * length < std::ssize(best.rows) * best.length)
      best = {std::move(rows), length};
  }
  return best;
}

}  // namespace

PreferenceExamples::PreferenceExamples(PreferenceTexts texts, int64_t held,
                                       const PreferenceBatching& options)
    : all_(std::move(texts)), trained_(all_.records() - held), options_(options) {
  if (trained_ > 0)
    order_.emplace(all_.groups, [seed = options_.seed](int64_t epoch, size_t which) {
      return preference_key(seed, epoch, which);
    });
  held_out = part_of(trained_, all_.records());
  for (const WeightedGroup& group : all_.groups) {
    const Part part = part_of(group.begin, group.end);
    learnt.sequences += part.sequences;
    learnt.predictions += part.predictions;
    learnt.tokens += std::llround(group.weight * static_cast<double>(part.tokens));
  }
}

Examples::Part PreferenceExamples::part_of(int64_t begin, int64_t end) const {
  Part part;
  for (int64_t record = begin; record < end; ++record) {
    ++part.sequences;
    for (int64_t text = 2 * record; text < 2 * record + (options_.judged ? 1 : 2); ++text) {
      part.tokens += all_.texts.ids.length(text);
      part.predictions += predictions(text);
    }
  }
  return part;
}

int64_t PreferenceExamples::predictions(int64_t text) const {
  const int32_t* labels = all_.texts.labels[text];
  return std::count_if(labels, labels + all_.texts.labels.length(text),
                       [](int32_t label) { return label >= 0; });
}

double PreferenceExamples::passes_per_epoch() const {
  if (!order_) return 0;
  return static_cast<double>(order_->per_epoch()) / static_cast<double>(options_.batch);
}

// Records are numbered across epochs, so that a pass may end one epoch and begin the next.
std::vector<int64_t> PreferenceExamples::records_of(int64_t pass) const {
  std::vector<int64_t> records;
  for (int64_t i = pass * options_.batch; i < (pass + 1) * options_.batch; ++i)
    records.push_back((*order_)[i]);
  return records;
}

std::vector<int64_t> PreferenceExamples::records_held_out() const {
  std::vector<int64_t> records(static_cast<size_t>(all_.records() - trained_));
  std::iota(records.begin(), records.end(), trained_);
  return records;
}

int64_t PreferenceExamples::validation_batches() const {
  return (all_.records() - trained_ + options_.batch - 1) / options_.batch;
}

Batch PreferenceExamples::validation(int64_t n) const {
  std::vector<int64_t> records;
  const int64_t begin = trained_ + n * options_.batch;
  for (int64_t i = begin; i < std::min(begin + options_.batch, all_.records()); ++i)
    records.push_back(i);
  return of(records);
}

Batch PreferenceExamples::of(const std::vector<int64_t>& records) const {
  std::vector<int64_t> numbers;
  for (const int64_t record : records) {
    numbers.push_back(2 * record);
    if (!options_.judged) numbers.push_back(2 * record + 1);
  }
  return of_texts(numbers);
}

Batch PreferenceExamples::mismatched(const Batch& judged) const {
  std::vector<int64_t> numbers;
  for (const int64_t record : records_in(judged)) numbers.push_back(2 * record + 1);
  return of_texts(numbers);
}

std::vector<int64_t> PreferenceExamples::records_in(const Batch& batch) const {
  std::vector<int64_t> records;
  const auto& texts = std::get<WholeTexts>(batch.meaning).texts;
  for (size_t n = 0; n < texts.size(); n += options_.judged ? 1 : 2)
    records.push_back(texts[n].number / 2);
  return records;
}

Tensor PreferenceExamples::values_of(const Batch& batch) const {
  const std::vector<int64_t> records = records_in(batch);
  return tensor_from<double>({std::ssize(records)}, [&](int64_t n) {
    return all_.values[static_cast<size_t>(records[static_cast<size_t>(n)])];
  });
}

uint64_t PreferenceExamples::key(int64_t text) const {
  Hasher hasher;
  for (const Sequences* part : {&all_.texts.ids, &all_.texts.labels, &all_.sources}) {
    if (part->count() == 0) continue;
    const int64_t length = part->length(text);
    hasher.add({reinterpret_cast<const char*>(&length), sizeof length});
    hasher.add({reinterpret_cast<const char*>((*part)[text]),
                static_cast<size_t>(length) * sizeof(int32_t)});
  }
  return hasher.hash();
}

Batch PreferenceExamples::of_texts(const std::vector<int64_t>& numbers) const {
  if (all_.sources.count() > 0) return translated_rows(numbers);
  return options_.one_per_row ? padded_rows(numbers) : shared_rows(numbers);
}

// The results of a text do not depend on its row.
Batch PreferenceExamples::shared_rows(const std::vector<int64_t>& numbers) const {
  const Sequences& ids = all_.texts.ids;
  std::vector<int32_t> lengths;
  std::vector<int64_t> order;  // in `lengths`
  for (const int64_t number : numbers) {
    order.push_back(std::ssize(order));
    lengths.push_back(static_cast<int32_t>(ids.length(number)));
  }
  auto [rows, length] =
      smallest_rows(lengths, order, PackedRows::next_start(ids.longest(numbers)), options_.length);
  WholeTexts whole;
  for (std::vector<int64_t>& row : rows) {
    for (int64_t& text : row) {
      text = numbers[static_cast<size_t>(text)];
      whole.texts.push_back({text, predictions(text)});
    }
  }
  Batch batch = packed_batch(all_.texts, rows, length, options_.padding);
  batch.meaning = std::move(whole);
  return batch;
}

// The padding of a target has no labels, and no earlier token attends to it.
Batch PreferenceExamples::translated_rows(const std::vector<int64_t>& numbers) const {
  const Sequences &sources = all_.sources, &targets = all_.texts.ids;
  const int64_t T = targets.longest(numbers);
  Batch batch;
  batch.source.ids = sources.rows(numbers, sources.longest(numbers), options_.padding);
  batch.target.ids = targets.rows(numbers, T, options_.padding);
  batch.labels = all_.texts.labels.rows(numbers, T, -1);
  WholeTexts whole;
  for (const int64_t number : numbers) {
    batch.source_valid.push_back({0, sources.length(number)});
    whole.texts.push_back({number, predictions(number)});
    batch.predictions += whole.texts.back().predictions;
    batch.tokens += sources.length(number) + targets.length(number);
  }
  batch.meaning = std::move(whole);
  return batch;
}

Batch PreferenceExamples::padded_rows(const std::vector<int64_t>& numbers) const {
  const Sequences& ids = all_.texts.ids;
  const int64_t T = ids.longest(numbers);
  Batch batch;
  model::Sequence& read = options_.decodes ? batch.target : batch.source;
  read.ids = ids.rows(numbers, T, options_.padding);
  if (all_.types.count() > 0) read.types = all_.types.rows(numbers, T, 0);
  batch.labels = full({std::ssize(numbers)}, 0, DType::i32);
  batch.predictions = std::ssize(numbers);
  WholeTexts whole;
  for (const int64_t number : numbers) {
    (options_.decodes ? batch.target_valid : batch.source_valid).push_back({0, ids.length(number)});
    batch.tokens += ids.length(number);
    whole.texts.push_back({number, 1});
  }
  batch.meaning = std::move(whole);
  return batch;
}

}  // namespace fovea::train
