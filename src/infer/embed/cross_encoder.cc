#include "embed/cross_encoder.h"

#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/gguf.h"
#include "base/json.h"
#include "checkpoint/module_files.h"
#include "embed/head_states.h"
#include "open/directory.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Returns the activation that sentence-transformers applies to the score. Releases of
// sentence-transformers store its name in three different places; the default is a sigmoid.
std::optional<Activation> activation_of(const std::string& folder, const std::string& inner) {
  const auto named = [](const nlohmann::json& json, const char* key, const std::string& file) {
    return json.is_object() ? find_string(json, key, file) : std::nullopt;
  };
  std::optional<std::string> name;
  std::string file = folder + "/config_sentence_transformers.json";
  if (is_file(file)) name = named(read_json(file), "activation_fn", file);
  if (name) return activation_named(*name, file);
  if (!is_folder(inner)) return Activation::sigmoid;  // a .gguf file
  file = inner + "/config.json";
  const nlohmann::json config = read_json(file);
  if (const auto nested = config.find("sentence_transformers"); nested != config.end())
    name = named(*nested, "activation_fn", file);
  if (!name) name = named(config, "sbert_ce_default_activation_function", file);
  return name ? activation_named(*name, file) : Activation::sigmoid;
}

// The tokens whose logits are compared; without `no`, the score is the logit of `yes`.
struct Answers {
  int32_t yes = 0;
  std::optional<int32_t> no;
};

// Returns the answers that the module LogitScore names, or the tokens "yes" and "no"; unset if
// there are no such tokens.
std::optional<Answers> answers_of(const std::string& folder, const text::Tokenizer& tokenizer) {
  const std::vector<model::ListedModule> listed =
      model::has_modules(folder) ? model::list_modules(folder) : std::vector<model::ListedModule>();
  if (listed.size() > 1) {
    if (listed.size() > 2 || listed[1].kind != "LogitScore")
      fail(ErrorKind::Unsupported,
           "{}/modules.json: module {} is not supported in a cross-encoder; expected a Transformer "
           "and LogitScore",
           folder, listed.back().kind);
    const std::string file = listed[1].folder + "/config.json";
    const nlohmann::json config = read_json(file);
    const int64_t last = tokenizer.size() - 1;
    const auto yes = static_cast<int32_t>(get_int(config, "true_token_id", file, 0, last));
    const auto no = find_int(config, "false_token_id", file, 0, last);
    return Answers{yes, no ? std::optional(static_cast<int32_t>(*no)) : std::nullopt};
  }
  const auto yes = tokenizer.id_of("yes"), no = tokenizer.id_of("no");
  if (!yes || !no) return std::nullopt;
  return Answers{*yes, no};
}

// Returns the rows of a matrix, which may be packed, as f32.
Tensor matrix_rows(const model::Parameter& matrix, const std::vector<int32_t>& rows) {
  const Tensor ids = tensor_of(rows, {std::ssize(rows)});
  const Tensor found = matrix.packed ? embedding(ids, matrix.packed) : embedding(ids, matrix.value);
  return cast(found, DType::f32);
}

// Replaces the head of a language model, or that of the answers, by one with one label, whose
// weights are the difference of those of the answers.
void compare_answers(model::Transformer& model, const Answers& answers) {
  const NoGradient off;
  const model::HeadSpec words = model.spec.head;
  const bool tied = words.kind == model::HeadKind::language_model && words.tied;
  check(words.softcap == 0 && !words.transform && !words.bias,
        "head: it has a cap, a layer or a bias beside its matrix; expected the matrix alone");
  std::vector<int32_t> ids = {answers.yes};
  if (answers.no) ids.push_back(*answers.no);
  const Tensor rows = matrix_rows(tied ? model.token_embedding : model.head.output.weight, ids);
  const int64_t C = rows.dim(1);
  const Tensor yes = rows.rows(0, 1).view({1, C});
  model.spec.head = {
      .kind = model::HeadKind::sequence, .labels = 1, .pooling = model::Pooling::last};
  model.spec = model::validated(model.spec);
  model.head = model::Head(model.spec, *model.spec.decoder);
  model.head.output.weight.value =
      answers.no ? subtract(yes, rows.rows(1, 2).view({1, C})) : copy(yes);
  const float factor = words.scale * (words.scaled ? 1 / std::sqrt(static_cast<float>(C)) : 1);
  if (factor != 1) model.head.output.weight.value = scale(model.head.output.weight.value, factor);
}

}  // namespace

bool labels_answers(const std::string& path, const model::Spec& spec) {
  if (spec.head.kind != model::HeadKind::sequence || spec.encoder || !is_gguf(path)) return false;
  const Gguf file(path);
  const std::string architecture(file.text("general.architecture").value_or(""));
  const auto labels = file.texts(architecture + ".classifier.output_labels");
  return labels && *labels == std::vector<std::string_view>{"yes", "no"};
}

CrossEncoder CrossEncoder::open(const std::string& folder, model::Weights weights,
                                const model::Packing& packing,
                                const std::vector<model::AdapterUse>& adapters) {
  const std::string inner = model::transformer_folder(folder);
  model::ModelFiles files = model::open_model_files(inner, weights, packing, adapters);
  const model::Spec& spec = files.model.spec;
  TextFormat format = TextFormat::open(inner, spec);
  if (labels_answers(inner, spec)) {
    compare_answers(files.model, {.yes = 0, .no = 1});
    format.read_messages(MessageFormat::open_for_pairs(inner, format.tokenizer()));
  } else if (spec.head.kind == model::HeadKind::language_model && !spec.encoder) {
    if (const auto answers = answers_of(folder, format.tokenizer())) {
      compare_answers(files.model, *answers);
      // The settings of modules say whether they read messages or pairs of texts.
      if (!model::has_modules(folder) || format.reads_messages())
        format.read_messages(MessageFormat::open_for_pairs(inner, format.tokenizer()));
    }
  }
  if (spec.head.kind != model::HeadKind::sequence || spec.head.labels != 1)
    fail(ErrorKind::Unsupported,
         "{}: the model is not a sequence classifier with one label; expected "
         "a cross-encoder",
         folder);
  move_to(default_device(), files.model);
  const auto activation = activation_of(folder, inner);
  const auto start = decoder_start_of(spec, files.origin, inner);
  return {std::move(files.model),    std::move(format),
          read_prompts(folder),      activation,
          std::move(files.warnings), start,
          std::move(files.origin),   folder};
}

Tensor CrossEncoder::logits(const TokenBatch& batch, DType compute) const {
  return head_logits(transformer, batch, head_states(transformer, batch, start, compute));
}

}  // namespace fovea::infer
