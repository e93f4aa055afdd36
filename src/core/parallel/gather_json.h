#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parallel/communicator.h"

namespace fovea {

// Collective. Returns the values of all ranks, in the order of the ranks. Numbers keep their bits.
inline std::vector<nlohmann::json> gather_json(Communicator& ranks, const nlohmann::json& own) {
  const std::vector<std::uint8_t> bytes = nlohmann::json::to_msgpack(own);
  std::vector<nlohmann::json> all;
  for (const std::string& of_rank : ranks.gather({bytes.begin(), bytes.end()}))
    all.push_back(nlohmann::json::from_msgpack(of_rank));
  return all;
}

}  // namespace fovea
