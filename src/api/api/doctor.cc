#include "fovea/doctor.h"
#include "fovea/core/machine.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/float_mode.h"
#include "base/gguf.h"
#include "base/machine.h"
#include "base/threads.h"
#include "checkpoint/module_files.h"
#include "checkpoint/snapshot.h"
#include "fovea/infer/embed.h"
#include "fovea/model/model.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/device.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "loading/nearest_family.h"
#include "plan/speed.h"

namespace fovea {
namespace {

// Checks a model of embeddings only.
void check_static(const std::string& folder, std::vector<Finding>& findings) {
  const infer::Embedder embedder = infer::Embedder::open(folder);
  findings.push_back(
      {"model", fmt::format("{}: intact, vectors of {} tokens", folder, embedder.spec().vocabulary),
       true});
  findings.push_back({"vectors", embedder.pooling(), true});
}

void check_model(const std::string& folder, std::vector<Finding>& findings) {
  try {
    const bool modules = is_folder(folder) && model::has_modules(folder);
    if (modules && model::is_static(folder)) return check_static(folder, findings);
    // Blocks of a .gguf file would take several times as much memory as floats.
    const model::Model model = model::Model::open(
        folder, is_gguf(folder) ? model::WeightPrecision::stored : model::WeightPrecision::full);
    std::string formats;
    for (const model::FormatBytes& each : model.weight_formats())
      formats += (formats.empty() ? "" : ", ") + each.format;
    findings.push_back({"model",
                        fmt::format("{}: intact, {} parameters, weights in {}", folder,
                                    model.parameters(), formats),
                        true});
    for (const std::string& warning : model.warnings())
      findings.push_back({"model", warning, false});
    if (modules) findings.push_back({"vectors", infer::Embedder::open(folder).pooling(), true});
    if (!model.has_tokenizer())
      findings.push_back(
          {"model", folder + ": has no tokenizer; it can be traced but not prompted", false});
  } catch (const std::exception& error) {
    findings.push_back({"model", error.what(), false});
    for (const std::string& line : model::compare_with_families(folder))
      findings.push_back({"nearest family", line, false});
  }
  for (const int64_t step : model::find_snapshots(folder)) {
    const std::string path = model::snapshot_path(folder, step);
    try {
      model::verify_snapshot(path);
      findings.push_back({"snapshot", path + ": intact", true});
    } catch (const std::exception& error) {
      findings.push_back({"snapshot", error.what(), false});
    }
  }
}

}  // namespace

std::vector<Finding> doctor(const std::string& folder) {
  const FloatMode mode;
  std::vector<Finding> findings;
  findings.push_back({"version", "fovea " + version(), true});
  findings.push_back({"processor", cpu_name(), true});
  const std::string missing = missing_cpu_features();
  findings.push_back({"instruction sets",
                      missing.empty() ? fmt::format("uses {}; available: {}", instruction_set(),
                                                    fmt::join(available_isas(), ", "))
                                      : "missing: " + missing,
                      missing.empty()});
  for (const std::string& line : rejected_isas())
    findings.push_back({"instruction sets", line, false});
  findings.push_back({"bf16",
                      native_bf16() ? "multiplied natively: --dtype automatic trains in bf16"
                                    : "not multiplied natively: --dtype automatic trains in fp32",
                      true});
  findings.push_back(
      {"cores", fmt::format("{} threads (change with OMP_NUM_THREADS)", thread_count()), true});
  for (const std::string& line : describe_gpus()) findings.push_back({"GPU", line, true});
  findings.push_back({"speed",
                      fmt::format("{:.0f} GFLOP/s in fp32 matrix products, measured now",
                                  train::measured_flops(DType::f32, 0.1) / 1e9),
                      true});
  const uint64_t available = available_memory(), total = total_memory();
  findings.push_back(
      {"memory",
       fmt::format("{:.1f} GB free of {:.1f} GB", static_cast<double>(available) / 1e9,
                   static_cast<double>(total) / 1e9),
       available > (uint64_t{512} << 20)});
  const uint64_t disk = free_space(".");
  findings.push_back({"disk", fmt::format("{:.1f} GB free here", static_cast<double>(disk) / 1e9),
                      disk > (uint64_t{1} << 30)});
  if (!folder.empty()) check_model(folder, findings);
  return findings;
}

}  // namespace fovea
