#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "kernels/cpu_features.h"
#include "kernels/kernels.h"

namespace fovea {
namespace {

// AMX tiles are 8 KB of state that Linux hands out on request only (since 5.16). The constants are
// the kernel's ARCH_REQ_XCOMP_PERM and the number of the XTILEDATA component.
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
  const bool amx_bf16 = (features >> 22 & 1) != 0, amx_tile = (features >> 24 & 1) != 0;
  return amx_bf16 && amx_tile && has_avx512_bf16() && system_grants_tiles();
}

struct Level {
  const char* name;
  bool (*supported)();
  int64_t targets;  // of Highway: what the kernels' own vectors may be
  bool native_bf16;
};

constexpr int64_t kAvx2 = HWY_AVX2, kAvx512 = HWY_AVX3 | HWY_AVX2;

// Best first; each includes those below it.
constexpr Level kLevels[] = {
    {"amx", has_amx, kAvx512, true},
    {"avx512-bf16", has_avx512_bf16, kAvx512, true},
    {"avx512", has_avx512, kAvx512, false},
    {"avx2", [] { return true; }, kAvx2, false},
};
constexpr const char* kReference = "reference";

// The levels that both the CPU and the cap allow; a cap above what the CPU has changes nothing.
std::vector<const Level*> levels_up_to(const std::string& cap) {
  std::vector<const Level*> levels;
  bool below_cap = cap == "auto" || cap == kReference;
  for (const Level& level : kLevels) {
    below_cap = below_cap || cap == level.name;
    if (below_cap && level.supported()) levels.push_back(&level);
  }
  return levels;
}

std::string cap_of_environment() {
  const char* text = std::getenv("FOVEA_ISA");
  const std::string cap = text == nullptr || *text == '\0' ? "auto" : text;
  if (levels_up_to(cap).empty()) {
    fail(ErrorKind::InvalidArgument,
         "FOVEA_ISA: '{}' is not an instruction set (environment); expected auto, amx, "
         "avx512-bf16, avx512, avx2 or reference",
         cap);
  }
  return cap;
}

// What the environment allows and what use_isa() and use_kernels() chose.
class Choice {
 public:
  const std::vector<const Level*>& levels() const { return levels_; }
  const Level* active() const { return active_; }  // null = the reference kernels
  const Kernels* table() const { return table_; }
  void set_table(const Kernels* table) { table_ = table; }

  void set_active(const Level* level) {
    active_ = level;
    if (level == nullptr) return;
    hwy::SetSupportedTargetsForTest(level->targets);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  static Choice& instance() {
    static Choice choice;
    return choice;
  }

 private:
  Choice() : levels_(levels_up_to(cap_of_environment())) {
    set_active(cap_of_environment() == kReference ? nullptr : levels_.front());
  }

  std::vector<const Level*> levels_;
  std::atomic<const Level*> active_ = nullptr;
  std::atomic<const Kernels*> table_ = nullptr;
};

}  // namespace

const Kernels& kernels_for(DType dtype) {
  if (dtype == DType::f64) return reference_kernels();
  const Choice& choice = Choice::instance();
  if (const Kernels* table = choice.table()) return *table;
  if (choice.active() == nullptr) return reference_kernels();
  return cpu_kernels();
}

void use_kernels(const Kernels* table) { Choice::instance().set_table(table); }

std::string active_isa() {
  const Level* level = Choice::instance().active();
  return level == nullptr ? kReference : level->name;
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Level* level : Choice::instance().levels()) names.emplace_back(level->name);
  return names;
}

void use_isa(const std::string& name) {
  Choice& choice = Choice::instance();
  if (name == kReference) return choice.set_active(nullptr);
  if (name == "auto") return choice.set_active(choice.levels().front());
  for (const Level* level : choice.levels()) {
    if (name == level->name) return choice.set_active(level);
  }
  std::string names;
  for (const std::string& isa : available_isas()) names += isa + ", ";
  fail(ErrorKind::InvalidArgument, "isa: '{}' is not available; expected auto, {}or reference",
       name, names);
}

bool native_bf16() {
  const Level* level = Choice::instance().active();
  return level != nullptr && level->native_bf16;
}

}  // namespace fovea
