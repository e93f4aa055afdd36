#pragma once

// Adapters of fused experts in the format of PEFT (target_parameters): one tensor of the checkpoint
// in memory of transformers, such as "model.layers.0.mlp.experts.gate_up_proj" [E, out, in], has
// one adapter, A [E rank, in] and B [out, rank E]. The change of expert e is B_e A_e, where A_e are
// the rows from e rank on, and B_e the columns e, E + e, 2 E + e, ...

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/peft/adapters.h"
#include "formats/peft/save.h"

namespace fovea::model {

// Returns the tensors that a config targets as parameters, by the names under which PEFT stores
// their adapters. Adapters of several parameters of a module are nested: the last one has the
// module's name, and those before it each have a further ".base_layer".
std::map<std::string, FileTensor> targeted_parameters(const Family& family, Transformer& model,
                                                      const PeftConfig& config);

// Reads the adapter of one tensor and divides it among the layers. Throws BadFile if the tensors do
// not fit.
void read_parameter(const AdapterFile& file, const StoredModule& stored, const FileTensor& tensor,
                    Transformer& model, Adapter& adapter);

// Return the layers of experts that have an adapter and that are parameters in transformers, and
// these adapters. Experts whose layers share A have the rank of a layer, else the sum of the
// layers' ranks.
std::set<const Linear*> adapted_in_parameters(const Family& family, Transformer& model);
std::vector<StoredAdapter> stored_parameters(const Family& family, Transformer& model);

}  // namespace fovea::model
