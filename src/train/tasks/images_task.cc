#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "data/labelled_images.h"
#include "data/task_tokenizer.h"
#include "fovea/core/excerpt.h"
#include "loop/examples_task.h"
#include "losses/batch.h"
#include "tasks/image_examples.h"

namespace fovea::train {
namespace {

// Predicts the label of an image.
class ImagesTask : public ExamplesTask {
 public:
  ImagesTask(const TrainOptions& options, Purpose purpose)
      : ExamplesTask(options, purpose, {.reads_text = false}),
        training_(read_labelled_images(options.images)) {
    if (options.validation_images.empty())
      hold_out(options.validation, training_, validation_);
    else
      validation_ = read_labelled_images(options.validation_images);
    names_ = training_.labels;
    std::sort(names_.begin(), names_.end());
    names_.erase(std::unique(names_.begin(), names_.end()), names_.end());
    check(names_.size() >= 2, "{}: has only one label, \"{}\"; expected at least two",
          options.images.front(), excerpt(names_.front()));
  }

  text::Tokenizer make_tokenizer(const model::Spec&) override {
    constexpr int64_t kContext = 16;  // unused, like the tokenizer
    const EachText letters = [](const auto& use) { use("a"); };
    return make_task_tokenizer(TokenizerUse::masking, letters, "char", kContext);
  }

  void shape(model::Spec& spec, const text::Tokenizer&, const model::Origin& origin,
             const Say& say) override {
    const bool image = spec.input.kind == model::InputKind::image && !spec.decoder;
    check_field(image, "images", "the model does not read images; expected an encoder of images");
    check_field(spec.input.channels == 3, "images",
                "the model reads images with {} channels; expected 3", spec.input.channels);
    const bool fresh = origin.family == nullptr;
    if (!fresh && spec.head.kind == model::HeadKind::sequence && takes_over(origin)) return;
    spec.head = model::head_of(fresh ? model::family_for(model::validated(spec)) : *origin.family,
                               spec, model::HeadKind::sequence, std::ssize(names_));
    if (!fresh) say(fmt::format("a new head for {} labels", names_.size()));
  }

  std::vector<std::string> labels() const override { return names_; }
  model::ProblemType problem() const override { return model::ProblemType::single_label; }
  PassSize pass_size(const model::Spec& spec) const override {
    return {options_.batch, model::Input(spec.input, spec.width).length()};
  }
  PassSize loaded_size(const model::Spec& spec) const override { return pass_size(spec); }
  infer::EvaluationTask evaluation() const override { return infer::evaluation_task("labels"); }

  std::unique_ptr<Examples> examples(const model::Spec& spec, const text::TranslationTokenizers&,
                                     const model::Origin&, bool, const Say&) override {
    const int64_t side = spec.input.size;
    if (options_.from.empty())
      processor_.resize = {side, side, 0};
    else
      processor_ = media::ImageProcessor::open(options_.from);
    check_field(processor_.height() == side && processor_.width() == side, "from",
                "its preprocessor_config.json makes images of {} x {} pixels; expected {} x {}, "
                "as the model reads",
                processor_.width(), processor_.height(), side, side);
    const ImageExamples::Settings settings{processor_, options_.augmentation, options_.batch,
                                           pass_size(spec).length, options_.seed};
    auto examples =
        std::make_unique<ImageExamples>(indexed(training_), indexed(validation_), settings);
    examples->hash = training_.hash ^ validation_.hash;
    return examples;
  }

  void write_model(const std::string& folder, model::Transformer& model) const override {
    ExamplesTask::write_model(folder, model);
    write_file_atomically(folder + "/preprocessor_config.json", processor_.json());
  }

 protected:
  Tensor loss(const model::Transformer& model, const Batch& batch, const model::Pass& pass,
              double divisor) const override {
    const auto* const mixed = batch.as<MixedLabels>();
    if (mixed == nullptr) return ExamplesTask::loss(model, batch, pass, divisor);
    const HeadInputs inputs = head_inputs(model, batch, pass);
    const UnitScope units(inputs.units);
    const Tensor logits = model.logits(inputs.hidden, inputs.valid);
    const LossOptions options{divisor, static_cast<float>(options_.label_smoothing)};
    return add(scale(cross_entropy(logits, batch.labels, options), mixed->first_share),
               scale(cross_entropy(logits, mixed->second, options), 1 - mixed->first_share));
  }

 private:
  // Uses the labels of the checkpoint's head if they include those of the data; returns whether
  // they do.
  bool takes_over(const model::Origin& origin) {
    const auto known = [&](const std::string& name) {
      return std::find(origin.labels.begin(), origin.labels.end(), name) != origin.labels.end();
    };
    if (!std::all_of(names_.begin(), names_.end(), known)) return false;
    names_ = origin.labels;
    return true;
  }

  ImageFiles indexed(const LabelledImages& images) const {
    ImageFiles files{images.files, {}};
    for (size_t i = 0; i < images.labels.size(); ++i) {
      const auto found = std::find(names_.begin(), names_.end(), images.labels[i]);
      check_field(found != names_.end(), "validation_images",
                  "{} has the label {}, which no image of training has; expected one of them",
                  images.files[i], excerpt(images.labels[i]));
      files.labels.push_back(static_cast<int32_t>(found - names_.begin()));
    }
    return files;
  }

  LabelledImages training_, validation_;
  std::vector<std::string> names_;
  media::ImageProcessor processor_;
};

}  // namespace

std::unique_ptr<ExamplesTask> make_images_task(const TrainOptions& options,
                                               ExamplesTask::Purpose purpose) {
  return std::make_unique<ImagesTask>(options, purpose);
}

}  // namespace fovea::train
