#include <hwy/targets.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "kernels/cpu/bf16_check.h"
#include "kernels/cpu/cpu_features.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {
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

struct Level {
  const char* name;
  bool (*has)();     // whether the CPU and the operating system support it
  bool (*agrees)();  // whether its bf16 products equal those of the model; null = it has none
  int64_t targets;   // Highway's targets: the widest vectors that the kernels may use
  Bf16Products bf16;
  ByteProducts bytes;  // if the CPU supports VNNI with this level's vectors
};

constexpr int64_t kAvx2 = HWY_AVX2, kAvx512 = HWY_AVX3 | HWY_AVX2;

// Best first; each level includes those after it. The models are chosen only by name.
constexpr Level kLevels[] = {
    {"amx", has_amx, cpu::native_tiles_agree, kAvx512, Bf16Products::tiles, ByteProducts::vnni},
    {"avx512-bf16", has_avx512_bf16, cpu::native_pairs_agree, kAvx512, Bf16Products::pairs,
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
constexpr const char* kReference = "reference";

const Level* model_named(const std::string& name) {
  for (const Level& model : kModels)
    if (name == model.name) return &model;
  return nullptr;
}

// Returns whether the CPU has this level but its bf16 products differ from those of the model.
bool is_rejected(const Level& level) {
  return level.has() && level.agrees != nullptr && !level.agrees();
}

// Returns the levels that both the CPU and `cap` allow; a cap above the CPU's best level has no
// effect. An unknown cap allows no levels.
std::vector<const Level*> levels_up_to(const std::string& cap) {
  std::vector<const Level*> levels;
  bool below_cap = cap == "auto" || cap == kReference || model_named(cap) != nullptr;
  for (const Level& level : kLevels) {
    below_cap = below_cap || cap == level.name;
    if (below_cap && level.has() && !is_rejected(level)) levels.push_back(&level);
  }
  return levels;
}

std::string cap_of_environment() {
  const char* text = std::getenv("FOVEA_ISA");
  const std::string cap = text == nullptr || *text == '\0' ? "auto" : text;
  if (levels_up_to(cap).empty()) {
    fail(ErrorKind::InvalidArgument,
         "FOVEA_ISA: '{}' is not an instruction set (environment); expected auto, amx, "
         "avx512-bf16, avx512, avx-vnni, avx2, avx-vnni-model, amx-model, avx512-bf16-model or "
         "reference",
         cap);
  }
  return cap;
}

// The levels that the environment allows, and the level and table that use_isa() and use_kernels()
// chose.
class Choice {
 public:
  const std::vector<const Level*>& levels() const { return levels_; }
  const Level* active() const { return active_; }  // null = the reference kernels
  const Kernels* table() const { return table_; }
  void set_table(const Kernels* table) { table_ = table; }

  void set_active(const Level* level) {
    active_ = level;
    if (level == nullptr) return;
    hwy::SetSupportedTargetsForTest(has_avx512() ? level->targets : kAvx2);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }

  static Choice& instance() {
    static Choice choice;
    return choice;
  }

 private:
  Choice() : levels_(levels_up_to(cap_of_environment())) {
    const std::string cap = cap_of_environment();
    const Level* model = model_named(cap);
    set_active(cap == kReference ? nullptr : model != nullptr ? model : levels_.front());
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

std::string instruction_set() {
  const Level* level = Choice::instance().active();
  return level == nullptr ? kReference : level->name;
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Level* level : Choice::instance().levels()) names.emplace_back(level->name);
  return names;
}

std::vector<std::string> testable_isas() {
  std::vector<std::string> names = available_isas();
  for (const Level& model : kModels) names.emplace_back(model.name);
  return names;
}

void use_isa(const std::string& name) {
  Choice& choice = Choice::instance();
  if (name == kReference) return choice.set_active(nullptr);
  if (name == "auto") return choice.set_active(choice.levels().front());
  for (const Level* level : choice.levels()) {
    if (name == level->name) return choice.set_active(level);
  }
  if (const Level* model = model_named(name)) return choice.set_active(model);
  std::string names;
  for (const std::string& isa : testable_isas()) names += isa + ", ";
  fail(ErrorKind::InvalidArgument, "isa: '{}' is not available; expected auto, {}or reference",
       name, names);
}

Bf16Products bf16_products() {
  const Level* level = Choice::instance().active();
  return level == nullptr ? Bf16Products::widened : level->bf16;
}

ByteProducts byte_products() {
  const Level* level = Choice::instance().active();
  if (level == nullptr || level->bytes != ByteProducts::vnni) {
    return level == nullptr ? ByteProducts::pairs : level->bytes;
  }
  const bool has = level->targets == kAvx2 ? has_avx_vnni() : has_avx512_vnni();
  return has ? ByteProducts::vnni : ByteProducts::pairs;
}

bool native_bf16() { return bf16_products() != Bf16Products::widened; }

std::string numeric_class(DType compute) {
  const Bf16Products bf16 = bf16_products();
  const bool tiles = bf16 == Bf16Products::tiles || bf16 == Bf16Products::model_tiles;
  return compute == DType::bf16 && tiles ? "amx" : "common";
}

std::vector<std::string> rejected_isas() {
  std::vector<std::string> lines;
  for (const Level& level : kLevels) {
    if (is_rejected(level))
      lines.push_back(
          fmt::format("{}: this CPU's bf16 products differ from the specified ones; the "
                      "instruction set is not used",
                      level.name));
  }
  return lines;
}

}  // namespace fovea
