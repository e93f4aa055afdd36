#include "ops/row_loss.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "kernels/sum_tree.h"
#include "ops/common.h"
#include "ops/units.h"
#include "tensor/host_values.h"

namespace fovea {
namespace {

// Checks the targets of rows of logits. Returns the divisor of the sum of losses: `divisor`, or the
// number of targets that are not ignored if it is 0.
double checked_divisor(const char* op, const Tensor& targets, const Rows& logits, double divisor,
                       float smoothing) {
  check(targets.dtype() == DType::i32 && targets.size() == logits.count,
        "{}: targets are {} {}, logits {}; expected one int32 per row", op,
        name_of(targets.dtype()), targets.shape(), Shape{logits.count, logits.width});
  check(smoothing >= 0 && smoothing <= 1, "{}: smoothing {}; expected 0 to 1", op, smoothing);
  const HostValues<int32_t> target(targets);
  int64_t counted = 0;
  for (int64_t i = 0; i < logits.count; ++i) {
    check(target[i] < logits.width, "{}: target {} at position {}; expected less than {}", op,
          target[i], i, logits.width);
    counted += target[i] >= 0;
  }
  return divisor != 0 ? divisor : static_cast<double>(std::max<int64_t>(1, counted));
}

// Checks the classes, and returns the number of rows that are not ignored.
int64_t checked_rows(const char* op, const TopProbabilities& p, Rows logits) {
  const bool fits = p.classes.rank() == 2 && p.classes.dtype() == DType::i32 &&
                    p.classes.dim(0) == logits.count && p.classes.dim(1) >= 1 &&
                    p.log_p.shape() == Shape{logits.count, p.classes.dim(1) + 1};
  check(fits, "{}: classes are {} {}, log_p {}, logits {}; expected int32 [R, k] and [R, k + 1]",
        op, name_of(p.classes.dtype()), p.classes.shape(), p.log_p.shape(),
        Shape{logits.count, logits.width});
  const HostValues<int32_t> classes(p.classes);
  const size_t k = static_cast<size_t>(p.classes.dim(1));
  int64_t counted = 0;
  for (int64_t r = 0; r < logits.count; ++r) {
    const std::span<const int32_t> row = classes.row(r);
    if (row[0] < 0) continue;
    ++counted;
    for (size_t j = 0; j < k; ++j)
      check(row[j] < logits.width && (j == 0 || row[j - 1] < row[j]),
            "{}: class {} of row {} is {}; expected ascending classes below {}", op, j, r, row[j],
            logits.width);
  }
  return counted;
}

}  // namespace

RowLoss::RowLoss(const char* op, const Tensor& of, const Tensor& targets, Rows logits,
                 const LossOptions& options)
    : width_(logits.width),
      divisor_(checked_divisor(op, targets, logits, options.divisor, options.smoothing)),
      smoothing_(options.smoothing) {
  if (const Distillation* d = options.distillation; d != nullptr) {
    check(d->share >= 0 && d->share <= 1, "{}: share {}; expected 0 to 1", op, d->share);
    hard_share_ = 1.0 - d->share;
    set_divergence(op, of, d->teacher, logits, d->share, d->temperature);
    if (hard_share_ == 0) return;
  }
  targets_ = targets.view({logits.count}).to(of.device());
  losses_ = statistics(of, logits);
  lse_ = statistics(of, logits);
}

RowLoss::RowLoss(const char* op, const Tensor& of, const TopProbabilities& p, Rows logits,
                 double divisor, float temperature)
    : width_(logits.width), divisor_(divisor), hard_share_(0) {
  const int64_t counted = set_divergence(op, of, p, logits, 1, temperature);
  if (divisor == 0) divisor_ = static_cast<double>(std::max<int64_t>(1, counted));
}

int64_t RowLoss::set_divergence(const char* op, const Tensor& of, const TopProbabilities& p,
                                Rows logits, double share, double temperature) {
  check(temperature > 0 && std::isfinite(temperature), "{}: temperature {}; expected above 0", op,
        temperature);
  const int64_t counted = checked_rows(op, p, logits);
  const TopClasses classes{p.classes.dim(1), static_cast<float>(1 / temperature)};
  divergence_ = Divergence{{p.classes.to(of.device()), p.log_p.to(of.device())},
                           classes,
                           statistics(of, logits),
                           statistics(of, logits),
                           statistics(of, logits),
                           share,
                           temperature};
  return counted;
}

void RowLoss::forward(const Tensor& logits, int64_t begin, int64_t end) const {
  const Rows rows{end - begin, width_};
  const auto part = [&](const Tensor& x) { return x.rows(begin, end); };
  const Kernels& k = kernels(logits);
  if (targets_)
    k.cross_entropy(part(losses_), part(lse_), logits, part(targets_), smoothing_, rows);
  if (!divergence_) return;
  const Divergence& d = *divergence_;
  k.kl_divergence(part(d.losses), part(d.lse), part(d.rest), logits, part(d.p.classes),
                  part(d.p.log_p), d.classes, rows);
}

// The rows of each unit are summed first, then the units by their tree.
Tensor RowLoss::total() const {
  const int64_t R = (targets_ ? losses_ : divergence_->losses).size();
  const Units units = row_units().of(R);
  std::vector<double> sums;
  for (int64_t unit = 0; unit < units.count; ++unit) {
    const int64_t begin = units.start(unit, R), end = units.start(unit + 1, R);
    const auto mean = [&](const Tensor& losses) {
      return kernels(losses).sum(losses.rows(begin, end), end - begin) / divisor_;
    };
    double sum = targets_ ? hard_share_ * mean(losses_) : 0;
    if (divergence_) {
      const double t = divergence_->temperature;
      sum += divergence_->share * t * t * mean(divergence_->losses);
    }
    sums.push_back(sum);
  }
  return full({1}, tree_sum(sums), DType::f64);
}

void RowLoss::backward(Out dlogits, const Tensor& logits, double dy, int64_t begin, int64_t end,
                       Classes columns) const {
  const Rows rows{end - begin, logits.size() / std::max<int64_t>(1, end - begin)};
  const auto part = [&](const Tensor& x) { return x.rows(begin, end); };
  const Kernels& k = kernels(logits);
  if (targets_) {
    // dlogits = (softmax(logits) - (1 - smoothing) onehot(target) - smoothing / V) / divisor * dy
    k.cross_entropy_backward(dlogits, logits, part(lse_), part(targets_), {},
                             static_cast<float>(hard_share_ * dy / divisor_), smoothing_, rows,
                             columns);
    dlogits.add = true;
  }
  if (!divergence_) return;
  // dlogits += share * T (softmax(logits / T) - p) / divisor * dy, for the listed classes
  const Divergence& d = *divergence_;
  const double factor = d.share * d.temperature * dy / divisor_;
  k.kl_divergence_backward(dlogits, logits, part(d.lse), part(d.rest), part(d.p.classes),
                           part(d.p.log_p), d.classes, static_cast<float>(factor), rows, columns);
}

}  // namespace fovea
