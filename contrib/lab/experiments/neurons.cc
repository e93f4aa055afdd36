// Facts in feed-forward neurons (Dai et al. 2022): a model learns that subjects have objects; the
// neurons that contribute most to a fact are found, switched off and edited.

#include <algorithm>
#include <numeric>

#include "fovea/core/autograd.h"
#include "fovea/core/ops.h"
#include "fovea/core/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kSubjects = 64, kRelations = 2, kObjects = 16, kFactLayers = 2, kModelWidth = 64;
constexpr int64_t kFacts = kSubjects * kRelations, kNeurons = kFactLayers * 4 * kModelWidth;
constexpr int64_t kFactTokens = kSubjects + kRelations + kObjects;

// Rows "subject relation", with the object as the label of the relation, or the one that follows it
// in the list of objects by `shift`.
Batch facts(uint64_t seed, int32_t shift = 0) {
  constexpr int32_t kObjectCount = kObjects, kFirstObject = kSubjects + kRelations;
  std::vector<int32_t> ids, labels;
  for (const int32_t object : random_tokens(kFacts, kObjects, seed, 0)) {
    const int64_t f = std::ssize(ids) / 2;
    ids.push_back(static_cast<int32_t>(f / kRelations));
    ids.push_back(static_cast<int32_t>(kSubjects + f % kRelations));
    labels.push_back(-1);
    labels.push_back(kFirstObject + (object + shift) % kObjectCount);
  }
  return batch_of(ids, labels, kFacts);
}

using Ranked = std::vector<std::vector<int64_t>>;  // neurons, of each fact

// For each fact, its neurons at the last token, the largest activation * gradient of the object's
// log-probability first. A neuron is numbered layer * 4 C + its index.
Ranked ranked_neurons(const nn::Transformer& model, const Batch& batch) {
  std::vector<Tensor> values, shifts;  // by layer, [B, T, F]
  const auto watch = [&](std::string_view, int64_t, Tensor& x) {
    values.push_back(x.detach());
    shifts.push_back(zeros(x.shape()));
    x = add(x, shifts.back().want_gradient());  // its gradient is that of x
  };
  backward(loss_of(model, batch, {.hook = watch, .hooked = {"mlp_hidden"}}));
  Ranked ranked;
  for (int64_t f = 0; f < kFacts; ++f) {
    std::vector<double> merit;
    for (size_t layer = 0; layer < values.size(); ++layer) {
      const int64_t F = values[layer].dim(2), T = values[layer].dim(1), at = (f * T + T - 1) * F;
      const Tensor gradient = shifts[layer].gradient();
      for (int64_t i = at; i < at + F; ++i)
        merit.push_back(-double{gradient.data_as<float>()[i]} *
                        double{values[layer].data_as<float>()[i]});
    }
    std::vector<int64_t> order(merit.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return merit[static_cast<size_t>(a)] > merit[static_cast<size_t>(b)];
    });
    ranked.push_back(std::move(order));
  }
  return ranked;
}

// Returns the accuracy if row f has the first `count` neurons of off[f] switched off.
double accuracy_without(const nn::Transformer& model, const Batch& batch, const Ranked& off,
                        int64_t count) {
  const auto switch_off = [&](std::string_view, int64_t layer, Tensor& x) {
    x = copy(x);
    const int64_t F = x.dim(2), T = x.dim(1);
    for (int64_t f = 0; f < kFacts; ++f)
      for (int64_t n = 0; n < count; ++n) {
        const int64_t neuron = off[static_cast<size_t>(f)][static_cast<size_t>(n)];
        if (neuron / F == layer) x.data_as<float>()[(f * T + T - 1) * F + neuron % F] = 0;
      }
  };
  return accuracy(model, batch, {.hook = switch_off, .hooked = {"mlp_hidden"}});
}

// The facts, and those in which each has the next object.
struct Taught {
  Batch own, next;
};

// Row f is changed by the neurons of row f' = f + offset: fact f' gets the next object. As in Meng
// et al. 2022 (eq. 2, without a covariance), the weights of its neurons move by h d^T / |h|^2, so
// that its own output moves by d, the difference of the objects' embeddings times kStrength.
// Returns the fraction of rows with the next object (offset 0) or with their own one.
double accuracy_edited(const nn::Transformer& model, const Taught& taught, const Ranked& ranked,
                       int64_t offset, int64_t count) {
  constexpr float kStrength = 10;
  const Tensor embeddings = nn::values(model.parameters()).at("embedding.token");
  const auto object = [&](const Batch& batch, int64_t fact) {
    return embeddings.data_as<float>() +
           batch.labels.data_as<int32_t>()[2 * fact + 1] * kModelWidth;
  };
  Tensor hidden;
  const auto edit = [&](std::string_view name, int64_t layer, Tensor& x) {
    if (name == "mlp_hidden") {
      hidden = x;
      return;
    }
    x = copy(x);
    const int64_t F = hidden.dim(2), T = x.dim(1);
    for (int64_t f = 0; f < kFacts; ++f) {
      const int64_t other = (f + offset) % kFacts;
      const float *own = hidden.data_as<float>() + (f * T + T - 1) * F,
                  *its = hidden.data_as<float>() + (other * T + T - 1) * F;
      float product = 0, square = 1e-12f;  // h_f h_f' and |h_f'|^2, over its neurons of this layer
      for (int64_t n = 0; n < count; ++n) {
        const int64_t neuron = ranked[static_cast<size_t>(other)][static_cast<size_t>(n)];
        if (neuron / F != layer) continue;
        product += own[neuron % F] * its[neuron % F];
        square += its[neuron % F] * its[neuron % F];
      }
      const float *before = object(taught.own, other), *after = object(taught.next, other);
      float* y = x.data_as<float>() + (f * T + T - 1) * kModelWidth;
      for (int64_t c = 0; c < kModelWidth; ++c)
        y[c] += kStrength * product / square * (after[c] - before[c]);
    }
  };
  return accuracy(model, offset == 0 ? taught.next : taught.own,
                  {.hook = edit, .hooked = {"mlp_hidden", "mlp_output"}});
}

Readings switched_off(const Trial& t) {
  const Taught taught{facts(t.seed), facts(t.seed, 1)};
  const Batch& batch = taught.own;
  const nn::Transformer model(small_decoder(kFactLayers, kModelWidth, kFactTokens, 2), t.seed);
  train_on(model, {.steps = t.times(300, 1000), .rate = t.rate}, [&](int64_t) { return batch; });
  const Ranked own = ranked_neurons(model, batch);
  // The neurons of the next fact, which has another subject or relation, and random ones.
  Ranked others(own.begin() + 1, own.end()), random;
  others.push_back(own.front());
  Random draws(t.seed, Stream::shuffle);
  for (int64_t f = 0; f < kFacts; ++f) {
    std::vector<int64_t> row(static_cast<size_t>(kNeurons));
    std::iota(row.begin(), row.end(), 0);
    for (size_t i = 0; i + 1 < row.size(); ++i)
      std::swap(row[i], row[i + draws.word() % (row.size() - i)]);
    random.push_back(std::move(row));
  }
  Readings readings;
  for (const int64_t count : {0, 1, 4, 16, 64}) {
    const auto x = static_cast<double>(count);
    readings.push_back({"the fact's neurons", x, accuracy_without(model, batch, own, count)});
    readings.push_back({"another fact's", x, accuracy_without(model, batch, others, count)});
    readings.push_back({"random", x, accuracy_without(model, batch, random, count)});
    readings.push_back(
        {"edited to the next object", x, accuracy_edited(model, taught, own, 0, count)});
    readings.push_back(
        {"another fact edited", x, accuracy_edited(model, taught, own, kFacts / 2, count)});
  }
  return readings;
}

std::vector<Conclusion> decide_neurons(const Table& table) {
  constexpr double kLost = 0.5, kKept = 0.8;
  std::vector<Case> cases;
  std::string numbers;
  for (const double count : {4.0, 16.0})
    cases.push_back({number_text(count) + " of 512 neurons are switched off",
                     std::min({below(table.at("the fact's neurons", count), kLost),
                               above(table.at("another fact's", count), kKept),
                               above(table.at("random", count), kKept)})});
  for (const std::string& name : table.series())
    numbers += (numbers.empty() ? "" : "; ") + course(table, name);
  std::vector<Case> edits;
  for (const double count : {4.0, 16.0, 64.0})
    edits.push_back({number_text(count) + " of 512 neurons are edited",
                     std::min(above(table.at("edited to the next object", count), kKept),
                              above(table.at("another fact edited", count), kKept))});
  return {conclude("CLM-21: feed-forward neurons store facts", cases, numbers),
          conclude("CLM-21: a fact can be edited in its neurons", edits,
                   course(table, "edited to the next object") + "; " +
                       course(table, "another fact edited"))};
}

}  // namespace

Experiment neurons() {
  return {
      .summary = {.name = "neurons",
                  .claims = {"CLM-21: feed-forward neurons store facts",
                             "CLM-21: a fact can be edited in its neurons"},
                  .metric = "accuracy of 128 learned facts",
                  .axis = "neurons switched off or edited, of 512",
                  .rule =
                      "holds for a number of neurons if without a fact's own the interval "
                      "lies below 0.5, and without another fact's and random ones above 0.8; an "
                      "edit holds if the new object's and those of other facts lie above "
                      "0.8"},
      .greater_is_better = true,
      .arms = {"128 facts"},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = switched_off,
      .conclude = decide_neurons};
}

}  // namespace fovea::lab
