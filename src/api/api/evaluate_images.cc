#include <algorithm>
#include <atomic>
#include <span>
#include <thread>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "data/labelled_images.h"
#include "fovea/core/excerpt.h"
#include "fovea/evaluate.h"
#include "losses/contrastive_loss.h"
#include "metrics/predictions.h"
#include "start/evaluate_model.h"
#include "tensor/tape.h"
#include "vision/image_model_parts.h"
#include "vision/retrieval.h"

namespace fovea {
namespace {

using Logits = std::span<const float>;

double negative_log_probability(Logits logits, size_t label) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float each : logits) sum += math::exp(each - most);
  return math::log(sum) + most - logits[label];
}

infer::Predictions classified(const infer::ImageModel& model, const train::LabelledImages& data,
                              const infer::ImageModel::Source& image, infer::ImageOptions options) {
  const std::vector<std::string>& names = model.labels();
  std::vector<size_t> labels;
  for (size_t i = 0; i < data.labels.size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), data.labels[i]);
    if (found == names.end())
      fail(ErrorKind::BadFile, "{}: has the label {}, which the model lacks; expected one of {}",
           data.files[i], excerpt(data.labels[i]), fmt::join(names, ", "));
    labels.push_back(static_cast<size_t>(found - names.begin()));
  }
  options.raw = true;
  const infer::Classifications all = model.classify(data.files.size(), image, options);
  infer::Predictions found;
  for (size_t i = 0; i < labels.size(); ++i) {
    const Logits logits(all.scores.data() + i * names.size(), names.size());
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    found.loss += negative_log_probability(logits, labels[i]) / static_cast<double>(labels.size());
    found.choices.emplace_back(static_cast<int32_t>(labels[i]), static_cast<int32_t>(best));
  }
  found.labels = std::ssize(labels);
  found.names = names;
  return found;
}

// The loss is that of all pairs together.
infer::Predictions retrieved(const infer::ImageModel& model, const train::LabelledImages& data,
                             const infer::ImageModel::Source& image, infer::ImageOptions options) {
  options.normalise = true;
  infer::RetrievalVectors all;
  all.count = std::ssize(data.files);
  all.width = model.width();
  all.images = model.embed(data.files.size(), image, options).values;
  all.texts = model.embed_texts(data.labels, options).values;
  infer::Predictions found = infer::retrieval_of(all, data.labels);
  const NoGradient no_gradient;
  const infer::TextTower& tower = *model.parts().text;
  const Shape shape = {all.count, all.width};
  found.loss = number_of(train::contrastive_loss(
      tensor_of(all.images, shape), tensor_of(all.texts, shape), full({1}, tower.scale),
      tower.sigmoid ? full({1}, tower.bias) : Tensor()));
  return found;
}

}  // namespace

infer::Evaluation evaluate_images(const infer::ImageModel& model,
                                  const std::vector<std::string>& images,
                                  const std::function<bool(double fraction)>& progress) {
  const FloatMode mode;
  check(model.has_labels() || model.reads_texts(),
        "images: the model has no head for labels and reads no texts; expected a classifier, or a "
        "model of images and texts");
  const train::LabelledImages data = train::read_labelled_images(images);
  const auto count = static_cast<double>(data.files.size());
  std::atomic<int64_t> done = 0;
  const infer::ImageModel::Source image = [&](size_t i) {
    ++done;
    return media::read_image(data.files[i]);
  };
  infer::ImageOptions options;
  options.name_of_image = [&](size_t i) { return data.files[i]; };
  const std::thread::id caller = std::this_thread::get_id();
  options.stop = [&] {
    return progress && std::this_thread::get_id() == caller &&
           !progress(static_cast<double>(done) / count);
  };
  const bool pairs = model.reads_texts();
  const infer::Predictions found =
      pairs ? retrieved(model, data, image, options) : classified(model, data, image, options);
  infer::Evaluation result;
  train::add_metrics(result, infer::evaluation_task(pairs ? "retrieval" : "labels"), found);
  result.sequences = std::ssize(data.files);
  return result;
}

}  // namespace fovea
