// Which fields of the options a run uses. Each rule is also an error text: a field that is set but
// not used would otherwise be ignored without a word.

#include "loop/used_fields.h"

#include <algorithm>
#include <functional>
#include <map>

#include "base/fields.h"
#include "base/files.h"
#include "families/static_embedding.h"
#include "fovea/model/spec_effect.h"
#include "loop/examples_task.h"
#include "open/towers.h"
#include "tokenizer/formats/vocab_files.h"

namespace fovea::train {
namespace {

struct Run {
  const TrainOptions& options;
  Objective objective;
  const model::Spec& spec;  // of the initial model, or of the new one

  bool is(std::initializer_list<Objective> objectives) const {
    return std::find(objectives.begin(), objectives.end(), objective) != objectives.end();
  }
  bool optimises(std::initializer_list<OptimizerKind> kinds) const {
    return std::find(kinds.begin(), kinds.end(), options.optimizer.kind) != kinds.end();
  }
  bool talks() const { return objective == Objective::chats || learns_preferences(objective); }
  // Whether the loss is the divergence of generalised distillation.
  bool generalises() const {
    return !options.distillation.teacher.empty() && options.distillation.on_policy >= 0;
  }
  bool reads_windows() const {
    using enum Objective;
    return is({next_token, masked, spans, skip_gram, replaced_tokens});
  }
  // Optimiser steps with the answers of a batch; in the first one, no probability has changed.
  int64_t steps_of_answers() const {
    const ReinforcementOptions& o = options.reinforcement;
    const int64_t usual = objective == Objective::grpo ? 1 : 4;
    return (o.batch_epochs > 0 ? o.batch_epochs : usual) * o.minibatches;
  }
  // Whether the run makes the tokenizer that its model reads texts with.
  bool makes_tokenizer() const {
    const bool bare = is_folder(options.tokenizer) && !text::has_vocabulary(options.from);
    return (options.from.empty() || bare) && options.distillation.teacher.empty() &&
           (options.images.empty() || objective == Objective::contrastive);
  }
  bool has_validation_files() const {
    const TrainOptions& o = options;
    return !o.validation_chats.empty() || !o.validation_pairs.empty() ||
           !o.validation_labels.empty() || !o.validation_images.empty() ||
           !o.reinforcement.validation_prompts.empty();
  }
};

struct FieldRule {
  std::vector<const char*> fields;
  bool (*uses)(const Run&);
  const char* needed;
};

const std::vector<FieldRule>& data_rules() {
  using enum Objective;
  static const std::vector<FieldRule> all = {
      {{"validation_pairs"}, [](const Run& r) { return r.is({pairs}); }, "`pairs`, or recordings"},
      {{"source_prefix"}, [](const Run& r) { return !r.options.pairs.empty(); }, "`pairs`"},
      {{"validation_labels", "problem_type", "class_weights"},
       [](const Run& r) { return !r.options.labels.empty(); },
       "`labels`"},
      {{"validation_images", "image_crop", "image_flip", "rand_augment"},
       [](const Run& r) { return !r.options.images.empty(); },
       "`images`"},
      {{"mixup"},
       [](const Run& r) { return !r.options.images.empty() && r.is({labels}); },
       "`images` with labels"},
      {{"rand_augment_magnitude"},
       [](const Run& r) { return r.options.augmentation.operations > 0; },
       "`rand_augment`"},
      {{"validation"},
       [](const Run& r) { return !r.has_validation_files(); },
       "no file of validation data"},
      {{"tokenizer"},
       [](const Run& r) { return r.makes_tokenizer(); },
       "a new model that reads texts"},
      {{"max_vocabulary"},
       [](const Run& r) {
         return r.is({next_token}) && r.makes_tokenizer() && r.options.tokenizer == "char";
       },
       "a new model of the next token with `tokenizer` char"},
      {{"train_on", "too_long"}, [](const Run& r) { return r.talks(); }, "conversations"},
  };
  return all;
}

const std::vector<FieldRule>& pass_rules() {
  using enum Objective;
  static const std::vector<FieldRule> all = {
      {{"length"},
       [](const Run& r) {
         return !r.is({pairs, contrastive, ppo, grpo}) && r.options.images.empty();
       },
       "text, labelled texts or conversations"},
      {{"document_mask"},
       [](const Run& r) { return r.is({next_token, masked, replaced_tokens}); },
       "`objective` next_token, masked or replaced_tokens"},
      {{"batch"},
       [](const Run& r) { return !r.is({pairs}) || r.spec.input.kind == model::InputKind::audio; },
       "`batch_tokens`: pairs of similar length share a batch"},
      {{"batch_tokens"},
       [](const Run& r) { return r.is({pairs}) && r.spec.input.kind == model::InputKind::tokens; },
       "`pairs`"},
      {{"evaluate_windows"}, [](const Run& r) { return r.reads_windows(); }, "text"},
      {{"bleu_lines"}, [](const Run& r) { return r.is({pairs}); }, "`pairs`, or recordings"},
      {{"window_from"},
       [](const Run& r) { return !r.is({contrastive, skip_gram, ppo, grpo}); },
       "an objective of given texts or images"},
      {{"label_smoothing"},
       [](const Run& r) {
         return !r.is({contrastive, skip_gram, replaced_tokens, ppo, grpo}) && !r.generalises();
       },
       "an objective that predicts tokens or labels, without `on_policy`"},
      {{"precision"},
       [](const Run& r) {
         return !r.is({contrastive, skip_gram}) || r.options.precision != Precision::bf16;
       },
       "fp32, in which this objective always computes"},
      {{"embedding_dropout", "attention_dropout", "residual_dropout"},
       [](const Run& r) { return !r.is({contrastive, skip_gram}); },
       "an objective of one model of texts, audio or images"},
  };
  return all;
}

const std::vector<FieldRule>& objective_rules() {
  using enum Objective;
  static const std::vector<FieldRule> all = {
      {{"mask"},
       [](const Run& r) { return r.is({masked, spans, replaced_tokens}); },
       "`objective` masked, replaced_tokens or spans"},
      {{"mean_span"}, [](const Run& r) { return r.is({spans}); }, "`objective` spans"},
      {{"neighbours", "negatives", "subsampling"},
       [](const Run& r) { return r.is({skip_gram}); },
       "`objective` skip_gram"},
      {{"generator_size", "detection_weight"},
       [](const Run& r) { return r.is({replaced_tokens}); },
       "`objective` replaced_tokens"},
      {{"preference_beta"},
       [](const Run& r) { return r.is({dpo, kto, simpo}); },
       "`objective` dpo, kto or simpo"},
      {{"preference_loss", "reference_free", "chosen_weight"},
       [](const Run& r) { return r.is({dpo}); },
       "`objective` dpo"},
      {{"desirable_weight", "undesirable_weight"},
       [](const Run& r) { return r.is({kto}); },
       "`objective` kto"},
      {{"orpo_lambda"}, [](const Run& r) { return r.is({orpo}); }, "`objective` orpo"},
      {{"simpo_gamma"}, [](const Run& r) { return r.is({simpo}); }, "`objective` simpo"},
      {{"reference_cache"},
       [](const Run& r) {
         return r.is({kto}) || (r.is({dpo}) && !r.options.preferences.reference_free);
       },
       "`objective` dpo or kto with a reference"},
      {{"answer_tokens"},
       [](const Run& r) {
         return is_reinforcement(r.objective) || r.options.distillation.on_policy > 0;
       },
       "`objective` ppo or grpo, or `on_policy` above 0"},
      {{"validation_prompts", "evaluation_prompts", "prompts", "generations",
        "sampling_temperature", "batch_epochs", "minibatches", "mask_truncated", "rewards",
        "reward_command", "kl_weight"},
       [](const Run& r) { return is_reinforcement(r.objective); },
       "`objective` ppo or grpo"},
      {{"clip_ratio", "clip_ratio_high"},
       [](const Run& r) { return is_reinforcement(r.objective) && r.steps_of_answers() > 1; },
       "`objective` ppo or grpo with `batch_epochs` or `minibatches` above 1"},
      {{"reward_timeout"},
       [](const Run& r) { return !r.options.reinforcement.reward_command.empty(); },
       "`reward_command`"},
      {{"advantage", "policy_average"},
       [](const Run& r) { return r.is({grpo}); },
       "`objective` grpo"},
      {{"kl_target", "gamma", "gae_lambda", "clip_value", "value_weight", "whiten", "score_clip",
        "reward_clip"},
       [](const Run& r) { return r.is({ppo}); },
       "`objective` ppo"},
      {{"kl_horizon"},
       [](const Run& r) { return r.is({ppo}) && r.options.reinforcement.kl_target > 0; },
       "`objective` ppo with `kl_target`"},
  };
  return all;
}

const std::vector<FieldRule>& distillation_rules() {
  static const std::vector<FieldRule> all = {
      {{"temperature", "teacher_top_k", "teacher_cache"},
       [](const Run& r) { return !r.options.distillation.teacher.empty(); },
       "`teacher`"},
      {{"distillation_alpha"},
       [](const Run& r) { return !r.options.distillation.teacher.empty() && !r.generalises(); },
       "`teacher`, without `on_policy`"},
      {{"on_policy"},
       [](const Run& r) {
         return r.objective == Objective::chats && !r.options.distillation.teacher.empty();
       },
       "`teacher` and conversations"},
      {{"divergence_beta"}, [](const Run& r) { return r.generalises(); }, "`on_policy`"},
  };
  return all;
}

const std::vector<FieldRule>& optimizer_rules() {
  using enum OptimizerKind;
  static const std::vector<FieldRule> all = {
      {{"final_rate"},
       [](const Run& r) {
         return r.options.schedule != Schedule::constant &&
                r.options.schedule != Schedule::inverse_root;
       },
       "`schedule` cosine, linear or trapezoid"},
      {{"decay_fraction"},
       [](const Run& r) { return r.options.schedule == Schedule::trapezoid; },
       "`schedule` trapezoid"},
      {{"momentum", "nesterov"},
       [](const Run& r) { return r.optimises({sgd, muon}); },
       "`optimizer` sgd or muon"},
      {{"muon_scale", "muon_rate"},
       [](const Run& r) { return r.optimises({muon}); },
       "`optimizer` muon"},
      {{"relative_rate"},
       [](const Run& r) { return r.optimises({adafactor}); },
       "`optimizer` adafactor"},
      {{"beta1", "beta2"},
       [](const Run& r) { return r.optimises({adamw, lion, muon}); },
       "`optimizer` adamw, lion or muon"},
      {{"epsilon"},
       [](const Run& r) { return r.optimises({adamw, muon}); },
       "`optimizer` adamw or muon"},
      {{"shard", "gradients"},
       [](const Run& r) { return r.options.ranks != nullptr; },
       "several processes"},
      {{"sync_every"},
       [](const Run& r) {
         using enum Objective;
         return r.options.ranks != nullptr &&
                r.is({next_token, masked, spans, pairs, labels, chats}) &&
                r.options.distillation.on_policy <= 0;
       },
       "several processes, and text, pairs, labels or conversations that are given"},
      {{"outer_rate", "outer_momentum"},
       [](const Run& r) { return r.options.sharing.sync_every > 1; },
       "`sync_every` above 1"},
      {{"moments"}, [](const Run& r) { return r.optimises({adamw}); }, "`optimizer` adamw"},
      {{"growth"},
       [](const Run& r) { return r.options.accumulate_from > 0 || r.options.window_from > 0; },
       "`accumulate_from` or `window_from`"},
      {{"average_of"}, [](const Run& r) { return r.options.average > 1; }, "`average` above 1"},
  };
  return all;
}

// The values of all fields, as text.
class FieldValues : public OptionVisitor {
 public:
  std::map<std::string, std::string> all;
  void integer(const Field& f, int64_t& v, int64_t, int64_t) override { put(f, v); }
  void number(const Field& f, double& v, double, double) override { put(f, v); }
  void boolean(const Field& f, bool& v) override { put(f, v); }
  void choice(const Field& f, int& v, const Names&) override { put(f, v); }
  void text(const Field& f, std::string& v) override { put(f, v); }
  void list(const Field& f, const List& list) override {
    std::visit([&](const auto& each) { put(f, fmt::format("{}", fmt::join(each.values, "\n"))); },
               list);
  }

 private:
  template <class T>
  void put(const Field& field, const T& value) {
    all[field.name] = fmt::format("{}", value);
  }
};

std::map<std::string, std::string> values_in(TrainOptions options) {
  FieldValues values;
  visit(options, values);
  return values.all;
}

// Returns the fields that the caller sets: those that it names, or else those whose values are
// neither the default nor that of a preset.
std::vector<std::string> fields_set(const TrainOptions& o) {
  if (o.given) return *o.given;
  static const std::vector<std::map<std::string, std::string>> usual = [] {
    std::vector<std::map<std::string, std::string>> all = {values_in(TrainOptions())};
    for (const std::string& name : model::preset_names())
      all.push_back(values_in(preset_training(name)));
    return all;
  }();
  std::vector<std::string> set;
  for (const auto& [field, value] : values_in(o))
    if (std::none_of(usual.begin(), usual.end(),
                     [&](const auto& values) { return values.at(field) == value; }))
      set.push_back(field);
  return set;
}

// Returns what the field needs to be used; empty if the run uses it.
std::string needed_for(const std::string& field, const Run& run) {
  for (const auto* rules : {&data_rules(), &pass_rules(), &objective_rules(), &distillation_rules(),
                            &optimizer_rules()})
    for (const FieldRule& rule : *rules)
      if (std::find(rule.fields.begin(), rule.fields.end(), field) != rule.fields.end())
        return rule.uses(run) ? "" : rule.needed;
  return "";
}

// Returns what a run uses of the Spec of a new model; empty for runs that use all of it.
std::function<std::string(const model::Spec&)> use_of_spec(Objective objective,
                                                           const model::Spec& spec) {
  if (objective == Objective::skip_gram)
    return [](const model::Spec& s) {
      const bool layers = s.decoder && s.decoder->layers > 0;  // a table has none, as in `layers` 0
      return model::write_spec(model::static_spec(1, s)) + (layers ? "" : "no layers");
    };
  if (!model::describes_towers(spec)) return {};
  return [](const model::Spec& s) {
    model::Spec known = s;
    known.vocabulary = std::max<int64_t>(1, s.vocabulary);
    const auto [image, text] = model::tower_specs(known);
    return model::write_spec(model::validated(image)) + model::write_spec(model::validated(text));
  };
}

}  // namespace

void refuse_unused(const TrainOptions& options, Objective objective, const model::Spec& spec) {
  const Run run{options, objective, spec};
  const auto used = use_of_spec(objective, spec);
  for (const std::string& field : fields_set(options)) {
    const std::string needed = needed_for(field, run);
    check_field(needed.empty(), field.c_str(), "has no effect in this run; expected {}", needed);
    const std::string path =
        options.from.empty() ? model::path_without_effect(spec, field, used) : "";
    check_field(path.empty(), field.c_str(),
                "has no effect: the model does not use {}; expected a model that does", path);
  }
}

}  // namespace fovea::train
