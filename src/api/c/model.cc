#include "fovea/model/model.h"

#include "c/handles.h"
#include "fovea/study/trace.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

constexpr fovea_model_options kModelDefaults = {.size = sizeof(fovea_model_options),
                                                .precision = FOVEA_WEIGHTS_FULL,
                                                .cache_precision = FOVEA_CACHE_AUTOMATIC};
constexpr auto kTraceDefaults = sized<fovea_trace_options>();

std::optional<DType> cache_type(int32_t value) {
  switch (value) {
    case FOVEA_CACHE_AUTOMATIC: return std::nullopt;
    case FOVEA_CACHE_FP32: return DType::f32;
    case FOVEA_CACHE_BF16: return DType::bf16;
    case FOVEA_CACHE_INT8: return DType::i8;
    default:
      fail(ErrorKind::InvalidArgument, "cache_precision: {}; expected 0 to {}", value,
           static_cast<int>(FOVEA_CACHE_INT8));
  }
}

}  // namespace

model::WeightPrecision weight_precision(int32_t value) {
  constexpr auto kMost = static_cast<int32_t>(model::WeightPrecision::int4);
  check(value >= 0 && value <= kMost, "precision: {}; expected 0 to {}", value, kMost);
  return static_cast<model::WeightPrecision>(value);
}

}  // namespace fovea::c

fovea_status fovea_model_options_init(fovea_model_options* options, size_t size) {
  return guard([&] { give(kModelDefaults, size, required(options, "options")); });
}

fovea_status fovea_model_open(const char* path, const fovea_model_options* options,
                              fovea_model** model) {
  if (model != nullptr) *model = nullptr;
  return guard([&] {
    required(model, "model");
    const std::string folder = required(path, "path");
    const fovea_model_options chosen = options_of(options, kModelDefaults);
    *model = new fovea_model(fovea::model::Model::open(folder, weight_precision(chosen.precision),
                                                       cache_type(chosen.cache_precision)),
                             folder);
  });
}

fovea_status fovea_model_share(fovea_model* model, fovea_model** other) {
  return share(model, "model", other, [&] { return new fovea_model(model->model, model->path); });
}

void fovea_model_free(fovea_model* model) { delete model; }

const char* fovea_model_error(const fovea_model* model) { return message_of(model); }

const char* fovea_model_warning(const fovea_model* model, size_t index) {
  return model == nullptr ? nullptr : at(model->model.warnings(), index);
}

fovea_status fovea_model_spec(fovea_model* model, const char** json) {
  return guard(model, "model", [&] {
    required(json, "json");
    model->spec = fovea::model::write_spec(model->model.spec());
    *json = model->spec.c_str();
  });
}

fovea_status fovea_model_tokenizer(fovea_model* model, fovea_tokenizer** tokenizer) {
  if (tokenizer != nullptr) *tokenizer = nullptr;
  return guard(model, "model", [&] {
    *required(tokenizer, "tokenizer") = new fovea_tokenizer(model->model.tokenizer());
  });
}

fovea_status fovea_trace_options_init(fovea_trace_options* options, size_t size) {
  return guard([&] { give(kTraceDefaults, size, required(options, "options")); });
}

fovea_status fovea_model_trace(fovea_model* model, const fovea_trace_options* options,
                               const char* out) {
  return guard(model, "model", [&] {
    const fovea_trace_options chosen = options_of(required(options, "options"), kTraceDefaults);
    fovea::study::TraceOptions wanted;
    wanted.text = text_of(chosen.text, chosen.text_size, "text");
    wanted.ids = list_of(chosen.ids, chosen.id_count, "ids");
    wanted.input = or_empty(chosen.input);
    if (chosen.what != nullptr) wanted.what = {chosen.what};
    wanted.layers = or_empty(chosen.layers);
    wanted.patch = or_empty(chosen.patch);
    wanted.gradients = chosen.gradients != 0;
    wanted.out = required(out, "out");
    fovea::study::trace(model->model, wanted);
  });
}
