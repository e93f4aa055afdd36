#include "metrics/ranking.h"

#include <algorithm>
#include <functional>

#include "base/math.h"

namespace fovea::infer {
namespace {

size_t first_of(const std::vector<int64_t>& relevance, int64_t k) {
  return std::min(relevance.size(), static_cast<size_t>(k));
}

// The base of the logarithm cancels out in a quotient of two gains.
double discounted_gain(const std::vector<int64_t>& relevance, int64_t k) {
  double sum = 0;
  for (size_t i = 0; i < first_of(relevance, k); ++i)
    if (relevance[i] > 0)
      sum += static_cast<double>(relevance[i]) / math::log(static_cast<double>(i + 2));
  return sum;
}

int64_t relevant_in(const std::vector<int64_t>& relevance, int64_t k) {
  const auto end = relevance.begin() + static_cast<int64_t>(first_of(relevance, k));
  return std::count_if(relevance.begin(), end, [](int64_t each) { return each > 0; });
}

}  // namespace

bool ranks_before(const RankedDocument& a, const RankedDocument& b) {
  return a.score != b.score ? a.score > b.score : a.id > b.id;
}

int64_t JudgedRanking::relevant() const { return relevant_in(judged, std::ssize(judged)); }

double normalised_gain(const JudgedRanking& ranking, int64_t k) {
  std::vector<int64_t> best = ranking.judged;
  std::sort(best.begin(), best.end(), std::greater<>());
  const double most = discounted_gain(best, k);
  return most > 0 ? discounted_gain(ranking.found, k) / most : 0;
}

double average_precision_at(const JudgedRanking& ranking, int64_t k) {
  double sum = 0, relevant = 0;
  for (size_t i = 0; i < first_of(ranking.found, k); ++i)
    if (ranking.found[i] > 0) sum += ++relevant / static_cast<double>(i + 1);
  return relevant > 0 ? sum / static_cast<double>(ranking.relevant()) : 0;
}

double recall_at(const JudgedRanking& ranking, int64_t k) {
  const auto found = static_cast<double>(relevant_in(ranking.found, k));
  return found > 0 ? found / static_cast<double>(ranking.relevant()) : 0;
}

double precision_at(const JudgedRanking& ranking, int64_t k) {
  return static_cast<double>(relevant_in(ranking.found, k)) / static_cast<double>(k);
}

double reciprocal_rank(const JudgedRanking& ranking, int64_t k) {
  for (size_t i = 0; i < first_of(ranking.found, k); ++i)
    if (ranking.found[i] > 0) return 1 / static_cast<double>(i + 1);
  return 0;
}

}  // namespace fovea::infer
