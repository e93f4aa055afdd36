#pragma once

#include <string>
#include <vector>

#include "checkpoint/family.h"

namespace fovea {

extern const Family gpt2;
extern const Family own;

// Every family, in the order in which saving tries them: the last can express any Spec.
const std::vector<const Family*>& families();

// The family of a config.json's model_type; Unsupported names the nearest and lists all.
const Family& family_named(const std::string& model_type, const std::string& file);

// Runs a family's table in the direction of `io`: config.json to Spec or back, with the head that
// `architectures` names. The Spec that was read is validated.
void describe(Config& io, const Family& family, Spec& spec);

// Whether the family's config gives this Spec back.
bool can_express(const Family& family, const Spec& spec);

// The first family whose config gives this Spec back.
const Family& family_for(const Spec& spec);

}  // namespace fovea
