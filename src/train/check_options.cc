#include "train/check_options.h"

#include "base/error.h"
#include "base/files.h"

namespace fovea {
namespace {

void check_range(const char* option, double value, double least, double most) {
  check(value >= least && value <= most, "{}: {}; expected {} to {}", option, value, least, most);
}

}  // namespace

void check_data(const TrainOptions& o) {
  const int kinds =
      (o.data.empty() ? 0 : 1) + (o.pairs.empty() ? 0 : 1) + (o.labels.empty() ? 0 : 1);
  check(kinds > 0,
        "DATA: no file; expected text files, folders or JSON lines, or --pairs, or --labels");
  check(kinds == 1, "DATA: cannot be combined with --pairs or --labels; expected one kind of data");
  check(o.validation_pairs.empty() || !o.pairs.empty(),
        "--validation-pairs: given without --pairs; expected both");
  check(o.source_prefix.empty() || !o.pairs.empty(),
        "--source-prefix: given without --pairs; expected both");
  check(o.validation_labels.empty() || !o.labels.empty(),
        "--validation-labels: given without --labels; expected both");
  const bool fits =
      o.objective == Objective::automatic || (o.objective == Objective::pairs) == !o.pairs.empty();
  check(fits && (o.objective == Objective::automatic ||
                 (o.objective == Objective::labels) == !o.labels.empty()),
        "--objective: does not match the data; expected pairs with --pairs, labels with --labels, "
        "and one of the others with a text");
}

void check_options(const TrainOptions& o) {
  check_data(o);
  check_range("--steps", static_cast<double>(o.steps), 1, 1e9);
  check_range("--batch", static_cast<double>(o.batch), 1, 65536);
  check_range("--length", static_cast<double>(o.length), 0, 1e9);
  check_range("--accumulate", static_cast<double>(o.accumulate), 1, 65536);
  check_range("--validation", o.validation, 0, 0.9);
  check_range("--learning-rate", o.learning_rate, 0, 1000);
  check_range("--final-rate", o.final_rate, 0, 1);
  check_range("--warmup", static_cast<double>(o.warmup), 0, 1e9);
  check_range("--decay-fraction", o.decay_fraction, 0, 1);
  check_range("--beta1", o.beta1, 0, 0.99999);
  check_range("--beta2", o.beta2, 0, 0.99999);
  check_range("--epsilon", o.epsilon, 1e-15, 1);
  check_range("--weight-decay", o.weight_decay, 0, 10);
  check_range("--batch-tokens", static_cast<double>(o.batch_tokens), 1, 1 << 24);
  check_range("--label-smoothing", o.label_smoothing, 0, 0.99);
  check_range("--mask", o.mask, 0.001, 0.9);
  check_range("--mean-span", o.mean_span, 1, 100);
  check_range("--average", static_cast<double>(o.average), 1, 100);
  check_range("--bleu-lines", static_cast<double>(o.bleu_lines), 0, 1e9);
  check_range("--clip", o.clip, 0, 1e6);
  check_range("--keep", static_cast<double>(o.keep), 1, 1e6);
  check_range("--bad-steps", static_cast<double>(o.bad_steps), 1, 1e6);
  if (!o.out.empty() && !is_folder(o.out)) {
    std::string parent = o.out;  // the existing part of the path
    while (!is_folder(parent) && parent != "." && parent != "/") {
      if (is_file(parent)) {
        fail(ErrorKind::InvalidArgument,
             "--out: {}: {} is a file; expected a directory, or a name for a new one", o.out,
             parent);
      }
      parent = parent_of(parent);
    }
  }
}

}  // namespace fovea
