#include "c/handles.h"
#include "fovea/infer/embed.h"

using namespace fovea::c;

namespace fovea::c {
namespace {

constexpr fovea_embedder_options kEmbedderDefaults = {
    .size = sizeof(fovea_embedder_options), .precision = FOVEA_WEIGHTS_STORED, .reserved = 0};
constexpr fovea_embed_options kEmbedDefaults = [] {
  auto options = sized<fovea_embed_options>();
  options.normalise = -1;
  options.truncate = 1;
  return options;
}();

infer::EmbedOptions from_c(const fovea_embed_options& o) {
  infer::EmbedOptions options;
  options.prompt_name = or_empty(o.prompt_name);
  if (o.prompt != nullptr) options.prompt = o.prompt;
  options.dimensions = o.dimensions;
  check(o.normalise >= -1 && o.normalise <= 1, "normalise: {}; expected -1, 0 or 1", o.normalise);
  if (o.normalise >= 0) options.normalise = o.normalise == 1;
  options.truncate = o.truncate != 0;
  options.batch_tokens = o.batch_tokens;
  return options;
}

std::vector<std::string> texts_of(const char* const* texts, const size_t* sizes, size_t count) {
  std::vector<std::string> list;
  for (const char* text : list_of(texts, count, "texts")) {
    const size_t size = sizes == nullptr ? FOVEA_NUL_TERMINATED : sizes[list.size()];
    list.emplace_back(text_of(text, size, "texts"));
  }
  return list;
}

}  // namespace
}  // namespace fovea::c

fovea_status fovea_embedder_options_init(fovea_embedder_options* options, size_t size) {
  return guard([&] { give(kEmbedderDefaults, size, required(options, "options")); });
}

fovea_status fovea_embed_options_init(fovea_embed_options* options, size_t size) {
  return guard([&] { give(kEmbedDefaults, size, required(options, "options")); });
}

fovea_status fovea_embedder_open(const char* path, const fovea_embedder_options* options,
                                 fovea_embedder** embedder) {
  if (embedder != nullptr) *embedder = nullptr;
  return guard([&] {
    required(embedder, "embedder");
    const fovea_embedder_options chosen = options_of(options, kEmbedderDefaults);
    *embedder = new fovea_embedder(
        fovea::infer::Embedder::open(required(path, "path"), weight_precision(chosen.precision)));
  });
}

fovea_status fovea_embedder_share(fovea_embedder* embedder, fovea_embedder** other) {
  return share(embedder, "embedder", other, [&] { return new fovea_embedder(embedder->embedder); });
}

void fovea_embedder_free(fovea_embedder* embedder) { delete embedder; }

const char* fovea_embedder_error(const fovea_embedder* embedder) { return message_of(embedder); }

const char* fovea_embedder_warning(const fovea_embedder* embedder, size_t index) {
  return embedder == nullptr ? nullptr : at(embedder->embedder.warnings(), index);
}

int64_t fovea_embedder_width(const fovea_embedder* embedder) {
  return embedder == nullptr ? 0 : embedder->embedder.width();
}

fovea_status fovea_embedder_embed(fovea_embedder* embedder, const char* const* texts,
                                  const size_t* sizes, size_t count,
                                  const fovea_embed_options* options, float* values,
                                  size_t capacity) {
  return guard(embedder, "embedder", [&] {
    const fovea::infer::EmbedOptions chosen = from_c(options_of(options, kEmbedDefaults));
    const int64_t full = embedder->embedder.width();
    const auto width = static_cast<size_t>(chosen.dimensions > 0 ? chosen.dimensions : full);
    fovea::check(count <= capacity / width,
                 "capacity: {} floats; expected {} texts of {} floats each", capacity, count,
                 width);
    if (count == 0) return;
    required(values, "values");
    const fovea::infer::Embeddings made =
        embedder->embedder.embed(texts_of(texts, sizes, count), chosen);
    std::copy(made.values.begin(), made.values.end(), values);
  });
}
