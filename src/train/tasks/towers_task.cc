#include "tasks/towers_task.h"

#include <algorithm>
#include <cmath>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/math.h"
#include "data/labelled_images.h"
#include "data/task_tokenizer.h"
#include "embed/batching.h"
#include "embed/losses.h"
#include "embed/pooling.h"
#include "loop/check_options.h"
#include "loop/examples_task.h"
#include "loop/recommended.h"
#include "loop/settings.h"
#include "loop/trainer.h"
#include "loop/used_fields.h"
#include "losses/contrastive_loss.h"
#include "optim/schedule.h"
#include "tasks/image_examples.h"
#include "tensor/tape.h"
#include "tokenizer/state/config.h"
#include "tokenizer/state/state.h"
#include "transformer/pack.h"
#include "vision/retrieval.h"
#include "vision/text_tower.h"

namespace fovea::train {
namespace {

// A batch of pairs, ready for the models.
struct PairBatch {
  Tensor pixels;  // [B, 3, S, S]
  infer::TokenBatch texts;
};

// Trains an encoder of images and a model of texts on pairs of an image and its caption.
class TowersTask : public TrainingTask {
 public:
  struct Data {
    LabelledImages training, validation;
  };
  TowersTask(const TrainOptions& options, Data data, model::Towers towers, infer::TextFormat format,
             const media::ImageProcessor& processor)
      : TrainingTask({.measures_steps = false}),  // a step changes the model of texts
        options_(options),
        data_(std::move(data)),
        processor_(processor),
        image_(towers.image.origin),
        text_origin_(towers.text.origin),
        text_(infer::text_tower(std::move(towers), std::move(format), options.from)),
        scale_{{1}, model::Role::gain, full({1}, text_.scale)},
        bias_{{1}, model::Role::bias, full({1}, text_.bias)},
        order_(files_of(data_.training), files_of(data_.validation),
               {processor_, options.augmentation, options.batch, 1, options.seed}) {}

  int64_t count() const { return std::ssize(data_.training.files); }
  int64_t held_out() const { return std::ssize(data_.validation.files); }
  const infer::TextTower& text() const { return text_; }
  uint64_t hash() const { return data_.training.hash ^ data_.validation.hash; }

  std::vector<model::NamedParameter> own_parameters() const override {
    std::vector<model::NamedParameter> all = model::parameters_of(text_.transformer);
    for (model::NamedParameter& each : all) each.name = "text." + each.name;
    all.push_back({"logit_scale", &scale_});
    if (text_.sigmoid) all.push_back({"logit_bias", &bias_});
    return all;
  }
  StepLoss backward(const model::Transformer& model, int64_t step) const override;
  double passes_per_epoch() const { return order_.passes_per_epoch(); }
  void set_epochs(double epochs) { options_.epochs = epochs; }
  double steps_per_epoch() const override {
    return passes_per_epoch() / mean_passes(options_, passes_per_epoch());
  }
  infer::EvaluationTask evaluation() const override { return infer::evaluation_task("retrieval"); }
  bool evaluates() const override { return held_out() > 0; }
  infer::Predictions predict(const model::Transformer& model) const override;
  void write_fixed_files(const std::string& folder) const override {
    text_.format.tokenizer().save(folder);
  }
  void write_model(const std::string& folder, model::Transformer& model) const override;

 private:
  static ImageFiles files_of(const LabelledImages& images) {
    return {images.files, std::vector<int32_t>(images.files.size())};
  }
  Tensor images(const model::Transformer& model, const Tensor& pixels) const {
    model::Sequence sequence;
    sequence.signal = pixels;
    return model.logits(model.encode(sequence, model::Pass()));
  }
  PairBatch training_batch(int64_t pass) const;
  infer::TokenBatch texts_of(const LabelledImages& pairs, const std::vector<int64_t>& rows) const;
  // Keeps the temperature from vanishing: Radford et al. 2021, 2.5.
  void limit_scale() const {
    constexpr float kMost = 100;
    if (text_.sigmoid) return;
    const auto value = static_cast<float>(number_of(scale_.value));
    copy_elements(scale_.value, 0, full({1}, std::min(value, math::log(kMost))), 0, 1);
  }
  Tensor loss(const Tensor& images, const Tensor& texts) const {
    return contrastive_loss(images, texts, scale_.value, text_.sigmoid ? bias_.value : Tensor());
  }
  double cached_backward(const model::Transformer& model,
                         const std::vector<PairBatch>& passes) const;

  TrainOptions options_;
  const Data data_;
  const media::ImageProcessor processor_;
  const model::Origin image_, text_origin_;
  // Trained by the optimiser, which has their addresses.
  mutable infer::TextTower text_;
  mutable model::Parameter scale_, bias_;
  ImageExamples order_;
};

infer::TokenBatch TowersTask::texts_of(const LabelledImages& pairs,
                                       const std::vector<int64_t>& rows) const {
  const std::vector<infer::TokenizedText> tokens = infer::tokenize_all(rows.size(), [&](size_t i) {
    return text_.tokens(pairs.labels[static_cast<size_t>(rows[i])]);
  });
  std::vector<size_t> all(rows.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return infer::token_batch(tokens, all);
}

PairBatch TowersTask::training_batch(int64_t pass) const {
  return {order_.training(pass).source.signal, texts_of(data_.training, order_.samples(pass))};
}

// The loss is that of all pairs of a step. With several passes, the gradients of the vectors are
// cached (Gao et al. 2021): memory does not limit the number of pairs in a step.
TrainingTask::StepLoss TowersTask::backward(const model::Transformer& model, int64_t step) const {
  limit_scale();
  StepLoss result;
  std::vector<PairBatch> passes;
  const Growth of_step = passes_of(options_, passes_per_epoch());
  for (int64_t i = 0; i < of_step.at(step); ++i) {
    passes.push_back(training_batch(of_step.sum(step) + i));
    for (const Interval& row : passes.back().texts.valid) result.tokens += row.end - row.begin;
  }
  if (passes.size() > 1) {
    result.loss = cached_backward(model, passes);
    return result;
  }
  const Tensor total = loss(images(model, passes[0].pixels), text_.vectors(passes[0].texts));
  fovea::backward(total);
  result.loss = number_of(total);
  return result;
}

double TowersTask::cached_backward(const model::Transformer& model,
                                   const std::vector<PairBatch>& passes) const {
  std::vector<float> values[2];
  for (const PairBatch& pass : passes) {
    const NoGradient no_gradient;
    const std::vector<float> both[] = {to_floats(images(model, pass.pixels)),
                                       to_floats(text_.vectors(pass.texts))};
    for (int side : {0, 1})
      values[side].insert(values[side].end(), both[side].begin(), both[side].end());
  }
  const int64_t C = model.spec.head.projection > 0 ? model.spec.head.projection : model.spec.width;
  Tensor vectors[2];
  for (int side : {0, 1}) {
    vectors[side] = tensor_of(values[side], {std::ssize(values[side]) / C, C});
    vectors[side].want_gradient();
  }
  const Tensor total = loss(vectors[0], vectors[1]);
  fovea::backward(total);
  int64_t first = 0;
  for (const PairBatch& pass : passes) {
    const int64_t end = first + pass.pixels.dim(0);
    fovea::backward(
        infer::inner_product(images(model, pass.pixels), vectors[0].gradient().rows(first, end)));
    fovea::backward(
        infer::inner_product(text_.vectors(pass.texts), vectors[1].gradient().rows(first, end)));
    first = end;
  }
  return number_of(total);
}

infer::Predictions TowersTask::predict(const model::Transformer& model) const {
  const NoGradient no_gradient;
  infer::RetrievalVectors all;
  double sum = 0;
  const int64_t batches = order_.validation_batches();
  for (int64_t n = 0; n < batches; ++n) {
    const Tensor pixels = order_.validation(n).source.signal;
    std::vector<int64_t> rows(static_cast<size_t>(pixels.dim(0)));
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = n * options_.batch + static_cast<int64_t>(i);
    const Tensor x = images(model, pixels), y = text_.vectors(texts_of(data_.validation, rows));
    sum += number_of(loss(x, y));
    all.add(infer::unit_length(x), infer::unit_length(y));
  }
  infer::Predictions found = infer::retrieval_of(all, data_.validation.labels);
  found.loss = sum / static_cast<double>(batches);
  return found;
}

void TowersTask::write_model(const std::string& folder, model::Transformer& model) const {
  model::Towers towers;
  towers.image.model = model;  // copies share the weights
  towers.image.origin = image_;
  towers.text.model = text_.transformer;
  towers.text.origin = text_origin_;
  towers.scale = static_cast<float>(number_of(scale_.value));
  towers.bias = static_cast<float>(number_of(bias_.value));
  towers.sigmoid = text_.sigmoid;
  const text::Tokenizer& tokenizer = text_.format.tokenizer();
  const text::TokenizerConfig config(tokenizer.state().files.config, "tokenizer_config.json");
  const auto id = [&](std::initializer_list<const char*> roles) -> std::optional<int32_t> {
    for (const char* role : roles)
      if (const std::string token = config.token(role, ""); !token.empty())
        return tokenizer.id_of(token);
    return std::nullopt;
  };
  model::save_towers(
      folder, towers,
      {id({"bos_token", "cls_token"}), id({"eos_token", "sep_token"}), id({"pad_token"})});
  write_file_atomically(folder + "/preprocessor_config.json", processor_.json());
}

void check_towers(const TrainOptions& o) {
  check_options(o);
  check_field(o.objective == Objective::automatic || o.objective == Objective::contrastive,
              "objective", "{} for a model of images and texts; expected contrastive",
              name_of(o.objective));
  check_field(o.lora.rank == 0, "lora", "given for a model of images and texts; expected `freeze`");
  check_field(o.average == 1, "average", "{} for a model of images and texts; expected 1",
              o.average);
  check_field(o.batch * o.accumulate >= 2, "batch",
              "1, but a pair is compared with the others of its step; expected at least 2");
}

// The tokens of captions: [CLS] text [SEP].
text::Tokenizer tokenizer_for(const TrainOptions& o, const LabelledImages& pairs, int64_t context) {
  const EachText captions = [&](const auto& use) {
    for (const std::string& caption : pairs.labels) use(caption);
  };
  return make_task_tokenizer(TokenizerUse::masking, captions, o.tokenizer, context);
}

nlohmann::ordered_json settings(const Job& job, const TowersTask& task) {
  nlohmann::ordered_json s;
  s["spec"] = nlohmann::ordered_json::parse(model::write_spec(job.plan.spec));
  s["text_spec"] = nlohmann::ordered_json::parse(model::write_spec(task.text().transformer.spec));
  s["data"] = hash_text(task.hash());
  s["tokenizer_hash"] = fmt::format("{:016x}", task.text().format.tokenizer().hash());
  s["precision"] = name_of(job.compute);
  s["epoch_passes"] = passes_of(job.options, task.passes_per_epoch()).epoch;
  s.update(settings_of(job.options, Objective::contrastive));
  return s;
}

// Adds the cost of the model of texts to that of the encoder of images.
void add_text(Job& job, const infer::TextTower& text) {
  model::Transformer model = text.transformer;
  const model::Spec& spec = model.spec;
  const TrainOptions& o = job.options;
  const Cost cost = training_cost(spec, o.batch, spec.context, o.accumulate, job.compute);
  TrainPlan& plan = job.plan;
  plan.parameters += cost.parameters;
  plan.trained_parameters += cost.trained;
  plan.weight_bytes += cost.weight_bytes;
  plan.optimizer_bytes += cost.optimizer_bytes;
  plan.activation_bytes += cost.activation_bytes;
  plan.flops_per_step += cost.flops_per_step;
  if (o.accumulate > 1) plan.flops_per_step *= 4.0 / 3;
  check_memory(job);
}

void plan_pairs(Job& job, TowersTask& task, const model::Spec& spec) {
  TrainOptions& o = job.options;
  choose_training(job, Objective::contrastive, task.passes_per_epoch());
  task.set_epochs(o.epochs);
  choose_pauses(job);
  TrainPlan& plan = job.plan;
  const int64_t tokens = task.text().transformer.spec.context;
  plan.spec = spec;
  plan.objective = Objective::contrastive;
  plan.vocabulary = task.text().format.tokenizer().size();
  plan.training_sequences = task.count();
  plan.validation_sequences = task.held_out();
  plan.training_tokens = task.count() * tokens;
  plan.validation_tokens = task.held_out() * tokens;
  plan.tokens_per_step = o.batch * o.accumulate * tokens;
  plan.epochs = static_cast<double>(o.steps) / task.steps_per_epoch();
}

}  // namespace

bool trains_towers(const model::Spec& spec, const TrainOptions& o) {
  if (o.images.empty()) return false;
  return o.from.empty() ? model::describes_towers(spec) : model::has_towers(o.from);
}

Job prepare_towers(const model::Spec& given, const TrainOptions& options, const Say& say) {
  check_towers(options);
  Job job;
  job.options = options;
  open_snapshot(job, say);
  job.compute = DType::f32;
  TowersTask::Data data{read_labelled_images(options.images), {}};
  if (options.validation_images.empty())
    hold_out(options.validation, data.training, data.validation);
  else
    data.validation = read_labelled_images(options.validation_images);
  model::Towers towers;
  media::ImageProcessor processor;
  std::optional<infer::TextFormat> format;
  if (options.from.empty()) {
    model::Spec spec = given;
    const text::Tokenizer tokenizer = job.snapshot
                                          ? text::Tokenizer::open(options.out)
                                          : tokenizer_for(options, data.training, spec.context);
    spec.vocabulary = std::max<int64_t>(spec.vocabulary, tokenizer.size());
    towers = model::new_towers(spec, options.seed);
    format.emplace(tokenizer, spec.context, infer::TextSettings{.max_tokens = {}, .types = false});
    processor.resize = {spec.input.size, spec.input.size, 0};
  } else {
    towers = model::open_towers(options.from, model::Weights::owned, {});
    format.emplace(infer::TextFormat::open(options.from, towers.text.model.spec));
    processor = media::ImageProcessor::open(options.from);
    for (const model::ModelFiles* part : {&towers.text, &towers.image})
      for (const std::string& warning : part->warnings) say(warning);
  }
  for (model::ModelFiles* part : {&towers.text, &towers.image})
    part->origin.save_all_as(DType::f32);
  model::Transformer model = std::move(towers.image.model);
  const model::Spec spec = model.spec;
  refuse_unused(options, Objective::contrastive, options.from.empty() ? given : spec);
  check_field(processor.height() == spec.input.size && processor.width() == spec.input.size, "from",
              "its preprocessor_config.json makes images of {} x {} pixels; expected {} x {}, "
              "as the model reads",
              processor.width(), processor.height(), spec.input.size, spec.input.size);
  job.family = &model::family_to_save(spec, towers.image.origin);
  job.base_bytes = model::weight_bytes(model);
  auto opened = std::make_unique<TowersTask>(options, std::move(data), std::move(towers),
                                             std::move(*format), processor);
  TowersTask* const task = opened.get();
  job.task = std::move(opened);
  job.options.best_by = choose_best_by(options.best_by, task->evaluation());
  plan_cost(job, spec, {options.batch, model::Input(spec.input, spec.width).length()});
  plan_pairs(job, *task, spec);
  add_text(job, task->text());
  job.settings = settings(job, *task);
  check_settings(job, say);
  if (const std::string change = change_of_class(job); !change.empty()) say(change);
  choose_model(job, spec, [&] {
    job.model = std::move(model);
    job.plan.from = options.from.empty() ? "random weights" : options.from;
  });
  return job;
}

}  // namespace fovea::train
