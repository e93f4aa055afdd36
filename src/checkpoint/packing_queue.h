#pragma once

#include <functional>
#include <vector>

#include "ops/packed.h"

namespace fovea {

// Packs the matrices of a model together: threads share the panels of all matrices, so that neither
// small matrices nor slow memory leave a thread idle.
class PackingQueue {
 public:
  struct Matrix {
    PackedWeight weight;
    // Fills the panels from `begin` to `end`, and returns the number of weights that are not
    // finite. Several threads call it at the same time.
    std::function<int64_t(PackedWeight& weight, int64_t begin, int64_t end)> fill;
  };
  // Receives the number of weights of all matrices of a tensor that are not finite.
  using Report = std::function<void(int64_t nonfinite)>;

  // Adds the matrices of a tensor. Their memory exists already, but has no contents before run().
  void add(std::vector<Matrix> matrices, Report report);
  // Empties the queue: packs everything, then calls the reports in the order of add(). An exception
  // of `fill` or of a report leaves the rest out.
  void run();

 private:
  struct Entry {
    std::vector<Matrix> matrices;
    Report report;
  };
  std::vector<Entry> entries_;
};

}  // namespace fovea
