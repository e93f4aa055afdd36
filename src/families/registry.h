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

// The first family whose config gives this Spec back.
const Family& family_for(const Spec& spec);

}  // namespace fovea
