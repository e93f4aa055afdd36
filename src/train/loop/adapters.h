#pragma once

#include "formats/peft/adapters.h"
#include "formats/peft/save.h"
#include "fovea/train/adapter.h"
#include "fovea/train/train.h"
#include "plan/estimate.h"

namespace fovea::train {

// Throws InvalidArgument, naming the field, if the options do not fit together.
void check_adapter_options(const AdapterOptions& options, const std::string& from);

// How the weights of the initial model are held: those of a frozen base are not copied, or packed.
struct BaseWeights {
  model::Weights weights = model::Weights::owned;
  model::Packing packing = {};
};
BaseWeights base_weights(const AdapterOptions& options);

// Adds new adapters to a model and makes its other parameters untrainable, except those of a head
// with labels. If the model has values, sets those of the adapters. Does nothing if the options
// request no adapters. Throws InvalidArgument if a target is not a module of the model.
void add_new_adapters(model::Transformer& model, const model::Family& family,
                      const AdapterOptions& options, uint64_t seed);

// Returns the directory of an adapter that a run begins with, and sets the options that it
// determines; empty if options.from is a model. Throws InvalidArgument, naming the field, if an
// option contradicts the adapter.
std::string take_adapter(TrainOptions& options);
// Returns the model's directory or file that has the weights: the base of an adapter's directory.
std::string base_of(const std::string& from);
// Reads an adapter of linear layers for add_start_adapter(), where each layer has its own A. Throws
// Unsupported, naming the tensors, for other adapters.
model::Adapter read_start_adapter(const std::string& folder, const model::Family& family,
                                  model::Transformer& model);
// Like add_new_adapters(), with the values of an adapter instead of initial ones.
void add_start_adapter(model::Transformer& model, const model::Adapter& adapter,
                       const AdapterOptions& options);
// Returns a model without its adapters, which shares the weights.
model::Transformer without_adapters(const model::Transformer& model);

// Returns the elements per token that the adapters of a model keep for the backward pass.
int64_t kept_by_adapters(model::Transformer& model, const AdapterOptions& options);

// Returns what adapter_config.json states about adapters of the model `base`.
model::AdapterFacts facts_of(const AdapterOptions& options, const std::string& base);

}  // namespace fovea::train
