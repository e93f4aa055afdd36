#include "loop/leader.h"

#include "base/error.h"
#include "fovea/core/machine.h"
#include "kernels/isa.h"
#include "loop/job.h"

namespace fovea::train {

nlohmann::json of_leader(Communicator& ranks, const nlohmann::json& own) {
  const std::vector<std::uint8_t> bytes =
      leads(&ranks) ? nlohmann::json::to_msgpack(own) : std::vector<std::uint8_t>();
  const std::vector<std::string> all = ranks.gather({bytes.begin(), bytes.end()});
  return nlohmann::json::from_msgpack(all.front());
}

bool agree_on_bits(Communicator& ranks, const Say& say) {
  const std::string own = numeric_class(DType::bf16) + (native_bf16() ? "+" : "");
  bool same = true, native = true;
  for (const std::string& other : ranks.gather(own)) {
    same = same && other.substr(0, other.find('+')) == own.substr(0, own.find('+'));
    native = native && other.ends_with('+');
  }
  if (same) return native;
  constexpr const char* kCommon = "avx512-bf16";  // of the class without AMX
  if (own.starts_with("amx")) use_isa(kCommon);
  say(
      fmt::format("some ranks have AMX, which adds bf16 products in another order; all use {} or "
                  "the same bits without it",
                  kCommon));
  return native;
}

void agree_on_job(Communicator& ranks, const Job& job) {
  const TrainOptions& o = job.options;
  const nlohmann::json own = {{"version", version()},
                              {"step", job.plan.first_step},
                              {"evaluate_every", o.evaluate_every},
                              {"sample_every", o.sample_every},
                              {"save_every", o.save_every},
                              {"settings", job.settings}};
  const nlohmann::json leaders = of_leader(ranks, own);
  const std::vector<std::string> changed = changes(leaders, own);
  if (!changed.empty())
    fail(ErrorKind::InvalidArgument,
         "train: {} (first of rank 0); expected the same version, data, options and snapshots on "
         "all ranks",
         fmt::join(changed, "; "));
  ranks.barrier();
}

}  // namespace fovea::train
