#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/cpu/bf16_check.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/cpu/levels.h"

namespace fovea::cpu {
namespace {

// AMX tiles are 8 KB of state that Linux grants only on request (since 5.16). The constants are
// Linux's ARCH_REQ_XCOMP_PERM and the number of the XTILEDATA component.
bool system_grants_tiles() {
  constexpr int kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

bool has_avx512_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

bool has_amx() {
  const uint32_t features = cpuid(7, 0).d;
  const bool amx_bf16 = (features >> 22 & 1) != 0, amx_tile = (features >> 24 & 1) != 0,
             amx_int8 = (features >> 25 & 1) != 0;
  return amx_bf16 && amx_tile && amx_int8 && has_avx512_bf16() && system_grants_tiles();
}

bool has_avx512_vnni() { return has_avx512() && __builtin_cpu_supports("avx512vnni"); }

bool has_avx_vnni() { return (cpuid(7, 1).a >> 4 & 1) != 0; }

bool has_avx2() { return true; }  // the baseline

constexpr int64_t kAvx2 = HWY_AVX2, kAvx512 = HWY_AVX3 | HWY_AVX2;

constexpr Level kLevels[] = {
    {"amx", has_amx, native_tiles_agree, kAvx512, Bf16Products::tiles, ByteProducts::vnni},
    {"avx512-bf16", has_avx512_bf16, native_pairs_agree, kAvx512, Bf16Products::pairs,
     ByteProducts::vnni},
    {"avx512", has_avx512, nullptr, kAvx512, Bf16Products::widened, ByteProducts::vnni},
    {"avx-vnni", has_avx_vnni, nullptr, kAvx2, Bf16Products::widened, ByteProducts::vnni},
    {"avx2", has_avx2, nullptr, kAvx2, Bf16Products::widened, ByteProducts::pairs},
};
constexpr Level kModels[] = {
    {"avx-vnni-model", has_avx2, nullptr, kAvx2, Bf16Products::widened, ByteProducts::model_vnni},
    {"amx-model", has_avx2, nullptr, kAvx512, Bf16Products::model_tiles, ByteProducts::vnni},
    {"avx512-bf16-model", has_avx2, nullptr, kAvx512, Bf16Products::model_pairs,
     ByteProducts::vnni},
};

}  // namespace

std::span<const Level> levels() { return kLevels; }
std::span<const Level> models() { return kModels; }

void use_targets(const Level& level) {
  hwy::SetSupportedTargetsForTest(has_avx512() ? level.targets : kAvx2);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

ByteProducts byte_products_of(const Level& level) {
  if (level.bytes != ByteProducts::vnni) return level.bytes;
  const bool has = level.targets == kAvx2 ? has_avx_vnni() : has_avx512_vnni();
  return has ? ByteProducts::vnni : ByteProducts::pairs;
}

}  // namespace fovea::cpu
