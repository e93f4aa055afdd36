#include "fovea/model/model.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/ggml_file.h"
#include "formats/gguf/mmproj.h"
#include "fovea/model/model_path.h"
#include "open/directory.h"
#include "open/image_text.h"
#include "open/model_parts.h"
#include "open/open_adapters.h"
#include "tokenizer/formats/gguf_tokenizer.h"
#include "tokenizer/formats/vocab_files.h"
#include "transformer/pack.h"

namespace fovea::model {

bool comes_with_tokenizer(const std::string& path) {
  if (is_ggml(path)) return true;
  return is_gguf(path) ? text::has_tokenizer(Gguf(path)) : text::has_vocabulary(path);
}

namespace {

DType cache_type(Transformer& model, std::optional<DType> given) {
  if (given) {
    check(*given == DType::f32 || *given == DType::bf16 || *given == DType::i8,
          "cache: {}; expected fp32, bf16 or int8", name_of(*given));
    return *given;
  }
  bool rounded = false;
  model.each([&](const std::string&, const Parameter& p) {
    rounded |= p.packed && p.packed.matrix().format != WeightFormat::f32;
  });
  return rounded ? DType::bf16 : DType::f32;
}

std::optional<text::TranslationTokenizers> tokenizers_of(const std::string& path) {
  if (!comes_with_tokenizer(path)) return std::nullopt;
  return text::TranslationTokenizers::open(path);
}

}  // namespace

Model Model::open(const std::string& folder, WeightPrecision precision, std::optional<DType> cache,
                  const std::vector<AdapterUse>& adapters) {
  const FloatMode mode;
  // While this thread waits for files and memory, another one makes the tokenizers. Without a
  // second thread, get() makes them.
  auto making = std::async([&] { return tokenizers_of(folder); });
  ModelFiles files =
      open_model_files(folder, weights_of(precision), packing_of(precision), adapters);
  auto parts = std::make_shared<ModelParts>();
  parts->path = folder;
  parts->transformer = std::move(files.model);
  move_to(default_device(), parts->transformer);
  parts->warnings = std::move(files.warnings);
  parts->origin = std::move(files.origin);
  parts->end_ids = std::move(files.end_ids);
  if (const std::string& base = files.base.empty() ? folder : files.base; reads_images(base)) {
    auto encoder = open_image_encoder(base, parts->transformer.spec, weights_of(precision),
                                      packing_by_output(precision));
    move_to(default_device(), *encoder);
    parts->images = std::move(encoder);
  }
  parts->cache = cache_type(parts->transformer, cache);
  auto tokenizers = making.get();
  if (!tokenizers && !files.base.empty()) tokenizers = tokenizers_of(files.base);
  if (tokenizers) {
    parts->tokenizer = tokenizers->source;
    parts->target_tokenizer = tokenizers->target;
    // The token of tokenizer_config.json ends texts if no other file names one.
    const auto end = tokenizers->target.eos_id();
    if (end && parts->end_ids.empty() && parts->transformer.spec.decoder) parts->end_ids = {*end};
  }
  return Model(std::move(parts));
}

Model Model::with_adapters(const std::vector<AdapterUse>& adapters) const {
  const FloatMode mode;
  ModelFiles files;
  files.model = parts_->transformer;
  files.origin = parts_->origin;
  files.end_ids = parts_->end_ids;
  add_adapters_to_shared(files, adapters);
  auto parts = std::make_shared<ModelParts>(*parts_);
  parts->transformer = std::move(files.model);
  parts->origin = std::move(files.origin);
  parts->end_ids = std::move(files.end_ids);
  return Model(std::move(parts));
}

Model Model::with_image_encoder(const std::string& mmproj, WeightPrecision precision) const {
  const FloatMode mode;
  auto parts = std::make_shared<ModelParts>(*parts_);
  auto encoder = open_mmproj(mmproj, spec(), weights_of(precision), packing_by_output(precision));
  if (const auto token = tokenizer().id_of("<image>")) encoder->token = *token;
  move_to(default_device(), *encoder);
  parts->images = std::move(encoder);
  return Model(std::move(parts));
}

Model Model::create(const Spec& spec, const text::Tokenizer& tokenizer, uint64_t seed) {
  const FloatMode mode;
  Spec sized = spec;
  if (sized.vocabulary == 0) sized.vocabulary = tokenizer.size();
  auto parts = std::make_shared<ModelParts>();
  parts->transformer = Transformer(validated(sized));
  parts->origin.family = &family_for(parts->transformer.spec);
  parts->tokenizer = parts->target_tokenizer = tokenizer;
  if (const auto end = tokenizer.eos_id()) parts->end_ids = {*end};
  initialise(parts->transformer, seed);
  return Model(std::move(parts));
}

void Model::save(const std::string& folder) const {
  const FloatMode mode;
  if (parts_->images)
    fail(ErrorKind::Unsupported,
         "{}: a model of texts with images cannot be saved; expected a model of texts", folder);
  make_directories(folder);
  const auto& ends = parts_->end_ids;
  save_model_files(folder, parts_->transformer,
                   ends.empty() ? std::nullopt : std::optional(ends[0]), parts_->origin);
  if (parts_->tokenizer) parts_->tokenizer->save(folder);
}

const std::vector<std::string>& Model::warnings() const { return parts_->warnings; }
const Spec& Model::spec() const { return parts_->transformer.spec; }
bool Model::has_tokenizer() const { return parts_->tokenizer.has_value(); }

const text::Tokenizer& Model::tokenizer() const {
  check(has_tokenizer(), "model: it has no tokenizer; expected tokenizer.json in its directory");
  return *parts_->tokenizer;
}

int64_t Model::weight_bytes() const {
  return static_cast<int64_t>(model::weight_bytes(parts_->transformer));
}

std::vector<FormatBytes> Model::weight_formats() const {
  std::map<std::string, int64_t> formats;
  parts_->transformer.each([&](const std::string&, const Parameter& p) {
    const bool packed = static_cast<bool>(p.packed);
    const std::string name =
        packed ? name_of(p.packed.matrix().format) : std::string(name_of(p.value.dtype()));
    formats[name] += static_cast<int64_t>(packed ? p.packed.bytes() : p.value.bytes());
  });
  return largest_first(formats);
}

int64_t Model::parameters() const { return parameter_count(parts_->transformer); }

}  // namespace fovea::model
