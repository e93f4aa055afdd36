#include "start/prepare.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "data/task_tokenizer.h"
#include "data/text_pairs.h"
#include "data/train_tokenizer.h"
#include "fovea/model/model_path.h"
#include "loop/adapters.h"
#include "loop/check_options.h"
#include "loop/examples_task.h"
#include "loop/leader.h"
#include "loop/new_head.h"
#include "loop/pauses.h"
#include "loop/recommended.h"
#include "loop/settings.h"
#include "loop/used_fields.h"
#include "losses/generalised_divergence.h"
#include "open/directory.h"
#include "optim/schedule.h"
#include "tasks/towers_task.h"
#include "tokenizer/formats/vocab_files.h"
#include "tokenizer/state/difference.h"
#include "transformer/grow_vocabulary.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

// Returns the Spec of the checkpoint to start from, possibly with a shorter context.
model::Spec spec_to_start_from(const model::Spec& given, const model::ModelFiles& files) {
  model::Spec spec = files.model.spec;
  if (given.context > 0 && given.context < spec.context && !spec.encoder &&
      spec.decoder->position.kind == model::PositionKind::none)
    spec.context = given.context;
  return spec;
}

// Returns the dropout of the run: that of the checkpoint, or what is given instead.
model::DropoutSpec choose_dropout(const TrainOptions& o, const model::DropoutSpec& given,
                                  model::DropoutSpec dropout) {
  const auto choose = [&](const char* field, float value, float& chosen) {
    if (o.given && std::find(o.given->begin(), o.given->end(), field) != o.given->end())
      chosen = value;
  };
  choose("embedding_dropout", given.embedding, dropout.embedding);
  choose("attention_dropout", given.attention, dropout.attention);
  choose("residual_dropout", given.residual, dropout.residual);
  return dropout;
}

}  // namespace

namespace {

text::TranslationTokenizers choose_tokenizers(const Job& job, ExamplesTask& task,
                                              const model::Spec& spec) {
  const TrainOptions& o = job.options;
  if (!task.traits().reads_text) {
    const text::Tokenizer unused = task.make_tokenizer(spec);
    return {unused, unused};
  }
  if (job.snapshot) return text::TranslationTokenizers::open(o.out);
  if (o.from.empty()) {
    if (!leads(o.ranks) && text::has_vocabulary(o.out))
      return text::TranslationTokenizers::open(o.out);  // which the leader has written
    if (!o.distillation.teacher.empty())
      return text::TranslationTokenizers::open(o.distillation.teacher);
    if (is_folder(o.tokenizer)) return text::TranslationTokenizers::open(o.tokenizer);
    text::Tokenizer made = task.make_tokenizer(spec);
    if (spec.token_types > 1 && is_trained_choice(o.tokenizer)) made = with_token_types(made);
    return {made, made};
  }
  // If the checkpoint has no tokenizer, options.tokenizer names a directory that has one.
  if (text::has_vocabulary(o.from)) return text::TranslationTokenizers::open(o.from);
  return text::TranslationTokenizers::open(is_folder(o.tokenizer) ? o.tokenizer : base_of(o.from));
}

// Writes the languages of the files of a new translator into its tokenizers' settings.
void name_languages(const TrainOptions& o, text::TranslationTokenizers& tokenizers,
                    const Say& say) {
  const PairLanguages its = languages_in_names(o.pairs);
  if (its.source.empty()) return;
  const bool both = &tokenizers.source.state() == &tokenizers.target.state();
  tokenizers.source = with_languages(tokenizers.source, its.source, its.target);
  tokenizers.target =
      both ? tokenizers.source : with_languages(tokenizers.target, its.source, its.target);
  say(fmt::format("the model translates {} to {}, by the names of the files", its.source,
                  its.target));
}

// Adapts the Spec to the task and the tokenizer. Returns whether the model needs a new head.
bool shape(model::Spec& spec, ExamplesTask& task, const text::Tokenizer& tokenizer,
           const model::Origin& origin, const std::string& from, const Say& say) {
  const model::Spec before = spec;
  task.shape(spec, tokenizer, origin, say);
  const bool new_head = model::write_spec(before) != model::write_spec(spec);
  if (!task.traits().reads_text) {
    spec = model::validated(spec);
    return new_head;
  }
  const int64_t most = spec.vocabulary + std::ssize(task.needed_tokens());
  if (!from.empty() && tokenizer.size() > most) {
    fail(ErrorKind::BadFile,
         "{}: its tokenizer has {} tokens, but its model has a vocabulary of {}; expected at least "
         "as many",
         from, tokenizer.size(), spec.vocabulary);
  }
  spec.vocabulary = std::max<int64_t>(spec.vocabulary, tokenizer.size());
  spec = model::validated(spec);
  return new_head;
}

// How the weights at the start of the run differ from those of the checkpoint.
struct Beginning {
  std::optional<model::ModelFiles> opened = {};  // a frozen base, which was opened before
  bool new_head = false;
  int64_t known = 0, added = 0;  // tokens of the checkpoint, and special tokens that it lacks
};

// Sets the weights at the start of the run.
void begin_model(Job& job, const model::Spec& spec, Beginning& beginning, const Say& say) {
  const TrainOptions& o = job.options;
  if (o.from.empty()) {
    job.model = model::Transformer(spec);
    model::initialise(job.model, o.seed);
    job.plan.from = "random weights";
    return;
  }
  const auto [weights, packing] = base_weights(o.lora);
  const std::string base = base_of(o.from);
  model::ModelFiles files =
      beginning.new_head                 ? model::open_with_head(base, weights, packing, spec.head)
      : beginning.opened                 ? *std::exchange(beginning.opened, {})
      : weights == model::Weights::owned ? model::open_decoder_to_train(base)
                                         : model::open_model_files(base, weights, packing);
  for (std::string& warning : files.warnings) say(std::move(warning));
  job.model = std::move(files.model);
  if (!files.missing.empty()) initialise_missing(job.model, o.seed);
  if (beginning.added > 0) model::grow_vocabulary(job.model, spec.vocabulary, beginning.known);
  job.model.spec = spec;  // its context may be shorter, as requested
  job.plan.from = o.from;
}

// Returns the length of the rows, or the maximum length if it differs from batch to batch.
int64_t longest_sequence(const Examples& examples, const model::Spec& spec) {
  const Batch batch = examples.training(0);
  return batch.equal_lengths ? batch.labels.dim(1) : spec.context;
}

// Opens the teacher of the task, if the options name one, and adds its cost to the plan.
void add_teacher(Job& job, ExamplesTask& task, const model::Spec& spec,
                 const text::TranslationTokenizers& tokenizers, const Say& say) {
  const TrainOptions& o = job.options;
  const DistillationOptions& d = o.distillation;
  if (d.teacher.empty()) return;
  const text::TranslationTokenizers own = text::TranslationTokenizers::open(d.teacher);
  for (const auto& [mine, its] :
       {std::pair{&tokenizers.source, &own.source}, {&tokenizers.target, &own.target}}) {
    const std::string found = text::difference(*mine, *its);
    check_field(found.empty(), "teacher", "its tokenizer differs: {}; expected that of the student",
                found);
  }
  const bool words = spec.head.kind == model::HeadKind::language_model;
  auto teacher = std::make_unique<Teacher>(
      TeacherOptions{
          .path = d.teacher,
          .cache = d.cache.empty() ? o.out + "/teacher" : d.cache,
          .top = d.top_k,
          .temperature = static_cast<float>(d.temperature),
          .outputs = words ? own.target.size() : 0,
          .compute = job.compute,
          .reads_documents = o.document_mask || objective_of(o, spec) == Objective::chats},
      spec);
  for (const std::string& warning : teacher->warnings()) say(warning);
  say(fmt::format("the teacher {} takes {} MB", d.teacher, teacher->weight_bytes() >> 20));
  const PassSize largest = task.loaded_size(spec);
  const int64_t longest = std::max(longest_sequence(task.loaded(), spec),
                                   d.on_policy > 0 ? largest.length : int64_t{0});
  check_field(longest <= teacher->spec().context, "length",
              "sequences of up to {} tokens; expected at most {}, the context of the teacher",
              longest, teacher->spec().context);
  check_field(task.labels() == teacher->labels() || task.labels().empty(), "teacher",
              "has the labels {}; expected {}", fmt::join(teacher->labels(), ", "),
              fmt::join(task.labels(), ", "));
  // A forward pass without a tape: the activations of one layer, and a block of logits.
  const PassSize size = task.pass_size(teacher->spec());
  const Cost cost =
      training_cost(teacher->spec(), size.batch, size.length, o.accumulate, job.compute);
  const auto &encoder = teacher->spec().encoder, &decoder = teacher->spec().decoder;
  const int64_t layers =
      std::max<int64_t>(1, (encoder ? encoder->layers : 0) + (decoder ? decoder->layers : 0));
  const int64_t logits = std::min(kLogitsOfBlock, cost.tokens * teacher->spec().vocabulary);
  job.plan.flops_per_step += cost.flops_per_step / 3;
  job.plan.weight_bytes += teacher->weight_bytes();
  job.plan.activation_bytes += cost.activation_bytes / static_cast<uint64_t>(layers) +
                               static_cast<uint64_t>(logits) * sizeof(float);
  if (d.on_policy >= 0)
    job.plan.activation_bytes +=
        divergence_bytes(largest.outputs, spec.vocabulary, std::min(d.top_k, spec.vocabulary));
  job.teacher_hash = teacher->hash();
  task.learn_from(std::move(teacher));
}

// Adds the passes of a step, and the memory of the task's own models and of generating answers.
void add_own_cost(Job& job, const ExamplesTask& task) {
  const PlannedWork work = task.planned_work();
  job.plan.flops_per_step *=
      work.passes_per_step * mean_passes(job.options) / static_cast<double>(job.options.accumulate);
  job.plan.flops_per_step += work.other_flops * mean_passes(job.options);
  job.plan.parameters += work.other_parameters;
  job.plan.trained_parameters += work.other_trained;
  const auto trained = static_cast<uint64_t>(work.other_trained) * sizeof(float);
  job.plan.weight_bytes += work.other_bytes + 2 * trained;
  job.plan.optimizer_bytes += 2 * trained;
  job.plan.activation_bytes += work.other_activation_bytes;
  if (job.options.ranks != nullptr)  // the sums of all ranks, beside those of this one
    job.plan.weight_bytes += static_cast<uint64_t>(job.plan.trained_parameters) * sizeof(float);
  // Keys and values of answers are freed before the first pass of a step.
  job.plan.activation_bytes = std::max(job.plan.activation_bytes, work.generation_bytes);
}

void plan_data(Job& job, const model::Spec& spec, const Examples& examples, const Say& say) {
  TrainPlan& plan = job.plan;
  const TrainOptions& o = job.options;
  plan.spec = spec;
  plan.objective = objective_of(o, spec);
  plan.training_tokens = examples.learnt.tokens;
  plan.validation_tokens = examples.held_out.tokens;
  plan.training_sequences = examples.learnt.sequences;
  plan.validation_sequences = examples.held_out.sequences;
  const double epoch = examples.passes_per_epoch(), passes = mean_passes(o, epoch);
  plan.tokens_per_step = std::llround(passes * static_cast<double>(examples.learnt.tokens) / epoch);
  plan.epochs = static_cast<double>(o.steps) * passes / epoch;
  constexpr double kMany = 50;
  if (plan.epochs > kMany)
    say(fmt::format("the run reads the data {:.0f} times; expected fewer `steps` or more data",
                    plan.epochs));
}

nlohmann::ordered_json settings(const Job& job, model::Spec spec, const text::Tokenizer& tokenizer,
                                const Examples& examples) {
  nlohmann::ordered_json s;
  spec.dropout = job.dropout;
  s["spec"] = nlohmann::ordered_json::parse(model::write_spec(spec));
  s["data"] = fmt::format("{:016x}", examples.hash);
  s["tokenizer_hash"] = fmt::format("{:016x}", tokenizer.hash());
  s["precision"] = name_of(job.compute);
  if (job.options.lora.rank > 0) s["base"] = hash_text(model::model_fingerprint(job.options.from));
  if (job.start) s["adapter"] = hash_text(model::model_fingerprint(job.adapter, false));
  s["evaluated_part"] = job.evaluated_part;
  s["epoch_passes"] = passes_of(job.options, examples.passes_per_epoch()).epoch;
  s["teacher"] = job.teacher_hash != 0 ? hash_text(job.teacher_hash) : "";
  s.update(settings_of(job.options, objective_of(job.options, spec)));
  return s;
}

// Adapters do not train the embeddings of new tokens.
void refuse_added_tokens(int64_t added) {
  check_field(added == 0, "lora",
              "the tokenizer lacks {} special tokens of the chat template, whose embeddings "
              "adapters cannot train; expected another template, or no adapters",
              added);
}

// Opens the model of options.from, and reads the adapter at the start of the run, if there is one.
model::ModelFiles open_initial(Job& job) {
  const TrainOptions& o = job.options;
  const auto [weights, packing] = base_weights(o.lora);
  model::ModelFiles files = model::open_model_files(
      base_of(o.from), weights == model::Weights::owned ? model::Weights::mapped : weights,
      packing);
  files.origin.save_all_as(DType::f32);
  job.base_bytes = model::weight_bytes(files.model);
  if (!job.adapter.empty())
    job.start = std::make_shared<const model::Adapter>(
        read_start_adapter(job.adapter, *files.origin.family, files.model));
  return files;
}

// The texts of preferences share rows, so that the processes of a job can share whole passes only:
// a batch of pairs takes several passes. The estimate of kto needs the whole batch.
void divide_passes(Job& job, TrainOptions& o, Objective objective) {
  constexpr int64_t kPasses = 4;
  if (!learns_preferences(objective) || objective == Objective::kto) return;
  const int64_t passes = std::gcd(o.batch, kPasses);
  o.batch /= passes;
  o.accumulate *= passes;
  o.accumulate_from *= passes;
  job.options.batch = o.batch;
  job.options.accumulate = o.accumulate;
  job.options.accumulate_from = o.accumulate_from;
}

// Sets the settings of a planned job, and checks its memory and that the snapshot has the same
// ones.
void settle(Job& job, const model::Spec& spec, const text::Tokenizer& tokenizer,
            const Examples& examples, const Say& say) {
  job.plan.vocabulary = tokenizer.size();
  check_memory(job);
  job.settings = settings(job, spec, tokenizer, examples);
  check_settings(job, say);
  if (const std::string change = change_of_class(job); !change.empty()) say(change);
}

// Throws InvalidArgument if the task does not train the model, or not on several ranks.
void check_suits(const TrainOptions& o, Objective objective, const TrainingTask& task) {
  // The other objectives write a model that reads images as one of texts.
  const std::string base = base_of(o.from);
  check_field(objective == Objective::chats || o.lora.rank > 0 || base.empty() ||
                  !model::reads_images(base),
              objective_field(o), "{} does not train a model that reads images; expected chats",
              name_of(objective));
  if (o.ranks == nullptr) return;
  check_field(task.traits().shares_steps, objective_field(o),
              "{} cannot be trained on {} ranks; expected one process", name_of(objective),
              o.ranks->size());
}

void set_origin(const TrainOptions& o, const ExamplesTask& task, const model::Spec& spec,
                const text::Tokenizer& tokenizer, model::Origin& origin) {
  if (o.from.empty()) origin = task.origin(spec, tokenizer);
  if (const auto labels = task.labels(); !labels.empty()) origin.labels = labels;
  origin.problem = task.problem(), origin.shard_bytes = o.shard_size;
}

}  // namespace

Job prepare(const model::Spec& given, TrainOptions options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading) {
  if (trains_towers(given, options)) {
    Job towers = prepare_towers(given, options, say);
    check_suits(options, Objective::contrastive, *towers.task);
    return towers;
  }
  Job job;
  job.adapter = take_adapter(options);
  check_options(options);
  job.options = options;
  open_snapshot(job, say);
  model::Spec spec = given;
  model::Origin origin;
  Beginning beginning;
  if (!options.from.empty()) {
    model::ModelFiles files = open_initial(job);
    spec = spec_to_start_from(given, files);
    origin = std::move(files.origin);
    if (base_weights(options.lora).weights != model::Weights::owned)
      beginning.opened = std::move(files);
  }
  refuse_unused(options, objective_of(options, spec), spec);
  divide_passes(job, options, objective_of(options, spec));
  job.dropout = choose_dropout(options, given.dropout, spec.dropout);
  check_teacher(options.distillation.teacher, spec);
  std::unique_ptr<ExamplesTask> opened = open_task(options, spec);
  ExamplesTask* const task = opened.get();
  check_suits(options, objective_of(options, spec), *task);
  job.task = std::move(opened);
  task->watch(reading);
  job.options.best_by = choose_best_by(options.best_by, task->evaluation());
  text::TranslationTokenizers tokenizers = choose_tokenizers(job, *task, spec);
  beginning.known = tokenizers.source.size();
  if (!task->needed_tokens().empty())
    tokenizers.source = tokenizers.target = with_needed_tokens(tokenizers.source, *task, say);
  if (!job.snapshot) name_languages(options, tokenizers, say);
  const text::Tokenizer& tokenizer = tokenizers.source;
  beginning.added = tokenizer.size() - beginning.known;
  if (options.lora.rank > 0) refuse_added_tokens(beginning.added);
  beginning.new_head = shape(spec, *task, tokenizer, origin, options.from, say);
  set_origin(options, *task, spec, tokenizer, origin);
  job.family = &model::family_to_save(spec, origin);
  check_field(options.lora.rank == 0 || job.family == origin.family, "lora",
              "the format of {} has no names for the new head; expected `labels` of another model",
              options.from);
  plan_cost(job, spec, task->pass_size(spec));
  task->load({spec, tokenizers, origin, job.compute}, read_only, say);
  plan_cost(job, spec, task->loaded_size(spec));
  add_own_cost(job, *task);
  add_teacher(job, *task, spec, tokenizers, say);
  choose_training(job, objective_of(options, spec), task->loaded().passes_per_epoch());
  task->set_length(job.options.steps, job.options.epochs);
  plan_data(job, spec, task->loaded(), say);
  choose_pauses(job);
  task->limit_evaluation(job.evaluated_part);
  settle(job, spec, tokenizer, task->loaded(), say);
  choose_model(job, spec, [&] { begin_model(job, spec, beginning, say); });
  return job;
}

}  // namespace fovea::train
