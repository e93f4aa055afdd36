#pragma once

// Adapters of fused experts in the format of PEFT (target_parameters): one tensor of the checkpoint
// in memory of transformers, such as "model.layers.0.mlp.experts.gate_up_proj" [E, out, in], has
// one adapter, A [E rank, in] and B [out, rank E]. The change of expert e is B_e A_e, where A_e are
// the rows from e rank on, and B_e the columns e, E + e, 2 E + e, ...

#include <map>
#include <string>
#include <vector>

#include "families/adapters.h"

namespace fovea {

// Returns the tensors of stacked experts that a config targets, by the names under which PEFT
// stores their adapters. Adapters of several parameters of a module are nested: the last one has
// the module's name, and those before it each have a further ".base_layer".
std::map<std::string, FileTensor> fused_experts(const Family& family, Transformer& model,
                                                const PeftConfig& config);

// Reads the adapter of one tensor and divides it among the experts' layers. Throws BadFile if the
// tensors do not fit.
void read_fused_experts(const AdapterFile& file, const StoredModule& stored,
                        const FileTensor& tensor, Transformer& model, Adapter& adapter);

}  // namespace fovea
