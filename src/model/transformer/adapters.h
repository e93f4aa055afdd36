#pragma once

#include <string>
#include <vector>

#include "transformer/transformer.h"

namespace fovea::model {

struct NamedLinear {
  std::string name;  // of its parameters, without ".weight": "decoder.0.attention.query"
  Linear* layer;
};

// Returns the linear layers of a model, in the order of Transformer::each(). The pointers are valid
// until the model is moved, assigned or destroyed.
std::vector<NamedLinear> linears_of(Transformer& model);

// Returns whether the layer of this name may have an adapter: the linear layers of the stacks,
// except those whose matrix is also used in another way than by a product with the input (routers,
// gates of shared experts, the hidden matrix of a recurrence, the keys and values of latent
// attention).
bool can_be_adapted(const std::string& name);

bool has_adapters(Transformer& model);

// Returns whether a linear layer, by its name, is a part of one of several experts.
bool is_of_expert(const std::string& name);
// Throws Unsupported if only some experts of a layer have adapters, if their ranks or scales
// differ, or if they use DoRA.
void check_adapters_of_experts(Transformer& model);

// Gives the head, which shares the matrix of the token embedding, a matrix of its own with the same
// values.
void untie(Transformer& model);

// Adds the adapters of another model as one more alternative of each layer. Throws InvalidArgument,
// naming the parameter, if the other model does not share a weight with this one; the model is then
// unchanged.
void add_alternative(Transformer& model, const Transformer& adapted);

// Replaces the weights by those with the adapters, in f32, and removes the adapters.
void merge_adapters(Transformer& model);

}  // namespace fovea::model
