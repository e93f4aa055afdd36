#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loop/output_cache.h"
#include "losses/batch.h"

namespace fovea::train {

// The log-probabilities of texts in the initial model of a run, each of which is computed once. So
// a run keeps no second copy of the weights.
class Reference {
 public:
  // `folder` holds the results, which depend on `identity` and on the texts.
  Reference(const std::string& folder, uint64_t identity);

  // Writes results to the folder from now on.
  void open() { cache_.open(); }
  // Returns the sum of the log-probabilities of the labels of the text with this hash; unset if it
  // is not known.
  std::optional<double> find(uint64_t key);
  // Keeps the result of a text, which another process of the job has computed.
  void keep(uint64_t key, double sum) {
    cache_.add(key, {reinterpret_cast<const char*>(&sum), sizeof sum});
  }
  // Computes the sums of the texts of a batch. `keys`: their hashes.
  void add(const model::Transformer& model, DType compute, const Batch& batch,
           const std::vector<uint64_t>& keys);

 private:
  OutputCache cache_;
};

}  // namespace fovea::train
