#include "kernels/cpu/levels.h"

namespace fovea::cpu {
namespace {

bool has_neon() { return true; }  // the baseline

// The only vectors: HWY_COMPILE_ONLY_STATIC leaves nothing to choose.
constexpr int64_t kNeon = 0;

constexpr Level kLevels[] = {
    {"neon", has_neon, nullptr, kNeon, Bf16Products::widened, ByteProducts::pairs}};
constexpr Level kModels[] = {
    {"amx-model", has_neon, nullptr, kNeon, Bf16Products::model_tiles, ByteProducts::pairs},
    {"avx512-bf16-model", has_neon, nullptr, kNeon, Bf16Products::model_pairs,
     ByteProducts::pairs}};

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const Level> models() { return kModels; }

void use_targets(const Level&) {}

ByteProducts byte_products_of(const Level& level) { return level.bytes; }

}  // namespace fovea::cpu
