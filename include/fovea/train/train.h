#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/tensor.h"
#include "fovea/infer/metrics.h"
#include "fovea/model/model.h"
#include "fovea/model/spec.h"
#include "fovea/train/adapter.h"
#include "fovea/train/optimizer.h"
#include "fovea/train/preferences.h"
#include "fovea/train/reinforcement.h"
#include "fovea/train/sharing.h"

namespace fovea {
class Communicator;  // the processes that mpirun started
}

namespace fovea::train {

// Learning-rate schedule after the warm-up. cosine and linear fall from its end to the end of the
// run. inverse_root: proportional to 1 / sqrt(step) (Vaswani et al. 2017, 5.3). trapezoid:
// constant, then falling over the last `decay_fraction` of the steps.
enum class Schedule { cosine, trapezoid, constant, inverse_root, linear };
// automatic: a resumed run keeps its precision; a new run uses bf16 if the CPU multiplies it
// natively, else fp32.
enum class Precision { automatic, fp32, bf16 };

// The training objective.
//   automatic        by the data: pairs, labels, chats, dpo for pairs of answers, kto for judged
//                    answers; else the objective that fits the model
//   next_token       predict the next token (decoders)
//   masked           predict masked tokens (encoders; Devlin et al. 2019)
//   spans            predict spans that were cut out of the text (encoder-decoders; Raffel et al.
//                    2020)
//   pairs            predict a target text from a source text (encoder-decoders)
//   labels           predict the label of a text or of each word, several labels, or a number
//   chats            predict the assistant's part of conversations (decoders; needs `from`)
//   reward, dpo, kto, orpo, simpo
//                    learn preferences (docs/align.md; need `from`)
//   ppo, grpo        generate answers to prompts that get high rewards (decoders and
//                    encoder-decoders; need `from` and `reinforcement`)
//   skip_gram        word vectors without a Transformer (Mikolov et al. 2013)
//   replaced_tokens  detect the tokens of a small generator (encoders; Clark et al. 2020)
//   contrastive      match images with captions (CLIP, SigLIP; Radford et al. 2021)
enum class Objective {
  automatic,
  next_token,
  masked,
  spans,
  pairs,
  labels,
  chats,
  reward,
  dpo,
  kto,
  orpo,
  simpo,
  ppo,
  grpo,
  skip_gram,
  replaced_tokens,
  contrastive,
  embedding  // in plans of embedders only
};
const char* name_of(Objective objective);  // "next_token", ...

// Which answers of a conversation are trained.
enum class TrainOn { all, last };
// What becomes of a conversation that is longer than a sequence: cut = keep its beginning.
enum class TooLong { cut, skip };

// Which evaluations contribute to averaged weights: the last ones or the best ones.
enum class Averaged { last, best };

// Knowledge distillation (Hinton et al. 2015): the model learns to predict what a teacher predicts.
// The loss is  alpha * temperature^2 * KL(teacher || model) + (1 - alpha) * cross-entropy, where
// both distributions of the divergence are at `temperature`.
struct DistillationOptions {
  // The model directory or .gguf file of the teacher; empty = no distillation. Its tokenizer must
  // be that of the model; a new model gets it.
  std::string teacher;
  double temperature = 1;  // divisor of the logits in the divergence
  double alpha = 0.5;      // weight of the divergence in the loss; the labels have the rest
  // The divergence compares this many most likely tokens of the teacher at each position, and all
  // others together.
  int64_t top_k = 64;
  // Directory of the teacher's outputs, which several runs may use one after another; empty =
  // "teacher" in the output directory. Each output is computed once.
  std::string cache;
  // Generalised distillation (Agarwal et al. 2024) of conversations: the student writes the answers
  // of this fraction of the passes, and the loss is the generalised Jensen-Shannon divergence
  // alone,
  //   beta KL(teacher || m) + (1 - beta) KL(model || m) with m = beta teacher + (1 - beta) model,
  // for beta = 0 KL(teacher || model) and for beta = 1 KL(model || teacher). -1 = off. The student
  // writes at `temperature`, at most ReinforcementOptions::answer_tokens.
  double on_policy = -1;
  double divergence_beta = 0.5;
};

// Random changes of the images of training, which depend on the seed and the pass.
struct ImageAugmentation {
  // A random part of the image, of at least this fraction of its area and with sides in a ratio
  // of 3:4 to 4:3 of the image's, is resized to the model's size (Szegedy et al. 2015); 1 = the
  // whole image.
  double crop = 1;
  bool flip = false;  // mirror every second image, left to right
  // Mix the images of a pass, and their labels, in pairs: lambda x + (1 - lambda) y, where lambda
  // has the distribution Beta(mixup, mixup) (Zhang et al. 2018); 0 = off.
  double mixup = 0;
  // RandAugment (Cubuk et al. 2019): the number of random operations for each image (turn, shift,
  // slant, colours, ...), and their strength.
  int64_t operations = 0;
  int64_t magnitude = 9;
};

struct TrainOptions {
  // Text files, directories, JSON lines; or files of conversations (docs/training.md), preferences
  // or prompts (docs/align.md), each optionally as "path:weight", where an epoch contains each
  // record, or the text, `weight` times.
  std::vector<std::string> data;
  // Files of conversations for validation; empty = hold out evenly spaced conversations of `data`.
  std::vector<std::string> validation_chats;
  // Instead of `data`: two files with corresponding lines, source and target, or one file of lines
  // "source<TAB>target".
  std::vector<std::string> pairs;
  std::vector<std::string> validation_pairs;  // empty = hold out a fraction, from the end
  // pairs: prepended to every source, such as "translate German to English: "
  std::string source_prefix;
  // Instead of `data`: files of lines "text<TAB>label" or "text<TAB>second text<TAB>label"; JSON
  // lines with "text", optionally "text_pair", and "label" or a list "labels", or with "words" and
  // as many "labels"; files .conll of lines "word label"; or questions in the format of SQuAD.
  std::vector<std::string> labels;
  std::vector<std::string> validation_labels;  // empty = hold out evenly spaced texts
  // Instead of `data`: folders with a folder of images for each label, or files of lines
  // "image,label" (.csv) or "image<TAB>label" (.tsv).
  std::vector<std::string> images;
  std::vector<std::string> validation_images;  // empty = hold out evenly spaced images
  ImageAugmentation augmentation;              // images
  // labels: what is predicted for a text. automatic: multi_label if a JSON line has a list of
  // labels, regression if all labels are numbers, some with a decimal point, else single_label.
  model::ProblemType problem_type = model::ProblemType::automatic;
  // labels: factors of the loss of texts (or words) by their label: "NAME=WEIGHT,..." (others 1);
  // "balanced" = the number of texts / (number of labels * number of texts with the label), or, for
  // several labels per text, the number of texts without the label / with it. Evaluations do not
  // use them.
  std::string class_weights;
  Objective objective = Objective::automatic;
  std::string out;  // output directory, for the model and the training state
  // Bytes of a file of the model's weights at most, unless one tensor has more.
  uint64_t shard_size = 50'000'000'000;
  std::string from;  // directory of initial weights; empty = random weights

  // Number of optimiser steps; 0 = recommended: 2000, or for a model that exists 3 epochs, of
  // preferences and rewards 1, but at most 2000 steps.
  int64_t steps = 0;
  double epochs = 0;   // passes over the data; if above 0, they determine `steps`
  int64_t batch = 12;  // sequences per forward pass; for pairs see batch_tokens
  // Pairs: maximum tokens per forward pass, counted on the longer side, padding included. Sequences
  // of similar length share a batch.
  int64_t batch_tokens = 4096;
  // Tokens per sequence of text; 0 = the model's context, but at most 1024 for plain text with
  // `from`; for chats also at most what the longest text needs.
  int64_t length = 0;
  // Text: tokens attend within their document only, and positions restart at its beginning. Each
  // text file and each JSON line is a document; all but the first begin with the end-of-text token.
  bool document_mask = false;
  // chats: the name of a built-in template, such as "chatml" (docs/training.md, Chats), or the path
  // of a template; empty = the template of the model.
  std::string chat_template;
  TrainOn train_on = TrainOn::all;  // chats: the answers to train
  TooLong too_long = TooLong::cut;  // chats: what becomes of texts with more than `length` tokens
  int64_t accumulate = 1;           // forward passes per optimiser step
  // Schedules of the first `growth` of the steps: forward passes per step grow from
  // accumulate_from to `accumulate`, and the attention windows of all layers from window_from
  // tokens to the context; 0 = both are constant.
  int64_t accumulate_from = 0, window_from = 0;
  double growth = 0.5;
  // The backward pass computes this number of layers of each stack, from the first, again from
  // their inputs, with the same bits, instead of keeping their intermediate results; -1 = all.
  int64_t recompute = 0;
  double validation = 0.1;  // fraction of the data that is held out; of text, its end
  // "char", "bpe:8000", "wordpiece:8000" or "unigram:8000" (trained on the data), or the path of a
  // model directory or tokenizer.json. With `from`, the tokenizer of that model is used, if any.
  std::string tokenizer = "char";
  int64_t max_vocabulary = 0;  // char: keep only the most frequent characters; 0 = all

  // Peak learning rate; -1 = recommended: 1e-3, or for a model that exists recommended_rate().
  double learning_rate = -1;
  // cosine, linear, trapezoid: rate at the end, as a fraction of the peak.
  double final_rate = 0.1;
  // Number of first steps, in which the rate rises to the peak; -1 = a twentieth of the steps, at
  // most 100.
  int64_t warmup = -1;
  Schedule schedule = Schedule::cosine;
  double decay_fraction = 0.2;  // trapezoid: final fraction of the steps, in which the rate falls
  OptimizerChoice optimizer;
  double beta1 = 0.9, beta2 = 0.99;                 // adamw, lion, muon: decay rates of the moments
  double epsilon = 1e-8;                            // adamw, muon: added to the denominator
  double weight_decay = 0.1;                        // applies to matrices and token embeddings only
  double clip = 1.0;                                // maximum norm of the gradient; 0 = off
  MomentPrecision moments = MomentPrecision::fp32;  // bits8: adamw
  // Probability that training spreads over all labels (Szegedy et al. 2016).
  double label_smoothing = 0;
  // Text, pairs, chats and one label per text: returns the loss of training instead of the
  // cross-entropy, as a sum over the rows: f32 or f64 [1]. It is divided by the number of labels of
  // the step; evaluations use the cross-entropy. It is called once a pass, and has no state that
  // changes in between.
  //   logits [rows, V], labels i32 [rows]; a row whose label is below 0 has no loss
  std::function<Tensor(const Tensor& logits, const Tensor& labels)> loss = {};
  double mask = 0.15;    // masked, spans: fraction of tokens to mask or cut out
  double mean_span = 3;  // spans: mean number of tokens per span
  // skip_gram: the context of a token is the tokens in a distance of at most 1 to `neighbours`,
  // drawn for each token, and each of its pairs is compared with this many random tokens. A token
  // with the frequency f is left out with the probability 1 - sqrt(subsampling / f); 0 = never.
  int64_t neighbours = 5, negatives = 5;
  double subsampling = 1e-3;
  // replaced_tokens: the generator's heads and hidden widths as fractions of the model's, and the
  // factor of the loss of the model beside that of the generator.
  double generator_size = 0.25, detection_weight = 50;
  // Evaluate and write the mean of the weights at this many evaluations; 1 = no averaging.
  int64_t average = 1;
  Averaged average_of = Averaged::last;

  AdapterOptions lora;  // trains adapters of `from` instead of all weights
  DistillationOptions distillation;
  PreferenceOptions preferences;       // reward, dpo, kto, orpo, simpo
  ReinforcementOptions reinforcement;  // ppo, grpo
  // Parameters that are not trained: layers, such as "3" or "0-5" (of each stack), and names of
  // parameters in the model or its checkpoint, where * stands for any characters.
  std::vector<std::string> freeze;

  Precision precision = Precision::automatic;
  uint64_t seed = 1337;

  // Steps between evaluations and between generated samples, apart from those at the end; 0 = only
  // at the end, and no samples; -1 = an eighth and a quarter of the steps, at most 250 and 500.
  int64_t evaluate_every = -1, sample_every = -1;
  int64_t evaluate_windows = 256;  // windows of held-out text per evaluation; 0 = all
  int64_t sample_tokens = 120;     // tokens per sample; 0 = no samples
  int64_t save_every = 500;        // steps between snapshots; 0 = only at the end
  int64_t keep = 2;                // number of snapshots to keep
  int64_t patience = 0;  // stop after this many evaluations without improvement; 0 = never
  // The metric that selects the best weights: "loss"; for pairs also "bleu", "chrf" and "rouge_l";
  // for labels also "accuracy", "f1" (macro), "f1_micro", "mcc", "entity_f1", "pearson", "spearman"
  // and others of evaluation_tasks(); for masked tokens also "accuracy"; for ppo and grpo "reward".
  // "automatic": bleu for pairs if bleu_lines > 0, reward for ppo and grpo, else loss.
  std::string best_by = "automatic";
  int64_t bleu_lines = 1000;  // held-out pairs translated greedily per evaluation; 0 = none
  // Stop after this many consecutive steps with a non-finite loss or gradient.
  int64_t bad_steps = 3;
  // Do not stop if the losses after the warm-up stay above those of the first steps.
  bool keep_going = false;

  uint64_t memory_limit = 0;        // bytes; 0 = the free memory of the machine or the cgroup
  uint64_t token_cache = 32 << 20;  // bytes; a larger text is tokenised into a memory-mapped file
  bool allow_change = false;        // resume even if data or options differ from the snapshot's
  bool tensorboard = false;         // also write event files of TensorBoard, in `out`/tensorboard
  bool csv = false;                 // also write the numbers of log.jsonl to `out`/metrics.csv
  // The fields of these options and of the Spec that the caller sets, by name ("momentum"): one
  // that the run does not use is refused, and with `from` a given dropout of the Spec replaces that
  // of the model, whose files keep theirs. Unset: all fields that differ from the defaults and from
  // those of all presets.
  std::optional<std::vector<std::string>> given = {};
  // The command of the run and its working directory, for log.jsonl; empty = unknown.
  std::vector<std::string> command = {};

  // The processes of a job that train together, all with these options; rank 0 writes the files.
  // null = this process alone. It must outlive the run.
  Communicator* ranks = nullptr;
  SharingOptions sharing = {};  // of its steps
};

void visit(DistillationOptions& options, OptionVisitor& visitor);  // fovea/core/options.h
void visit(TrainOptions& options, OptionVisitor& visitor);

// Returns the options recommended for training a preset. Throws InvalidArgument if it is unknown.
TrainOptions preset_training(const std::string& preset);
// Returns these options without the rate, its schedule, the length and the intervals, which do not
// suit a model that exists. They are recommended for the task instead.
TrainOptions fine_tuning_options(const std::string& preset);
// Returns the peak learning rate that is recommended for a model that exists, by the objective of
// the run and by what is trained: all weights, or adapters.
double recommended_rate(Objective objective, bool adapters);

// Describes a run before it starts.
struct TrainPlan {
  model::Spec spec;
  Objective objective = Objective::next_token;  // never automatic
  std::string from;  // "random weights", the initial model's directory, or the resumed snapshot
  int64_t first_step = 0, steps = 0;                   // the run takes steps [first_step, steps)
  int64_t parameters = 0;                              // including adapters
  int64_t trained_parameters = 0;                      // all of them, unless adapters are trained
  int64_t training_tokens = 0, validation_tokens = 0;  // in the data
  // Pairs, labelled texts, conversations or an embedder's examples; 0 for plain text.
  int64_t training_sequences = 0, validation_sequences = 0;
  int64_t vocabulary = 0;
  int64_t tokens_per_step = 0;  // mean number, without padding
  double epochs = 0;            // passes over the training data
  // The rates of the run, and why a rate or a length that the options leave open was chosen, such
  // as "fine-tuning of all weights on conversations"; empty = the options give it.
  double learning_rate = 0, final_rate = 0;  // the peak, and a fraction of it
  int64_t warmup = 0;
  std::string schedule, rate_reason, length_reason;
  // weight_bytes includes gradients and averages. process_bytes: code, threads, data, loading and
  // saving.
  uint64_t weight_bytes = 0, optimizer_bytes = 0, activation_bytes = 0, process_bytes = 0,
           total_bytes = 0, available_bytes = 0;
  double flops_per_step = 0;
  // Estimates from a few steps if they are fast, else from measured matrix products: the time of
  // the run, a part of which is spent on evaluations, samples and snapshots.
  double seconds = 0, pause_seconds = 0;
  double tokens_per_second = 0;  // while steps are taken
  std::string precision, isa;
  int threads = 0;
  std::vector<std::string> notes;  // messages: files used, characters dropped, ...
};

struct TrainProgress {
  int64_t step = 0, steps = 0;
  double epoch = 0;
  double loss = 0;                        // of the last step, mean over its tokens
  double bits_per_byte = 0;               // of the last evaluation
  std::optional<double> validation_loss;  // of the last evaluation
  std::optional<double> best_loss;        // of the best evaluation
  // Other metrics of the last and of the best evaluation, such as "accuracy".
  std::vector<std::pair<std::string, double>> metrics = {}, best_metrics = {};
  std::optional<infer::LabelReport> labels =
      {};  // labels: scores of each label, of the last evaluation
  // Other measurements of the last step, such as "margin" and "clip_fraction"; see docs/align.md.
  std::vector<std::pair<std::string, double>> step_metrics = {};
  double learning_rate = 0, gradient_norm = 0;
  // seconds_left includes evaluations, samples and snapshots; `seconds`: since the run was started
  // or resumed.
  double tokens_per_second = 0, seconds_left = 0, step_seconds = 0, seconds = 0;
  int64_t tokens = 0;       // processed so far
  uint64_t peak_bytes = 0;  // peak resident memory
  // Empty unless they occur at this step.
  std::string sample;  // a generated text
  std::string saved;   // the snapshot that was just written
  std::string warning;
};

struct TrainResult {
  int64_t step = 0;
  double loss = 0;
  // Held-out loss of the weights in model.safetensors; 0 = not evaluated.
  double best_loss = 0;
  // Other metrics of these weights.
  std::vector<std::pair<std::string, double>> metrics = {};
  // Metrics before the first step, if they were measured.
  std::vector<std::pair<std::string, double>> start_metrics = {};
  double bits_per_byte = 0;
  double seconds = 0;            // including evaluations, samples and snapshots
  double tokens_per_second = 0;  // mean while steps were taken
  uint64_t peak_bytes = 0;       // peak resident memory of the process so far
  bool interrupted = false;      // a callback stopped the run
  bool stopped_early = false;    // no improvement for `patience` evaluations
  // Of a run that began with a model that exists: if its weights before the first step were better
  // than all later ones, the directory contains these, and this tells the numbers, such as "loss
  // 2.7900 before, 8.5000 after".
  std::string kept_start = {};
};

// Returns the plan of a run. Reads the data and checks every option; writes nothing. Throws the
// errors of train().
TrainPlan plan_training(const model::Spec& spec, const TrainOptions& options);

// A part of a text for training; special tokens are written by name.
struct ExamplePart {
  std::string text;
  bool trained;  // whether its tokens are trained
  // The text to which the part belongs: 0, or of preferences 0 (chosen) and 1 (rejected).
  int64_t number = 0;
};
// Returns the first training text of conversations, the first two of preferences, or the first
// prompt of ppo and grpo, as `options` request it. Throws the errors of train(), and
// InvalidArgument if the data holds none of them.
std::vector<ExamplePart> training_example(const TrainOptions& options);

// What a run does between two steps.
enum class Pause : uint8_t { evaluation, sample, snapshot };

// Trains a model. Resumes if `options.out` contains a snapshot of the same run. `reading` receives
// the fraction of a long text that has been read; return false to stop before the model is written.
// `planned` receives the plan before the first step; return false to stop. `progress` is called
// after every step; return false to save a snapshot and stop. `pausing` is called before an
// evaluation, a sample or a snapshot, with the seconds that it is expected to take. Throws
// InvalidArgument if an option is out of range or differs from that of the run to resume, BadFile
// if a file is damaged, OutOfMemory if the plan exceeds the memory, and Failed if another process
// uses `options.out`, if a file cannot be written, after `bad_steps` consecutive steps with a
// non-finite loss or gradient, or if the losses rise and stay high and `keep_going` is false. The
// callbacks are called on the caller's thread; their arguments are valid during the call only.
TrainResult train(const model::Spec& spec, const TrainOptions& options,
                  const std::function<bool(const TrainPlan&)>& planned = {},
                  const std::function<bool(const TrainProgress&)>& progress = {},
                  const std::function<bool(double fraction)>& reading = {},
                  const std::function<void(Pause, double seconds)>& pausing = {});

// Returns the steps of the snapshots of a training run, ascending; empty if `folder` is not the
// output directory of a run.
std::vector<int64_t> snapshots(const std::string& folder);
// Opens the model of one snapshot. Throws BadFile if a file is missing or damaged.
model::Model open_snapshot(const std::string& folder, int64_t step);

}  // namespace fovea::train
