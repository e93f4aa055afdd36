#include "tasks/retriever_objective.h"

#include <initializer_list>
#include <utility>

#include "base/fields.h"
#include "checkpoint/module_files.h"
#include "embed/modules.h"
#include "embed/vector_kind.h"
#include "losses/score_losses.h"
#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {
namespace {

using infer::ExampleKind;

enum class TeacherUse { none, scores, scores_or_margins };

struct RetrieverLoss {
  TrainedKind kind;
  EmbeddingLoss loss;
  const char* name;
  TeacherUse teacher;
  double temperature;  // the default; 0: it has none
};
// The first one of a kind is that of `automatic`. The defaults are those of sentence-transformers
// (whose scale is 1 / temperature) and PyLate.
constexpr RetrieverLoss kRetrieverLosses[] = {
    {TrainedKind::sparse, EmbeddingLoss::ranking, "ranking", TeacherUse::none, 1},
    {TrainedKind::sparse, EmbeddingLoss::margin_mse, "margin_mse", TeacherUse::scores_or_margins,
     0},
    {TrainedKind::sparse, EmbeddingLoss::kl, "kl", TeacherUse::scores, 1},
    {TrainedKind::tokens, EmbeddingLoss::ranking, "ranking", TeacherUse::none, 1},
    {TrainedKind::tokens, EmbeddingLoss::margin_mse, "margin_mse", TeacherUse::scores_or_margins,
     0},
    {TrainedKind::tokens, EmbeddingLoss::kl, "kl", TeacherUse::scores, 1},
    {TrainedKind::tokens, EmbeddingLoss::scaled_kl, "scaled_kl", TeacherUse::scores, 0},
    {TrainedKind::scores, EmbeddingLoss::ranking, "ranking", TeacherUse::none, 0.1},
    {TrainedKind::scores, EmbeddingLoss::margin_mse, "margin_mse", TeacherUse::scores_or_margins,
     0},
    {TrainedKind::scores, EmbeddingLoss::mse, "mse", TeacherUse::scores, 0},
    {TrainedKind::scores, EmbeddingLoss::list_net, "list_net", TeacherUse::scores, 0},
    {TrainedKind::scores, EmbeddingLoss::lambda, "lambda", TeacherUse::scores, 0}};

// In the order of TrainedKind, after automatic.
constexpr const char* kModels[] = {"dense vectors", "sparse encoders", "late interaction models",
                                   "cross-encoders"};
const char* models_of(TrainedKind kind) { return kModels[static_cast<size_t>(kind) - 1]; }

const RetrieverLoss& loss_for(TrainedKind kind, EmbeddingLoss loss) {
  std::vector<const char*> names;
  for (const RetrieverLoss& each : kRetrieverLosses) {
    if (each.kind != kind) continue;
    if (loss == EmbeddingLoss::automatic || each.loss == loss) return each;
    names.push_back(each.name);
  }
  fail_field(ErrorKind::InvalidArgument, "loss", "not one for {}; expected {}", models_of(kind),
             fmt::join(names, ", "));
}

void check_examples(const EmbedderTraining& t, const RetrieverLoss& loss,
                    const infer::TextExamples& examples) {
  constexpr const char* kFields = "(anchor, positive, negative or negative_1, ..., scores)";
  check_field(examples.kind != ExampleKind::scored, "loss",
              "{}, but {} has scored pairs; expected "
              "pairs (anchor, positive) or triplets",
              loss.name, t.data);
  if (loss.teacher == TeacherUse::none) return;
  check_field(examples.kind == ExampleKind::triplets, "loss",
              "{}, but {} has pairs; expected triplets with scores {}", loss.name, t.data, kFields);
  check_field(loss.teacher == TeacherUse::scores_or_margins ||
                  examples.teacher_scores == examples.negatives() + 1,
              "loss",
              "{}, but {} has the margins of a teacher; expected scores of the positive "
              "and of the negatives",
              loss.name, t.data);
}

// Returns the differences between the first score of each query and its others.
std::vector<float> margins_in(const std::vector<float>& scores, int64_t K) {
  std::vector<float> margins;
  for (size_t i = 0; i < scores.size(); ++i)
    if (const size_t first = i - i % static_cast<size_t>(K); i > first)
      margins.push_back(scores[first] - scores[i]);
  return margins;
}

}  // namespace

TrainedKind kind_of(const EmbedderTraining& t) {
  if (t.kind != TrainedKind::automatic) return t.kind;
  switch (infer::vector_kind(t.model)) {
    case infer::VectorKind::sparse: return TrainedKind::sparse;
    case infer::VectorKind::multiple: return TrainedKind::tokens;
    default: break;
  }
  return infer::find_setting(t.model, "model_type") == "CrossEncoder" ? TrainedKind::scores
                                                                      : TrainedKind::dense;
}

void check_kind_options(const EmbedderTraining& t, TrainedKind kind) {
  const EmbedderTraining usual;
  const auto only_for = [&](TrainedKind suitable, const char* which,
                            std::initializer_list<std::pair<const char*, bool>> given) {
    for (const auto& [field, differs] : given)
      check_field(kind == suitable || !differs, field, "given for {}; expected {}", models_of(kind),
                  which);
  };
  only_for(TrainedKind::dense, "a model of dense vectors",
           {{"dimensions", !t.dimensions.empty()},
            {"learn_pooling", t.learn_pooling != usual.learn_pooling},
            {"margin", t.margin.has_value()},
            {"relative_margin", t.relative_margin.has_value()},
            {"guide", !t.guide.empty()}});
  only_for(TrainedKind::sparse, "a sparse encoder",
           {{"query_weight", t.query_weight != usual.query_weight},
            {"document_weight", t.document_weight != usual.document_weight},
            {"regulariser", t.regulariser != usual.regulariser}});
  const bool creates = infer::vector_kind(t.model) != infer::VectorKind::multiple;
  only_for(creates ? TrainedKind::tokens : TrainedKind::automatic,
           "an encoder that gets a projection for vectors of tokens",
           {{"token_width", t.token_width != usual.token_width}});
}

EmbedderTraining with_retriever_loss(EmbedderTraining t, TrainedKind kind,
                                     const infer::TextExamples& examples) {
  const RetrieverLoss& loss = loss_for(kind, t.loss);
  check_examples(t, loss, examples);
  check_kind_options(t, kind);
  check_field(t.temperature == 0 || loss.temperature > 0, "temperature",
              "given with `loss` {}; expected a loss that has one", loss.name);
  t.kind = kind;
  t.loss = loss.loss;
  if (t.temperature == 0) t.temperature = loss.temperature;
  return t;
}

bool reads_teacher(TrainedKind kind, EmbeddingLoss loss) {
  return loss_for(kind, loss).teacher != TeacherUse::none;
}

bool needs_all_scores(const EmbedderTraining& t) { return t.loss == EmbeddingLoss::ranking; }

Tensor retriever_loss(const EmbedderTraining& t, const RetrieverScores& scores,
                      const std::vector<float>& teacher) {
  const auto temperature = static_cast<float>(t.temperature);
  switch (t.loss) {
    case EmbeddingLoss::margin_mse: {
      const int64_t K = scores.own.dim(1);
      const bool margins = std::ssize(teacher) == scores.own.dim(0) * (K - 1);
      return margin_error(scores.own, margins ? teacher : margins_in(teacher, K));
    }
    case EmbeddingLoss::kl: return list_divergence(scores.own, teacher, temperature);
    case EmbeddingLoss::scaled_kl: return list_divergence(in_unit_interval(scores.own), teacher, 1);
    case EmbeddingLoss::mse: return score_error(scores.own, teacher);
    case EmbeddingLoss::list_net: return list_net_loss(scores.own, teacher);
    case EmbeddingLoss::lambda: return lambda_loss(scores.own, teacher);
    default: break;
  }
  // Row i of all scores has the positive in column i, that of own scores in the first one.
  const Tensor logits = scores.all ? scores.all : activation(scores.own, Activation::sigmoid);
  const int64_t step = scores.all ? 1 : 0;
  return cross_entropy(scale(logits, 1 / temperature),
                       tensor_from<int32_t>({logits.dim(0)}, [=](int64_t i) { return i * step; }));
}

}  // namespace fovea::train
