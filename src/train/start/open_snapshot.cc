#include "checkpoint/snapshot.h"

#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "fovea/train/train.h"
#include "open/model_parts.h"
#include "transformer/adapters.h"

namespace fovea::train {

std::vector<int64_t> snapshots(const std::string& folder) {
  std::vector<int64_t> steps = model::find_snapshots(folder);
  std::reverse(steps.begin(), steps.end());
  return steps;
}

namespace {

// Sets the weights of a connector that was trained.
void restore_connector(const model::Snapshot& snapshot, model::ModelParts& parts) {
  if (!parts.images || snapshot.tensors.find("weight.connector.first.weight") == nullptr) return;
  auto encoder = std::make_shared<model::ImageEncoder>(*parts.images);
  const auto set = [&](const std::string& name, model::Parameter& p) {
    const std::string stored = "weight." + name;
    if (snapshot.tensors.find(stored) != nullptr) p.value = snapshot.tensors.tensor(stored);
  };
  encoder->connector.first.each(set, "connector.first");
  encoder->connector.second.each(set, "connector.second");
  parts.images = std::move(encoder);
}

}  // namespace

// The model in the directory defines the shapes and the names; the weights are the snapshot's. A
// snapshot of a run that trains an adapter has only the trained weights.
model::Model open_snapshot(const std::string& folder, int64_t step) {
  const FloatMode mode;
  model::Model model = model::Model::open(folder);
  const model::Snapshot snapshot = model::load_snapshot(folder, step);
  model::Transformer& transformer = model::parts_of(model).transformer;
  const bool partial = model::has_adapters(transformer);
  transformer.each([&](const std::string& name, model::Parameter& p) {
    if (partial && snapshot.tensors.find("weight." + name) == nullptr) return;
    const Tensor weight = snapshot.tensors.tensor("weight." + name);
    // The adapter of a fused tensor in the directory has the sum of its layers' ranks.
    if (p.role == model::Role::adapter_down && weight.rank() == 2) p.shape[0] = weight.dim(0);
    if (p.role == model::Role::adapter_up && weight.rank() == 2) p.shape[1] = weight.dim(1);
    if (weight.shape() != p.shape)
      fail(ErrorKind::BadFile, "{}: weight.{} is {}; expected {}", snapshot.path, name,
           weight.shape(), p.shape);
    p.value = weight;
  });
  restore_connector(snapshot, model::parts_of(model));
  return model;
}

}  // namespace fovea::train
