#include "tasks/embedder_objective.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/fields.h"
#include "embed/losses.h"
#include "ops/ops.h"

namespace fovea::train {
namespace {

using infer::ExampleKind;

struct LossFacts {
  const char* name;
  bool pairs, triplets, scored;  // the kinds of examples that it suits
  double temperature;            // the default; 0: it has none
  double margin = -1;            // the default; below 0: it has none
  bool teacher = false;
};
// In the order of EmbeddingLoss, after automatic. The defaults are those of sentence-transformers.
constexpr std::array<LossFacts, 8> kLosses = {{{"ranking", true, true, false, 0.05},
                                               {"cosine", false, false, true, 0},
                                               {"cosent", false, false, true, 0.05},
                                               {"angle", false, true, true, 0.05},
                                               {"triplet", false, true, false, 0, 5},
                                               {"margin_mse", false, true, false, 0, -1, true},
                                               {"kl", false, true, false, 1, -1, true},
                                               {"gist", true, true, false, 0.01, 0}}};

const LossFacts& facts_of(EmbeddingLoss loss) { return kLosses[static_cast<size_t>(loss) - 1]; }

bool is_dense(EmbeddingLoss loss) { return loss <= EmbeddingLoss::gist; }

bool suits(const LossFacts& loss, ExampleKind kind) {
  return kind == ExampleKind::pairs      ? loss.pairs
         : kind == ExampleKind::triplets ? loss.triplets
                                         : loss.scored;
}

void check_examples(const LossFacts& loss, const EmbedderTraining& training,
                    const infer::TextExamples& examples) {
  std::vector<const char*> suitable;
  for (const auto& [kind, name] :
       {std::pair(ExampleKind::pairs, "pairs (anchor, positive)"),
        {ExampleKind::triplets, "triplets (anchor, positive, negative or negative_1, ...)"},
        {ExampleKind::scored, "scored pairs (sentence1, sentence2, score)"}})
    if (suits(loss, kind)) suitable.push_back(name);
  constexpr const char* kKinds[] = {"pairs", "triplets", "scored pairs"};
  check_field(suits(loss, examples.kind), "loss", "{}, but {} has {}; expected {}", loss.name,
              training.data, kKinds[static_cast<int>(examples.kind)], fmt::join(suitable, " or "));
  check_field(
      training.loss != EmbeddingLoss::kl || examples.teacher_scores == examples.negatives() + 1,
      "loss",
      "kl, but {} has the margins of a teacher; expected its scores of the positive and of "
      "the negatives",
      training.data);
}

void check_parameters(const LossFacts& loss, const EmbedderTraining& t) {
  const auto check_use = [&](bool given, bool used, const char* field, const char* which) {
    check_field(!given || used, field, "given with `loss` {}; expected {}", loss.name, which);
  };
  const bool guided = t.loss == EmbeddingLoss::gist;
  check_use(t.temperature > 0, loss.temperature > 0, "temperature",
            "ranking, cosent, angle, kl or gist");
  check_use(t.margin.has_value(), loss.margin >= 0, "margin", "triplet or gist");
  check_use(t.relative_margin.has_value(), guided, "relative_margin", "gist");
  check_use(!t.guide.empty(), guided, "guide", "gist");
  check_field(!guided || !t.guide.empty(), "guide",
              "not given with `loss` gist; expected the directory of an embedder");
  check_field(!t.margin || !t.relative_margin, "margin",
              "given with `relative_margin`; expected one of them");
}

// Returns the scores of AnglE for triplets: 1 for positives and 0 for negatives.
std::vector<float> scores_of_candidates(const ExampleVectors& x) {
  std::vector<float> scores(static_cast<size_t>(x.candidates.dim(0)));
  std::fill_n(scores.begin(), x.examples(), 1.0f);
  return scores;
}

// Returns the differences between the scores [B, 1 + N] of positives and negatives: [B, N].
std::vector<float> margins_of(const std::vector<float>& scores, int64_t negatives) {
  std::vector<float> margins;
  for (size_t i = 0; i < scores.size(); i += static_cast<size_t>(negatives) + 1)
    for (size_t j = 1; j <= static_cast<size_t>(negatives); ++j)
      margins.push_back(scores[i] - scores[i + j]);
  return margins;
}

Tensor loss_of(const EmbedderTraining& t, const ExampleVectors& x, const EmbedderStep& step) {
  const auto temperature = static_cast<float>(t.temperature);
  const int64_t negatives = x.negatives();
  switch (t.loss) {
    case EmbeddingLoss::cosine: return infer::cosine_loss(x.anchors, x.candidates, step.scores);
    case EmbeddingLoss::cosent:
      return ordering_loss(pair_cosines(x.anchors, x.candidates), step.scores, temperature);
    case EmbeddingLoss::angle:
      return ordering_loss(pair_angles(x.repeated_anchors(), x.candidates),
                           negatives == 0 ? step.scores : scores_of_candidates(x), temperature);
    case EmbeddingLoss::triplet: return triplet_loss(x, static_cast<float>(*t.margin));
    case EmbeddingLoss::margin_mse:
      return margin_loss(x, std::ssize(step.scores) == x.examples() * negatives
                                ? step.scores
                                : margins_of(step.scores, negatives));
    case EmbeddingLoss::kl: return list_loss(x, step.scores, temperature);
    case EmbeddingLoss::gist: {
      const NegativeMargin margin = {static_cast<float>(t.relative_margin.value_or(*t.margin)),
                                     t.relative_margin.has_value()};
      return guided_loss(x, step.guide, temperature, margin);
    }
    default: return infer::ranking_loss(x.anchors, x.candidates, temperature);
  }
}

}  // namespace

bool needs_teacher(EmbeddingLoss loss) {
  return loss != EmbeddingLoss::automatic && is_dense(loss) && facts_of(loss).teacher;
}

EmbedderTraining with_loss(EmbedderTraining t, const infer::TextExamples& examples) {
  if (t.loss == EmbeddingLoss::automatic)
    t.loss = examples.kind == ExampleKind::scored ? EmbeddingLoss::cosine : EmbeddingLoss::ranking;
  check_field(is_dense(t.loss), "loss",
              "not one for dense vectors; expected ranking, cosine, cosent, angle, triplet, "
              "margin_mse, kl or gist");
  const LossFacts& loss = facts_of(t.loss);
  check_examples(loss, t, examples);
  check_parameters(loss, t);
  // Older snapshots have this temperature, whatever the loss.
  if (t.temperature == 0) t.temperature = loss.temperature > 0 ? loss.temperature : 0.05;
  if (!t.margin && loss.margin >= 0) t.margin = loss.margin;
  return t;
}

Tensor embedder_loss(const EmbedderTraining& training, const EmbedderStep& step) {
  const ExampleVectors& x = step.vectors;
  // Distances and dot products are those of the model's own vectors, unless they are truncated.
  const bool normalises = !training.dimensions.empty() || training.loss == EmbeddingLoss::ranking ||
                          training.loss == EmbeddingLoss::cosine;
  if (!normalises) return loss_of(training, x, step);
  std::set<int64_t> widths(training.dimensions.begin(), training.dimensions.end());
  widths.insert(x.anchors.dim(1));
  Tensor sum;
  for (const int64_t width : widths) {
    const Tensor part = loss_of(
        training,
        {infer::first_dimensions(x.anchors, width), infer::first_dimensions(x.candidates, width)},
        step);
    sum = sum ? add(sum, part) : part;
  }
  return sum;
}

}  // namespace fovea::train
