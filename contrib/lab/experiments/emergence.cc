// The sum of two numbers by models of five sizes: exact matches, and the probability of a right
// digit (Schaeffer et al. 2023).

#include <algorithm>

#include "base/math.h"
#include "fovea/core/autograd.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int32_t kPlus = 10, kSumSign = 11, kDigitTokens = 12;

// a + b = sum, each with its lowest digit first; the labels are the digits of the sum. A row is
// read without the last digit of the sum.
Batch sums(int64_t rows, int64_t digits, uint64_t seed, int64_t part) {
  std::vector<int32_t> ids, labels;
  int32_t numbers = 1;
  for (int64_t i = 0; i < digits; ++i) numbers *= 10;
  const std::vector<int32_t> draws = random_tokens(2 * rows, numbers, seed, part);
  for (int64_t r = 0; r < rows; ++r) {
    const int32_t a = draws[static_cast<size_t>(2 * r)], b = draws[static_cast<size_t>(2 * r + 1)];
    std::vector<int32_t> row;
    const auto write = [&](int32_t number, int64_t length) {
      for (int64_t i = 0; i < length; ++i, number /= 10) row.push_back(number % 10);
    };
    write(a, digits);
    row.push_back(kPlus);
    write(b, digits);
    row.push_back(kSumSign);
    write(a + b, digits + 1);
    ids.insert(ids.end(), row.begin(), row.end() - 1);
    labels.insert(labels.end(), static_cast<size_t>(2 * digits + 1), -1);
    labels.insert(labels.end(), row.end() - digits - 1, row.end());
  }
  return batch_of(ids, labels, rows);
}

// The fraction of rows whose digits are all right, each predicted after the right ones before it.
double exact_matches(const nn::Transformer& model, const Batch& batch) {
  const NoGradient off;
  const LabelledRows inputs = labelled_rows(model, batch);
  const std::vector<int32_t> found = most_likely(model.logits(inputs.hidden));
  const int32_t* label = inputs.labels.data_as<int32_t>();
  const int64_t rows = batch.ids.dim(0), each = batch.predictions / rows;
  double right = 0;
  for (auto digit = found.begin(); digit != found.end(); digit += each, label += each)
    right += std::equal(label, label + each, digit);
  return right / static_cast<double>(rows);
}

Readings added(const Trial& t) {
  constexpr int64_t kUnseen = 1 << 30;
  const auto width = static_cast<int64_t>(t.x);
  const int64_t digits = t.form == LabForm::brief ? 2 : 3, length = 3 * digits + 2;
  const nn::Transformer model(
      with_positions(small_decoder(2, width, kDigitTokens, length), "learned"), t.seed);
  train_on(model, {.steps = t.times(1500, 5000), .rate = t.rate},
           [&](int64_t step) { return sums(64, digits, t.seed, step); });
  const Batch unseen = sums(512, digits, t.seed, kUnseen);
  return {{"exact matches", t.x, exact_matches(model, unseen)},
          {"probability of a digit", t.x, math::exp(-mean_loss(model, {unseen}))}};
}

// The largest rise between two neighbouring sizes, as a fraction of the rise to the best size.
LabPoint sharpest(const Table& table, const std::string& series) {
  const std::vector<double> sizes = table.x_values(series);
  return by_seed(table, [&](const SeedValue& value) {
    double most = 0, best = 0;
    for (size_t i = 1; i < sizes.size(); ++i) {
      most = std::max(most, value(series, sizes[i]) - value(series, sizes[i - 1]));
      best = std::max(best, value(series, sizes[i]) - value(series, sizes[0]));
    }
    return best > 0 ? most / best : 0;
  });
}

std::vector<Conclusion> decide_emergence(const Table& table) {
  constexpr double kSudden = 0.5;
  std::vector<Case> cases;
  std::string numbers;
  for (const std::string& series : table.series()) {
    const LabPoint share = sharpest(table, series);
    cases.push_back({"measured by " + series, above(share, kSudden)});
    numbers += (numbers.empty() ? "" : "; ") + course(table, series) + " (largest step " +
               number_text(share.mean) + " of the rise)";
  }
  return {conclude("CLM-19: abilities emerge suddenly with size", cases, numbers)};
}

}  // namespace

Experiment emergence() {
  return {
      .summary = {.name = "emergence",
                  .claims = {"CLM-19: abilities emerge suddenly with size"},
                  .metric = "sums of numbers of two digits (--long: three): exact matches; mean "
                            "probability of a digit",
                  .axis = "width of the model",
                  .rule = "holds for a metric if more than half of its rise to the best of five "
                          "sizes is between two neighbouring sizes"},
      .greater_is_better = true,
      .logarithmic = true,
      .arms = {"2 layers"},
      .grid = {{8, 16, 32, 64, 128}, {8, 16, 32, 64, 128}},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = added,
      .conclude = decide_emergence};
}

}  // namespace fovea::lab
