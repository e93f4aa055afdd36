#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "fovea/train/train.h"

namespace fovea {

// Returns the entries of log.jsonl for steps, not for evaluations, that have a key, by step.
inline std::map<int64_t, double> logged(const train::TrainOptions& o, const std::string& key) {
  std::map<int64_t, double> found;
  const std::string text = read_file(o.out + "/log.jsonl");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const nlohmann::json json = parse_json(line, "log");
    if (json.contains("loss") && json.contains(key) && json[key].is_number())
      found[json["step"]] = json[key];
  }
  return found;
}

}  // namespace fovea
