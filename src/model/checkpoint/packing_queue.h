#pragma once

#include <functional>
#include <vector>

#include "ops/packed.h"

namespace fovea::model {

// Reads the weights of a model together: threads share the rows of all weights, so that neither
// small weights nor slow memory leave a thread idle.
class PackingQueue {
 public:
  // Receives the number of weights of a tensor that are not finite.
  using Report = std::function<void(int64_t nonfinite)>;

  // Adds the weights of a tensor, which are packed late: to pack them for good now, or only to
  // count what is not finite.
  void add_to_pack(std::vector<PackedWeight> weights, Report report);
  void add_to_count(std::vector<PackedWeight> weights, Report report);
  // Empties the queue: reads everything, then calls the reports in the order of the calls above. An
  // exception of a report leaves the rest out.
  void run();

 private:
  struct Entry {
    std::vector<PackedWeight> weights;
    Report report;
    bool packs;
  };
  std::vector<Entry> entries_;
};

}  // namespace fovea::model
