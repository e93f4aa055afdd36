#include "fovea/infer/image_model.h"
#include "open/directory.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/fields.h"
#include "base/files.h"
#include "base/float_mode.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/threads.h"
#include "embed/pooling.h"
#include "formats/timm/timm.h"
#include "fovea/model/model_path.h"
#include "open/model_parts.h"
#include "open/open_adapters.h"
#include "open/towers.h"
#include "tensor/tape.h"
#include "tokenizer/formats/vocab_files.h"
#include "vision/image_model_parts.h"
#include "vision/image_size.h"

namespace fovea::infer {
namespace {

constexpr int64_t kFastBatch = 8;  // images, of about 200 tokens each
// The same if each thread computes batches of its own: the values of a layer stay in its caches,
// and no thread waits for others after each operation.
constexpr int64_t kThreadBatch = 2;

struct Batching {
  int64_t size;      // images per batch
  bool own_batches;  // whether each thread computes batches of its own
};
Batching batching_of(int64_t count, int64_t given) {
  const int64_t threads = thread_count();
  const int64_t share = given > 0 ? std::min(kThreadBatch, given / threads) : kThreadBatch;
  // With fewer than two batches for each thread, some threads would have nothing to do at the end.
  if (share > 0 && count >= 2 * threads * share) return {share, true};
  return {given > 0 ? given : kFastBatch, false};
}

std::string image_name(const ImageOptions& options, size_t i) {
  return options.name_of_image ? options.name_of_image(i) : fmt::format("image {}", i + 1);
}

void check_not_stopped(const ImageOptions& options) {
  if (options.stop && options.stop()) fail(ErrorKind::Failed, "images: cancelled by the caller");
}

void check_finite(const float* values, int64_t count, size_t image, const ImageOptions& options) {
  for (int64_t i = 0; i < count; ++i)
    if (!std::isfinite(values[i]))
      fail(ErrorKind::Failed, "{}: its result is not finite; expected a model with finite weights",
           image_name(options, image));
}

// Reads images [first, first + count) as pixels [count, 3, S, S].
Tensor pixels_of(const ImageModel::Parts& parts, const ImageModel::Source& image, size_t first,
                 int64_t count, const ImageOptions& options) {
  const int64_t S = parts.transformer.spec.input.size;
  const Tensor pixels = empty({count, 3, S, S});
  parallel_tasks(count, [&](int64_t i) {
    check_not_stopped(options);
    const size_t n = first + static_cast<size_t>(i);
    parts.processor.normalise(parts.processor.fitted(image(n), image_name(options, n)),
                              pixels.data_as<float>() + i * 3 * S * S);
  });
  return pixels;
}

// Returns model(pixels) for all images, f32 [count, width].
template <class Compute>
std::vector<float> in_batches(const ImageModel::Parts& parts, size_t count,
                              const ImageModel::Source& image, const ImageOptions& options,
                              Compute&& compute) {
  const Batching batching = batching_of(static_cast<int64_t>(count), options.batch);
  const auto size = static_cast<size_t>(batching.size);
  std::vector<std::vector<float>> results((count + size - 1) / size);
  const auto run = [&](int64_t n) {
    const NoGradient no_gradient;
    const size_t batch = static_cast<size_t>(n), first = batch * size;
    const auto B = static_cast<int64_t>(std::min(size, count - first));
    const Tensor rows = compute(parts.hidden(pixels_of(parts, image, first, B, options)));
    results[batch] = to_floats(rows);
    for (int64_t i = 0; i < B; ++i)
      check_finite(results[batch].data() + i * rows.dim(1), rows.dim(1),
                   first + static_cast<size_t>(i), options);
  };
  if (batching.own_batches)
    parallel_tasks(std::ssize(results), run);
  else
    for (int64_t batch = 0; batch < std::ssize(results); ++batch) run(batch);
  std::vector<float> all;
  for (const std::vector<float>& rows : results) all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

ScoreFunction function_of(const model::Origin& origin) {
  if (origin.problem == model::ProblemType::multi_label) return ScoreFunction::sigmoid;
  return origin.problem == model::ProblemType::regression ? ScoreFunction::none
                                                          : ScoreFunction::softmax;
}

}  // namespace

Embeddings empty_embeddings(size_t count, int64_t width) {
  Embeddings result;
  result.count = static_cast<int64_t>(count);
  result.width = width;
  result.tokens.assign(count, 0);
  result.cut.assign(count, 0);
  return result;
}

void scale_to_unit(std::vector<float>& values, int64_t width) {
  if (values.empty()) return;
  const NoGradient no_gradient;
  values = to_floats(unit_length(tensor_of(values, {std::ssize(values) / width, width})));
}

bool has_projected_vectors(const model::Spec& spec) {
  const model::HeadSpec& head = spec.head;
  return head.kind == model::HeadKind::pooled &&
         (head.projection > 0 || head.pooling == model::Pooling::attention);
}

void visit(ImageOptions& o, OptionVisitor& v) {
  v.boolean({"raw", "return the model's logits, without softmax or sigmoid"}, o.raw);
  v.text({"hypothesis", "text about an image, with {} in the place of the label"}, o.hypothesis);
  v.boolean({"normalise", "scale each vector to length 1"}, o.normalise);
  v.integer({"batch", "images per forward pass; 0 = the fastest number"}, o.batch, 0, 65536);
}

Tensor ImageModel::Parts::hidden(const Tensor& pixels) const {
  model::Sequence sequence;
  sequence.signal = pixels;
  return transformer.encode(sequence, model::Pass());
}

Tensor ImageModel::Parts::vectors(const Tensor& states) const {
  if (has_projected_vectors(transformer.spec)) return transformer.logits(states);
  const bool has_class = transformer.spec.input.class_tokens > 0;
  return model::pool(states, has_class ? model::Pooling::first : model::Pooling::mean, {});
}

bool ImageModel::reads_images(const std::string& folder) {
  if (is_file(folder + "/adapter_config.json")) {
    const std::string base = model::adapted_model(folder, {}).base;
    return is_folder(base) && reads_images(base);
  }
  const std::string file = folder + "/config.json";
  if (!is_file(file)) return false;
  if (model::has_towers(folder)) return true;
  const nlohmann::json config = read_json(file);
  if (!config.is_object()) return false;
  if (model::is_timm_config(config)) return true;
  const auto type = config.find("model_type");
  if (type == config.end() || !type->is_string()) return false;
  if (config.contains("image_size") && config.contains("patch_size")) return true;
  if (*type != "fovea" || !config.contains("spec")) return false;
  const nlohmann::json& spec = config["spec"];
  return spec.is_object() && spec.contains("input") && spec["input"].is_object() &&
         spec["input"].value("kind", nlohmann::json()) == "image";
}

ImageModel ImageModel::open(const std::string& folder, model::WeightPrecision precision,
                            const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  auto parts = std::make_shared<Parts>();
  parts->folder = folder;
  model::ModelFiles files;
  if (model::has_towers(folder)) {
    if (!adapters.empty())
      fail(ErrorKind::Unsupported,
           "{}: adapters of a model of images and texts; expected those of one encoder", folder);
    model::Towers towers = model::open_towers(folder, model::weights_of(precision),
                                              model::packing_by_output(precision));
    files = std::move(towers.image);
    if (text::has_vocabulary(folder)) {  // a copy for images alone may lack it
      TextFormat format = TextFormat::open(folder, towers.text.model.spec);
      parts->text = text_tower(std::move(towers), std::move(format), folder);
    }
  } else {
    files = model::open_model_files(folder, model::weights_of(precision),
                                    model::packing_by_output(precision), adapters);
  }
  const model::Spec& spec = files.model.spec;
  if (spec.input.kind != model::InputKind::image || spec.decoder)
    fail(ErrorKind::Unsupported, "{}: not an encoder of images; expected one", folder);
  if (spec.input.channels != 3)
    fail(ErrorKind::Unsupported, "{}: the model reads images with {} channels; expected 3", folder,
         spec.input.channels);
  parts->processor = media::ImageProcessor::open(files.base.empty() ? folder : files.base);
  if (parts->processor.height() != parts->processor.width())
    fail(ErrorKind::Unsupported,
         "{}: the processor's images have {} x {} pixels; expected a "
         "square",
         folder, parts->processor.width(), parts->processor.height());
  set_image_size(files.model, parts->processor.height());
  parts->family = files.origin.family;
  parts->function = function_of(files.origin);
  parts->labels = files.origin.labels;
  for (int64_t i = std::ssize(parts->labels); i < spec.head.labels; ++i)
    parts->labels.push_back(fmt::format("LABEL_{}", i));
  parts->warnings = std::move(files.warnings);
  parts->transformer = std::move(files.model);
  move_to(default_device(), parts->transformer);
  if (parts->text) move_to(default_device(), parts->text->transformer);
  return ImageModel(std::move(parts));
}

bool ImageModel::has_labels() const {
  return parts_->transformer.spec.head.kind == model::HeadKind::sequence;
}
bool ImageModel::reads_texts() const { return parts_->text.has_value(); }
const std::vector<std::string>& ImageModel::labels() const { return parts_->labels; }
const std::vector<std::string>& ImageModel::warnings() const { return parts_->warnings; }
const model::Spec& ImageModel::spec() const { return parts_->transformer.spec; }
int64_t ImageModel::width() const {
  const model::HeadSpec& head = spec().head;
  return head.kind == model::HeadKind::pooled && head.projection > 0 ? head.projection
                                                                     : spec().width;
}

uint64_t ImageModel::fingerprint() const {
  Hasher hasher;
  hasher.add(hash_text(model::model_fingerprint(parts_->folder)));
  hasher.add(parts_->processor.json());
  return hasher.hash();
}

Classifications ImageModel::classify(size_t count, const Source& image,
                                     const ImageOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  check(has_labels(),
        "{}: the model has no head for labels; expected one, or labels to choose from",
        parts_->folder);
  Classifications result;
  result.count = static_cast<int64_t>(count);
  result.labels = parts_->labels;
  result.tokens.assign(count, 0);
  result.cut.assign(count, 0);
  result.scores = in_batches(*parts_, count, image, options, [&](const Tensor& states) {
    const Tensor logits = parts_->transformer.logits(states);
    if (options.raw || parts_->function == ScoreFunction::none) return logits;
    return parts_->function == ScoreFunction::softmax ? softmax(logits)
                                                      : activation(logits, Activation::sigmoid);
  });
  return result;
}

Embeddings ImageModel::embed(size_t count, const Source& image, const ImageOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  Embeddings result = empty_embeddings(count, width());
  result.values = in_batches(*parts_, count, image, options,
                             [&](const Tensor& states) { return parts_->vectors(states); });
  if (options.normalise) scale_to_unit(result.values, result.width);
  return result;
}

}  // namespace fovea::infer
