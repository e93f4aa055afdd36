#include "fovea/train/train.h"

#include <limits>

#include "c/arguments.h"
#include "c/guard.h"
#include "c/named_options.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

fovea_train_progress to_c(const train::TrainProgress& p) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  return {.size = sizeof(fovea_train_progress),
          .step = p.step,
          .steps = p.steps,
          .epoch = p.epoch,
          .loss = p.loss,
          .validation_loss = p.validation_loss.value_or(kNone),
          .best_loss = p.best_loss.value_or(kNone),
          .learning_rate = p.learning_rate,
          .gradient_norm = p.gradient_norm,
          .tokens_per_second = p.tokens_per_second,
          .seconds_left = p.seconds_left,
          .tokens = p.tokens,
          .peak_bytes = p.peak_bytes,
          .sample = or_null(p.sample),
          .saved = or_null(p.saved),
          .warning = or_null(p.warning)};
}

fovea_train_result to_c(const train::TrainResult& r) {
  return {.size = sizeof(fovea_train_result),
          .step = r.step,
          .loss = r.loss,
          .best_loss = r.best_loss,
          .seconds = r.seconds,
          .tokens_per_second = r.tokens_per_second,
          .peak_bytes = r.peak_bytes,
          .interrupted = r.interrupted,
          .stopped_early = r.stopped_early};
}

}  // namespace
}  // namespace fovea::c

const char* fovea_train_option_name(size_t index) {
  const auto& all = train_option_list();
  return index < all.size() ? all[index].name.c_str() : nullptr;
}

const char* fovea_train_option_help(size_t index) {
  const auto& all = train_option_list();
  return index < all.size() ? all[index].help.c_str() : nullptr;
}

fovea_status fovea_train(const fovea_option* options, size_t count, fovea_train_callback on_step,
                         void* user, fovea_train_result* result) {
  return guard([&] {
    if (result != nullptr) check_size(result->size);
    const TrainRequest request = train_request(list_of(options, count, "options"));
    const auto progress = [&](const fovea::train::TrainProgress& now) {
      if (on_step == nullptr) return true;
      const fovea_train_progress shown = to_c(now);
      return on_step(&shown, user) != FOVEA_STOP;
    };
    const fovea::train::TrainResult made =
        fovea::train::train(request.spec, request.options, {}, progress);
    if (result != nullptr) give(to_c(made), result->size, result);
  });
}
