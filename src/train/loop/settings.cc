#include "loop/settings.h"

#include "parallel/communicator.h"

namespace fovea::train {
namespace {

class Settings : public OptionVisitor {
 public:
  nlohmann::ordered_json all;

  void integer(const Field& field, int64_t& value, int64_t, int64_t) override { put(field, value); }
  void number(const Field& field, double& value, double, double) override { put(field, value); }
  void boolean(const Field& field, bool& value) override { put(field, value); }
  void choice(const Field& field, int& value, const Names& names) override {
    if (field.name == "schedule") return put(field, value);  // a number, as in old snapshots
    put(field, names.at(static_cast<size_t>(value)));
  }
  void text(const Field& field, std::string& value) override { put(field, value); }
  void list(const Field& field, const List& list) override {
    std::visit([&](const auto& each) { put(field, each.values); }, list);
  }
  void unsigned_integer(const Field& field, uint64_t& value, Unit) override { put(field, value); }

 private:
  template <class T>
  void put(const Field& field, const T& value) {
    if (field.decides) all[field.name] = value;
  }
};

}  // namespace

nlohmann::ordered_json settings_of(TrainOptions options, Objective objective) {
  options.objective = objective;
  Settings settings;
  visit(options, settings);
  if (options.loss) settings.all["loss"] = "own";
  if (options.sharing.gradients == GradientPrecision::bf16 || options.sharing.sync_every > 1)
    settings.all["processes"] = options.ranks == nullptr ? 1 : options.ranks->size();
  return settings.all;
}

nlohmann::ordered_json settings_of(EmbedderTraining training) {
  Settings settings;
  visit(training, settings);
  settings.all["objective"] = "embedding";
  settings.all["from"] = training.model;
  return settings.all;
}

}  // namespace fovea::train
