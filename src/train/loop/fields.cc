#include <algorithm>

#include "chat/builtin_templates.h"
#include "fovea/infer/metrics.h"
#include "fovea/train/train.h"
#include "fovea/train/train_embedder.h"
#include "image/rand_augment.h"
#include "loop/examples_task.h"
#include "loop/fields.h"

namespace fovea::train {
namespace {

// In the order of Objective.
constexpr const char* kObjectives[] = {"automatic",   "next_token", "masked",    "spans",
                                       "pairs",       "labels",     "chats",     "reward",
                                       "dpo",         "kto",        "orpo",      "simpo",
                                       "ppo",         "grpo",       "skip_gram", "replaced_tokens",
                                       "contrastive", "embedding"};

}  // namespace

const char* name_of(Objective objective) { return kObjectives[static_cast<size_t>(objective)]; }

namespace {

constexpr int64_t kMostSteps = 1'000'000'000;  // more would take years

void visit_moments(MomentPrecision& moments, OptionVisitor& v) {
  v.choice({"moments", "adamw: memory of the moments: 8 bytes per trained number, or 2", true},
           moments, {"fp32", "8bit"});
}

void visit_recompute(int64_t& recompute, OptionVisitor& v) {
  v.integer({"recompute",
             "compute the first N layers again in the backward pass: less memory, more time, same "
             "bits; -1 = all layers"},
            recompute, -1, 1'000'000);
}

void visit_freeze(std::vector<std::string>& freeze, OptionVisitor& v) {
  v.texts({"freeze",
           "parameters that are not trained: layers, such as 0-5, or names, such as embedding.* or "
           "*.q_proj.weight",
           true},
          freeze);
}

void visit_data(TrainOptions& o, OptionVisitor& v) {
  v.texts({"data",
           "text files, directories, JSON lines, or conversations, preferences or prompts, also as "
           ".gz or .zst: FILE or FILE:WEIGHT"},
          o.data);
  v.texts({"validation_chats", "validation conversations, in the same formats as in the data"},
          o.validation_chats);
  v.texts({"pairs",
           "instead of text, for translation: a file of source lines and a file of target "
           "lines, or one file of both, with tabs; for speech: tables"},
          o.pairs);
  v.texts({"validation_pairs", "validation pairs, in the same format as the training pairs"},
          o.validation_pairs);
  v.text({"source_prefix", "pairs: text prepended to every source, for multi-task models",
          o.objective == Objective::pairs},
         o.source_prefix);
  v.texts(
      {"labels",
       "instead of text, for classification: lines text<TAB>label, JSON lines with \"text\" and "
       "\"label\", or .conll or SQuAD files"},
      o.labels);
  v.texts(
      {"validation_labels", "labelled validation texts, in the same format as the training texts"},
      o.validation_labels);
  const bool labels = o.objective == Objective::labels;
  v.choice({"problem_type",
            "labels: what a text has: one label, several labels, or a number (regression); "
            "automatic = what the data shows",
            labels},
           o.problem_type, {"automatic", "single_label", "multi_label", "regression"});
  v.text({"class_weights",
          "labels: factors of the loss by label: balanced, or NAME=WEIGHT,... (others: 1)", labels},
         o.class_weights);
  v.choice(
      {"objective",
       "training objective: predict the next token, masked tokens, spans cut out of the text, "
       "the target of a pair, a label, or the answers of conversations; tell which tokens a "
       "generator replaced; word "
       "vectors (skip_gram); learn preferences: a "
       "reward model, or dpo, kto, orpo or simpo; or generate answers that get high rewards (ppo, "
       "grpo); contrastive: images with captions; automatic = what fits the data and the model",
       true},
      o.objective, {std::begin(kObjectives), std::end(kObjectives) - 1});  // not embedding
  v.text({"out", "output directory; an interrupted run in it is resumed"}, o.out);
  v.text({"from", "model directory with the initial weights", true}, o.from);
  v.number({"validation",
            "fraction of the data to hold out for validation: the end of the data or, of labelled "
            "texts and conversations, evenly spaced ones",
            true},
           o.validation, 0, 0.9);
  v.text({"tokenizer",
          "char, bpe:SIZE, wordpiece:SIZE, unigram:SIZE, or the path of a model or tokenizer.json",
          true},
         o.tokenizer);
  v.integer({"max_vocabulary", "char: keep only the N most frequent characters; 0 = all", true},
            o.max_vocabulary, 0, 10'000'000);
}

void visit_images(TrainOptions& o, OptionVisitor& v) {
  v.texts({"images",
           "instead of text: folders with a folder of images for each label, or lines "
           "image,label (.csv)"},
          o.images);
  v.texts({"validation_images", "labelled validation images, in the same forms"},
          o.validation_images);
  v.number({"image_crop",
            "images: train on random parts of at least this fraction of an image's area; 1 = "
            "whole images",
            !o.images.empty()},
           o.augmentation.crop, 0.01, 1);
  v.boolean({"image_flip", "images: mirror every second image of training", !o.images.empty()},
            o.augmentation.flip);
  v.number({"mixup",
            "images: mix pairs of images and their labels; parameter of the Beta distribution "
            "of their shares; 0 = off",
            !o.images.empty()},
           o.augmentation.mixup, 0, 1);
  v.integer({"rand_augment",
             "images: random operations for each image of training (turn, shift, slant, "
             "colours, ...); 0 = off",
             !o.images.empty()},
            o.augmentation.operations, 0, 16);
  v.integer({"rand_augment_magnitude", "rand_augment: strength of the operations",
             o.augmentation.operations > 0},
            o.augmentation.magnitude, 0, media::kMostMagnitude);
}

void visit_chats(TrainOptions& o, OptionVisitor& v) {
  const bool chats = o.objective == Objective::chats || learns_preferences(o.objective);
  visit_answers(o.chat_template, o.train_on, chats || is_reinforcement(o.objective), v);
  v.choice(
      {"too_long", "conversations longer than a sequence: keep the beginning, or skip them", chats},
      o.too_long, {"cut", "skip"});
}

void visit_shard(Sharded& shard, OptionVisitor& v) {
  v.choice({"shard",
            "several processes: what each has a part of only: nothing, or the moments and the "
            "gradients, with the same weights"},
           shard, {"nothing", "optimizer"});
}

void visit_sharing(SharingOptions& o, OptionVisitor& v) {
  visit_shard(o.shard, v);
  v.choice({"gradients",
            "several processes: precision of the gradients that are sent; bf16 sends half the "
            "bytes, and the weights depend on the number of processes",
            true},
           o.gradients, {"fp32", "bf16"});
  v.integer({"sync_every",
             "several processes: steps that each takes by itself, on its share of the batches, "
             "until their mean change is taken; the weights depend on the number of processes",
             true},
            o.sync_every, 1, 1'000'000);
  const bool local = o.sync_every > 1;
  v.number({"outer_rate", "`sync_every`: learning rate of the mean change", local}, o.outer_rate, 0,
           10);
  v.number({"outer_momentum",
            "`sync_every`: Nesterov's momentum of the mean changes; 0, with a rate of 1: the mean "
            "weights are taken",
            local},
           o.outer_momentum, 0, 1);
  v.number({"stall_timeout",
            "several processes: a step of more than N seconds, and of 5 usual steps, ends the job"},
           o.stall_timeout, 1, 1e6);
}

void visit_length(TrainOptions& o, OptionVisitor& v) {
  const bool pairs = o.objective == Objective::pairs;
  v.integer({"steps", "optimiser steps; 0 = 2000, or 1 to 3 epochs of fine-tuning", true}, o.steps,
            0, kMostSteps);
  // The number of steps that follows from the epochs is compared.
  v.number({"epochs", "passes over the data, which determine the steps; 0 = the given steps"},
           o.epochs, 0, 1e6);
  v.integer({"batch", "sequences per forward pass", true}, o.batch, 1, 65536);
  v.integer(
      {"length",
       "tokens per sequence of text; 0 = the model's context, but at most 1024 with an initial "
       "model",
       true},
      o.length, 0, kMostSteps);
  const bool windows = o.objective == Objective::next_token || o.objective == Objective::masked ||
                       o.objective == Objective::replaced_tokens;
  v.boolean({"document_mask",
             "text: tokens attend within their document only (a text file or a JSON line, begun by "
             "the end-of-text token), and positions restart at its beginning",
             windows},
            o.document_mask);
  v.integer(
      {"batch_tokens", "pairs: maximum tokens per forward pass, counted on the longer side", pairs},
      o.batch_tokens, 1, 1 << 24);
  v.integer({"accumulate", "forward passes per optimiser step", true}, o.accumulate, 1, 65536);
  v.integer({"accumulate_from",
             "forward passes of the first step, from which they grow to all; 0 = constant", true},
            o.accumulate_from, 0, 65536);
  v.integer({"window_from",
             "attention window of the first step, from which it grows to the context; 0 = constant",
             true},
            o.window_from, 0, kMostSteps);
  v.number({"growth", "fraction of the steps in which passes and windows grow",
            o.accumulate_from > 0 || o.window_from > 0},
           o.growth, 0, 1);
  visit_recompute(o.recompute, v);
  v.integer({"patience", "stop after N evaluations without improvement; 0 = never"}, o.patience, 0,
            kMostSteps);
  v.text(
      {"best_by",
       "metric that selects the best model: loss, bleu, chrf or rouge_l (pairs), accuracy (labels, "
       "masked), f1, f1_micro, mcc, entity_f1, pearson or spearman (labels), reward (ppo, grpo); "
       "automatic = bleu for pairs, reward for ppo and grpo, else loss",
       true},
      o.best_by);
  v.integer({"bad_steps", "stop after N consecutive steps with a non-finite loss or gradient"},
            o.bad_steps, 1, 1'000'000);
  visit_sharing(o.sharing, v);
  v.boolean({"keep_going",
             "do not stop if the mean loss of 20 steps stays 30% above that of the first 20 for "
             "100 steps"},
            o.keep_going);
}

void visit_optimizer(TrainOptions& o, OptionVisitor& v) {
  const bool fills_gaps = o.objective == Objective::masked || o.objective == Objective::spans ||
                          o.objective == Objective::replaced_tokens;
  v.number({"learning_rate",
            "peak learning rate; -1 = the preset's or, in fine-tuning, that of the task", true},
           o.learning_rate, -1, 1000);
  v.number({"final_rate",
            "cosine, linear, trapezoid: learning rate at the end, as a fraction of the peak", true},
           o.final_rate, 0, 1);
  v.integer({"warmup",
             "steps of linear warm-up to the peak rate; -1 = a twentieth of the steps, at most 100",
             true},
            o.warmup, -1, kMostSteps);
  v.choice({"schedule", "learning-rate schedule after the warm-up", true}, o.schedule,
           {"cosine", "trapezoid", "constant", "inverse_root", "linear"});
  v.number(
      {"decay_fraction", "trapezoid: final fraction of the steps, in which the rate falls", true},
      o.decay_fraction, 0, 1);
  visit(o.optimizer, v);
  v.number({"beta1", "decay rate of the first moment", true}, o.beta1, 0, 0.99999);
  v.number({"beta2", "decay rate of the second moment", true}, o.beta2, 0, 0.99999);
  v.number({"epsilon", "constant added to the denominator", true}, o.epsilon, 1e-15, 1);
  v.number({"weight_decay", "weight decay of matrices and token embeddings", true}, o.weight_decay,
           0, 10);
  v.number({"clip", "maximum gradient norm; 0 = off", true}, o.clip, 0, 1e6);
  visit_moments(o.moments, v);
  v.number({"label_smoothing",
            "probability spread over all labels; dpo: that a pair is in the wrong order", true},
           o.label_smoothing, 0, 0.99);
  v.number(
      {"mask", "masked, replaced_tokens, spans: fraction of tokens to mask or cut out", fills_gaps},
      o.mask, 0.001, 0.9);
  v.number({"mean_span", "spans: mean number of tokens per span", fills_gaps}, o.mean_span, 1, 100);
  const bool skip_gram = o.objective == Objective::skip_gram;
  v.integer({"neighbours", "skip_gram: largest distance of two tokens of a pair", skip_gram},
            o.neighbours, 1, 1000);
  v.integer({"negatives", "skip_gram: random tokens that each pair is compared with", skip_gram},
            o.negatives, 1, 1000);
  v.number({"subsampling",
            "skip_gram: tokens above this frequency are left out more often; 0 = never", skip_gram},
           o.subsampling, 0, 1);
  const bool replaces = o.objective == Objective::replaced_tokens;
  v.number(
      {"generator_size", "replaced_tokens: widths of the generator / those of the model", replaces},
      o.generator_size, 0.01, 1);
  v.number({"detection_weight", "replaced_tokens: factor of the model's loss", replaces},
           o.detection_weight, 0, 1e6);
  v.integer({"average",
             "evaluate and write the mean of the weights at N evaluations; 1 = no averaging", true},
            o.average, 1, 100);
  v.choice(
      {"average_of", "average the weights of the last or of the best evaluations", o.average > 1},
      o.average_of, {"last", "best"});
}

void visit_cadence(TrainOptions& o, OptionVisitor& v) {
  const bool pairs = o.objective == Objective::pairs;
  const bool windows = o.objective <= Objective::spans || o.objective >= Objective::skip_gram;
  const auto measured = [&](const char* task) {
    const std::vector<infer::Metric>& metrics = infer::evaluation_task(task).metrics;
    return std::any_of(metrics.begin(), metrics.end(),
                       [&](const infer::Metric& m) { return m.name == o.best_by; });
  };
  const bool by_translations = measured("pairs") || measured("speech");
  // Averaging uses the weights at the steps of the evaluations.
  v.integer({"evaluate_every",
             "steps between evaluations; 0 = only at the end; -1 = an eighth of the steps, at most "
             "250",
             o.average > 1},
            o.evaluate_every, -1, kMostSteps);
  // Losses on different windows cannot be compared.
  v.integer({"evaluate_windows", "windows of text per evaluation; 0 = all", windows},
            o.evaluate_windows, 0, kMostSteps);
  v.integer({"bleu_lines",
             "held-out pairs translated, or recordings transcribed, per evaluation; 0 = none",
             pairs && by_translations},
            o.bleu_lines, 0, kMostSteps);
  v.integer(
      {"sample_every",
       "steps between generated samples, apart from the one at the end; 0 = no samples; -1 = a "
       "quarter of the steps, at most 500"},
      o.sample_every, -1, kMostSteps);
  v.integer({"sample_tokens", "tokens per sample; 0 = no samples"}, o.sample_tokens, 0, 65536);
  v.integer({"save_every", "steps between snapshots; 0 = only at the end"}, o.save_every, 0,
            kMostSteps);
  v.integer({"keep", "number of snapshots to keep"}, o.keep, 1, 1'000'000);
  v.bytes({"shard_size",
           "size of a file of the model's weights, beyond which there are several and an index"},
          o.shard_size);
  v.boolean({"tensorboard", "also write event files of TensorBoard: curves, samples, weights"},
            o.tensorboard);
  v.boolean({"csv", "also write the numbers of the log to metrics.csv: step, metric, value"},
            o.csv);
}

void visit_machine(TrainOptions& o, OptionVisitor& v) {
  v.choice({"precision", "precision of matrix products"}, o.precision,
           {"automatic", "fp32", "bf16"});
  v.seed({"seed", "random seed of initial weights, data order and dropout", true}, o.seed);
  v.bytes({"memory_limit", "refuse a run that needs more memory; 0 = the free memory"},
          o.memory_limit);
  v.bytes({"token_cache", "tokenise texts above this size into a memory-mapped file"},
          o.token_cache);
  v.boolean({"allow_change", "resume even if data or options differ from the snapshot's"},
            o.allow_change);
}

void visit_preferences(PreferenceOptions& o, Objective objective, OptionVisitor& v) {
  const auto is = [&](Objective one) { return objective == one; };
  const bool dpo = is(Objective::dpo), kto = is(Objective::kto), simpo = is(Objective::simpo);
  v.number({"preference_beta",
            "dpo, kto: how much the model is kept near the initial one; simpo: factor of the "
            "rewards; 0 = 0.1, for simpo 2",
            dpo || kto || simpo},
           o.beta, 0, 1000);
  v.choice({"preference_loss", "dpo: loss of a pair", dpo}, o.loss, {"sigmoid", "hinge", "ipo"});
  v.boolean({"reference_free", "dpo: do not compare with the initial model", dpo},
            o.reference_free);
  v.number({"chosen_weight", "dpo: weight of the mean loss of the chosen answer's tokens", dpo},
           o.chosen, 0, 1000);
  v.number({"desirable_weight", "kto: weight of desirable answers", kto}, o.desirable, 0, 1000);
  v.number({"undesirable_weight", "kto: weight of undesirable answers", kto}, o.undesirable, 0,
           1000);
  v.number({"orpo_lambda", "orpo: weight of the odds ratio", is(Objective::orpo)}, o.odds, 0, 1000);
  v.number({"simpo_gamma", "simpo: difference of the rewards that is aimed at", simpo}, o.gamma, 0,
           1000);
  v.text({"reference_cache",
          "dpo, kto: directory of the initial model's log-probabilities, for several runs; empty = "
          "in the output directory"},
         o.cache);
}

}  // namespace

void visit_answers(std::string& chat_template, TrainOn& train_on, bool decides, OptionVisitor& v) {
  v.text({"chat_template",
          "conversations: the template instead of the model's: " + text::builtin_template_names() +
              ", or a file",
          decides},
         chat_template);
  v.choice({"train_on", "conversations: use all answers or the last one", decides}, train_on,
           {"all", "last"});
}

void visit(OptimizerChoice& o, OptionVisitor& v) {
  const bool sgd = o.kind == OptimizerKind::sgd, muon = o.kind == OptimizerKind::muon;
  v.choice({"optimizer",
            "rule that changes the weights; muon is for the matrices of layers, beside "
            "AdamW for other parameters",
            true},
           o.kind, {"adamw", "sgd", "lion", "adafactor", "muon"});
  v.number({"momentum", "sgd, muon: decay rate of the sum of earlier gradients", sgd || muon},
           o.momentum, 0, 0.99999);
  v.boolean({"nesterov", "sgd, muon: add the gradient to the momentum again", sgd || muon},
            o.nesterov);
  v.choice({"muon_scale",
            "muon: size of a step: adamw = as large as AdamW's, 0.2 sqrt(max(rows, columns)); "
            "spectral = sqrt(max(1, rows / columns))",
            muon},
           o.muon_scale, {"adamw", "spectral"});
  v.number(
      {"muon_rate",
       "muon: learning rate of the matrices of layers, as a multiple of that of all others", muon},
      o.muon_rate, 0, 1e6);
  v.boolean({"relative_rate",
             "adafactor: multiply the rate by the root mean square of each parameter", true},
            o.relative_rate);
}

void visit(AdapterOptions& o, OptionVisitor& v) {
  const bool used = o.rank > 0;
  v.integer({"lora", "train adapters of this rank (LoRA), not the weights; 0 = off", true}, o.rank,
            0, 65536);
  v.number({"lora_alpha", "LoRA: factor of the adapters, times the rank; 0 = twice the rank", used},
           o.alpha, 0, 1e6);
  v.text({"lora_targets",
          "LoRA: modules to adapt: all-linear, or names in the checkpoint, such as q_proj,v_proj",
          used},
         o.targets);
  v.number({"lora_dropout", "LoRA: dropout of the adapters' inputs", used}, o.dropout, 0, 0.95);
  v.boolean({"rslora", "LoRA: divide alpha by the square root of the rank", used}, o.rslora);
  v.boolean({"dora", "LoRA: also train the length of each row of a weight (DoRA)", used}, o.dora);
  v.number({"lora_plus", "LoRA: learning rate of B, as a multiple of that of A (LoRA+)", used},
           o.plus, 1, 1000);
  v.choice({"lora_base", "LoRA: precision of the frozen weights", used}, o.base,
           {"stored", "fp32", "bf16", "int8", "int4"});
}

void visit(DistillationOptions& o, OptionVisitor& v) {
  const bool used = !o.teacher.empty(), written = used && o.on_policy >= 0;
  v.text({"teacher", "directory of the model whose predictions are learnt"}, o.teacher);
  v.number({"temperature", "distillation: divisor of the logits of the teacher and of the student",
            used},
           o.temperature, 0.01, 100);
  v.number({"distillation_alpha",
            "distillation: weight of the divergence from the teacher in the loss; the labels have "
            "the rest",
            used && !written},
           o.alpha, 0, 1);
  v.integer({"teacher_top_k",
             "distillation: most likely tokens of the teacher to compare, besides all others "
             "together",
             used},
            o.top_k, 1, 65536);
  v.text({"teacher_cache",
          "distillation: directory of the teacher's outputs, for several runs; empty = in the "
          "output directory"},
         o.cache);
  v.number({"on_policy",
            "distillation, conversations: fraction of the passes whose answers the student writes, "
            "by generalised knowledge distillation; -1 = off",
            used},
           o.on_policy, -1, 1);
  v.number({"divergence_beta",
            "on_policy: divergence from the teacher: 0 = KL(teacher || student), 1 = KL(student || "
            "teacher), between them Jensen-Shannon",
            written},
           o.divergence_beta, 0, 1);
}

void visit(TrainOptions& o, OptionVisitor& v) {
  visit_data(o, v);
  visit_images(o, v);
  visit_chats(o, v);
  visit_length(o, v);
  visit_optimizer(o, v);
  visit_freeze(o.freeze, v);
  visit(o.lora, v);
  visit(o.distillation, v);
  visit_preferences(o.preferences, o.objective, v);
  visit_reinforcement(o.reinforcement, o.objective, o.distillation.on_policy > 0, v);
  visit_cadence(o, v);
  visit_machine(o, v);
}

namespace {

void visit_loss(EmbedderTraining& t, OptionVisitor& v) {
  v.choice({"loss", "the objective; automatic = cosine for scored pairs, else ranking", true},
           t.loss,
           {"automatic", "ranking", "cosine", "cosent", "angle", "triplet", "margin_mse", "kl",
            "gist", "scaled_kl", "mse", "list_net", "lambda"});
  v.number({"temperature",
            "divisor of similarities; 0 = 0.05, of kl and of sparse vectors and tokens 1, of gist "
            "0.01, of scores 0.1",
            true},
           t.temperature, 0, 100);
  v.choice({"kind",
            "what the model computes: a dense or a sparse vector of a text, vectors of its tokens, "
            "or scores of pairs of texts (a cross-encoder); automatic = by its files",
            true},
           t.kind, {"automatic", "dense", "sparse", "tokens", "scores"});
  v.number({"query_weight", "sparse: weight of the regulariser of queries", true}, t.query_weight,
           0, 1000);
  v.number({"document_weight", "sparse: weight of the regulariser of documents", true},
           t.document_weight, 0, 1000);
  v.choice({"regulariser",
            "sparse: the sum of the squared means of the elements, or of the elements", true},
           t.regulariser, {"flops", "l1"});
  v.integer({"token_width", "tokens: width of the vectors of a new projection", true},
            t.token_width, 1, 1 << 16);
  const Field margin = {
      "margin",
      "triplet: how much farther than the positive a negative should be (default 5); gist, mining: "
      "leave out negatives more similar than the positive less X",
      true};
  v.optional(margin, t.margin, [&](double& value) { v.number(margin, value, -1000, 1000); });
  const Field relative = {"relative_margin",
                          "gist, mining: leave out negatives more similar than the positive less "
                          "this share of its similarity",
                          true};
  v.optional(relative, t.relative_margin, [&](double& value) { v.number(relative, value, 0, 1); });
  v.text({"guide", "gist: directory of an embedder that tells false negatives", true}, t.guide);
}

}  // namespace

void visit(EmbedderTraining& t, OptionVisitor& v) {
  v.text({"model", "model directory with the initial weights"}, t.model);
  v.text({"out", "directory of the new model; an interrupted run in it is resumed"}, t.out);
  v.text({"data",
          "training examples: pairs, triplets or scored pairs of texts (CSV, TSV or JSON "
          "lines)"},
         t.data);
  v.text({"validation", "scored pairs for validation"}, t.validation);
  v.integer({"epochs", "passes over the examples", true}, t.epochs, 1, kMostSteps);
  v.integer({"batch", "examples per step", true}, t.batch, 1, 1 << 20);
  v.number({"learning_rate", "peak learning rate", true}, t.learning_rate, 1e-12, 1);
  v.number({"warmup", "fraction of the steps in which the rate rises", true}, t.warmup, 0, 0.999);
  v.number({"weight_decay", "weight decay of matrices and token embeddings", true}, t.weight_decay,
           0, 1);
  visit_loss(t, v);
  v.integers({"dimensions", "also train vectors truncated to these widths", true}, t.dimensions, 1,
             1 << 20);
  v.choice(
      {"learn_pooling",
       "also train the weights of all layers, or of the tokens, in the vector of a text", true},
      t.learn_pooling, {"none", "layers", "tokens"});
  v.integer({"evaluate_every", "steps between evaluations; 0 = only before and after training"},
            t.evaluate_every, 0, kMostSteps);
  v.integer({"save_every", "steps between snapshots; 0 = only at the end"}, t.save_every, 0,
            kMostSteps);
  v.integer({"keep", "number of snapshots to keep"}, t.keep, 1, 1'000'000);
  v.integer({"patience", "stop after this many evaluations without improvement; 0 = never"},
            t.patience, 0, kMostSteps);
  visit_moments(t.moments, v);
  visit_shard(t.shard, v);
  visit_recompute(t.recompute, v);
  visit_freeze(t.freeze, v);
  visit(t.lora, v);
  v.seed({"seed", "random seed of the order of examples", true}, t.seed);
  v.boolean({"allow_change", "resume even if data or options differ from the snapshot's"},
            t.allow_change);
}

}  // namespace fovea::train
