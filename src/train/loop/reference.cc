#include "loop/reference.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "losses/sequence_log_probabilities.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::train {

Reference::Reference(const std::string& folder, uint64_t identity)
    : cache_(fmt::format("{}/{}.bin", folder, hash_text(identity)), identity) {}

std::optional<double> Reference::find(uint64_t key) {
  const auto bytes = cache_.find(key);
  double sum = 0;
  if (!bytes || bytes->size() != sizeof sum) return std::nullopt;
  std::memcpy(&sum, bytes->data(), sizeof sum);
  return sum;
}

void Reference::add(const model::Transformer& model, DType compute, const Batch& batch,
                    const std::vector<uint64_t>& keys) {
  const NoGradient off;
  model::Pass pass;
  pass.compute = compute;
  const HostValues<double> sums(sequence_log_probabilities(model, batch, pass).sums);
  for (size_t n = 0; n < keys.size(); ++n) {
    const double sum = sums[static_cast<int64_t>(n)];
    if (!std::isfinite(sum))
      fail(ErrorKind::Failed,
           "reference: its log-probabilities are not finite; expected finite "
           "weights of the initial model");
    keep(keys[n], sum);
  }
}

}  // namespace fovea::train
