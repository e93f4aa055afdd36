// The loss after heads of a trained model are removed one by one (Michel et al. 2019).

#include <algorithm>

#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kRemovalLayers = 2, kHeadsPerLayer = 8;

// Returns the loss without some heads; a head is numbered layer * kHeadsPerLayer + head.
double loss_without(const nn::Transformer& model, const std::vector<Batch>& batches,
                    const std::vector<int64_t>& removed) {
  const auto remove = [&](std::string_view, int64_t layer, Tensor& heads) {  // [B, T, H, D]
    heads = copy(heads);
    const int64_t D = heads.dim(3), rows = heads.size() / (kHeadsPerLayer * D);
    for (const int64_t number : removed) {
      if (number / kHeadsPerLayer != layer) continue;
      float* head = heads.data_as<float>() + number % kHeadsPerLayer * D;
      for (int64_t r = 0; r < rows; ++r) std::fill_n(head + r * kHeadsPerLayer * D, D, 0.0f);
    }
  };
  return mean_loss(model, batches, {.hook = remove, .hooked = {"heads"}});
}

Readings removed(const Trial& t) {
  const Text& text = *t.text;
  model::Spec spec = small_decoder(kRemovalLayers, 64, text.vocabulary(), 64);
  spec.decoder->attention.heads = kHeadsPerLayer;
  const nn::Transformer model(spec, t.seed);
  train_on(model, {.steps = t.times(600, 5000), .rate = t.rate},
           [&](int64_t step) { return text.training_batch(step, 16, 64, t.seed); });
  const std::vector<Batch> held_out = text.held_out_batches(t.times(64), 16, 64);
  std::vector<std::pair<double, int64_t>> order;  // loss without the head, head
  for (int64_t head = 0; head < kRemovalLayers * kHeadsPerLayer; ++head)
    order.emplace_back(loss_without(model, held_out, {head}), head);
  std::sort(order.begin(), order.end());
  Readings readings;
  for (const bool least : {true, false}) {
    const std::string series = least ? "least important first" : "most important first";
    std::vector<int64_t> heads;
    for (size_t count = 0; count <= order.size(); ++count) {
      readings.push_back(
          {series, static_cast<double>(count), loss_without(model, held_out, heads)});
      if (count == order.size()) break;
      heads.push_back(order[least ? count : order.size() - 1 - count].second);
    }
  }
  return readings;
}

std::vector<Conclusion> decide_removal(const Table& table) {
  const std::string series = "least important first";
  constexpr double kShare = 1.05;
  std::vector<Case> cases;
  for (const double count : {4.0, 8.0})
    cases.push_back({number_text(count) + " of 16 heads are removed",
                     below(table.at(series, count), kShare * table.at(series, 0).mean)});
  return {conclude("many heads of a trained model can be removed", cases,
                   course(table, series) + "; " + course(table, "most important first"))};
}

}  // namespace

Experiment head_removal() {
  return {
      .summary = {.name = "head-removal",
                  .claims = {"many heads of a trained model can be removed"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "heads removed, of 16",
                  .rule = "holds for a number of heads if the interval of the loss without them "
                          "lies below 1.05 times the whole model's",
                  .reads_text = true},
      .arms = {"2 layers of 8 heads"},
      .rates = {2e-3, 1e-3, 4e-3},
      .measure = removed,
      .conclude = decide_removal};
}

}  // namespace fovea::lab
