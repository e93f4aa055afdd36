#include <atomic>
#include <cstdlib>

#include "base/error.h"
#include "kernels/cpu/levels.h"
#include "kernels/device.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"

namespace fovea {
namespace {

using cpu::Level;

constexpr const char* kReference = "reference";

const Level* model_named(const std::string& name) {
  for (const Level& model : cpu::models())
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
  for (const Level& level : cpu::levels()) {
    below_cap = below_cap || cap == level.name;
    if (below_cap && level.has() && !is_rejected(level)) levels.push_back(&level);
  }
  return levels;
}

std::string cap_of_environment() {
  const char* text = std::getenv("FOVEA_ISA");
  const std::string cap = text == nullptr || *text == '\0' ? "auto" : text;
  if (levels_up_to(cap).empty()) {
    std::string names;
    for (const Level& level : cpu::levels()) names += std::string(", ") + level.name;
    for (const Level& model : cpu::models()) names += std::string(", ") + model.name;
    fail(ErrorKind::InvalidArgument,
         "FOVEA_ISA: '{}' is not an instruction set (environment); expected auto{} or reference",
         cap, names);
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
    cpu::use_targets(*level);
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
  for (const Level& model : cpu::models()) names.emplace_back(model.name);
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
  return level == nullptr ? ByteProducts::pairs : cpu::byte_products_of(*level);
}

bool native_bf16() {
  return &default_device() != &cpu_device() || bf16_products() != Bf16Products::widened;
}

std::string numeric_class(DType compute) {
  if (compute == DType::bf16 && &default_device() != &cpu_device())
    return default_device().name + std::string("-mma");
  const Bf16Products bf16 = bf16_products();
  const bool tiles = bf16 == Bf16Products::tiles || bf16 == Bf16Products::model_tiles;
  return compute == DType::bf16 && tiles ? "amx" : "common";
}

std::vector<std::string> rejected_isas() {
  std::vector<std::string> lines;
  for (const Level& level : cpu::levels()) {
    if (is_rejected(level))
      lines.push_back(
          fmt::format("{}: this CPU's bf16 products differ from the specified ones; the "
                      "instruction set is not used",
                      level.name));
  }
  return lines;
}

}  // namespace fovea
