#include "formats/peft/adapters.h"

#include <algorithm>

#include "base/error.h"
#include "loading/loading.h"
#include "safetensors/safetensors.h"
#include "transformer/adapters.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string without(const std::string& name, std::string_view ending) {
  return name.substr(0, name.size() - ending.size());
}

// Returns whether B has the same arrangement of rows as the weight. Of stacked experts, A and B are
// stacked too.
bool keeps_rows(Stored stored) {
  return stored == Stored::plain || stored == Stored::transposed || stored == Stored::by_head ||
         stored == Stored::by_query_head || stored == Stored::by_quarter ||
         stored == Stored::rotary_pairs || stored == Stored::swapped_halves ||
         stored == Stored::rotary_last || stored == Stored::stacked;
}

// Packed parameters stay packed, in f32.
void set_value(Parameter& parameter, const Tensor& value) {
  const bool packed = static_cast<bool>(parameter.packed);
  parameter.value = value;
  parameter.packed = {};
  if (packed) pack(parameter, WeightFormat::f32);
}

LowRankAdapter low_rank(const AdapterValues& values) {
  LowRankAdapter one;
  one.down = {values.down.shape(), Role::adapter_down, values.down};
  one.up = {values.up.shape(), Role::adapter_up, values.up};
  one.scale = values.scale;
  if (values.magnitude)
    one.magnitude = {values.magnitude.shape(), Role::magnitude, values.magnitude};
  return one;
}

// Changes the weights outside of adapters: parameters are replaced, and matrices get the weighted
// change.
void change_weights(Transformer& model, const Adapter& adapter, double weight) {
  if (adapter.unties && model.spec.head.tied) untie(model);
  for (const auto& [name, parameter] : parameters_of(model)) {
    if (const auto at = adapter.replaced.find(name); at != adapter.replaced.end())
      set_value(*parameter, copy(at->second));
    const auto at = adapter.changes.find(name);
    if (at == adapter.changes.end()) continue;
    Tensor value = low_rank(at->second).merged(*parameter);
    if (weight != 1) {
      const Tensor before = floats_of(*parameter);
      value = add(before, scale(subtract(value, before), static_cast<float>(weight)));
    }
    set_value(*parameter, value);
  }
}

void set_values(LowRankAdapter& adapter, const AdapterValues& values) {
  adapter.down.value = copy(values.down);
  adapter.up.value = copy(values.up);
  if (values.magnitude) adapter.magnitude.value = copy(values.magnitude);
}

// The sum of weighted adapters of one layer: f W + U D, where U consists of weight * f_i * scale_i
// B_i, D of A_i, and f is 1 + the sum of weight * (f_i - 1); f_i = 1 without DoRA.
class AdapterSum {
 public:
  explicit AdapterSum(Linear& layer) : layer_(layer), factors_(outputs(), 1.0f) {}

  void add(const AdapterValues& values, double weight) {
    std::vector<float> factors(outputs(), 1.0f);
    if (values.magnitude) {
      factors = to_floats(low_rank(values).factors(layer_.weight));
      dora_ = true;
    }
    for (size_t i = 0; i < factors.size(); ++i)
      factors_[i] += static_cast<float>(weight) * (factors[i] - 1);
    terms_.push_back({values, static_cast<float>(weight) * values.scale, std::move(factors)});
    rank_ += values.down.dim(0);
  }

  void finish() const {
    add_adapter(layer_, {.rank = rank_, .dora = dora_});
    LowRankAdapter& adapter = layer_.adapter;
    adapter.down.value = empty(adapter.down.shape);
    adapter.up.value = empty(adapter.up.shape);
    float* up = adapter.up.value.data_as<float>();
    int64_t column = 0;
    for (const Term& term : terms_) {
      const int64_t rank = term.values.down.dim(0), in = term.values.down.dim(1);
      std::copy_n(term.values.down.data_as<float>(), rank * in,
                  adapter.down.value.data_as<float>() + column * in);
      for (size_t row = 0; row < outputs(); ++row)
        for (int64_t r = 0; r < rank; ++r)
          up[static_cast<int64_t>(row) * rank_ + column + r] =
              term.scale * term.factors[row] *
              term.values.up.data_as<float>()[static_cast<int64_t>(row) * rank + r];
      column += rank;
    }
    adapter.fixed = true;
    if (dora_) adapter.magnitude.value = tensor_of(factors_, adapter.magnitude.shape);
  }

 private:
  struct Term {
    AdapterValues values;
    float scale;
    std::vector<float> factors;
  };
  size_t outputs() const { return static_cast<size_t>(layer_.weight.shape[0]); }

  Linear& layer_;
  std::vector<Term> terms_;
  std::vector<float> factors_;
  int64_t rank_ = 0;
  bool dora_ = false;
};

void check_replacements(const std::vector<std::pair<Adapter, double>>& adapters) {
  std::map<std::string, const Adapter*> owners;
  const Adapter* first = nullptr;  // that changes the embedding
  for (const auto& [adapter, weight] : adapters) {
    if (adapter.changes.contains(kTokenTable) || adapter.replaced.contains(kTokenTable) ||
        adapter.unties) {
      if (first == nullptr) first = &adapter;
      check(adapter.unties == first->unties,
            "{}: changes the matrix that the embedding and the head share, {} only one of the two; "
            "expected adapters that agree",
            (adapter.unties ? *first : adapter).folder, (adapter.unties ? adapter : *first).folder);
    }
    if (adapter.replaced.empty()) continue;
    check(weight == 1,
          "{}: has modules_to_save, but its weight is {}; expected 1, since such modules cannot be "
          "scaled",
          adapter.folder, weight);
    for (const auto& [name, value] : adapter.replaced) {
      const auto [owner, fresh] = owners.emplace(name, &adapter);
      check(fresh, "{}: replaces {}, as {} does; expected one adapter with this module",
            adapter.folder, name, owner->second->folder);
    }
  }
}

}  // namespace

std::vector<FileTensor> module_tensors(const Family& family, Transformer& model,
                                       ModuleNames names) {
  std::vector<FileTensor> tensors = file_tensors(family, model);
  if (names == ModuleNames::files || family.names_in_memory.empty()) return tensors;
  std::map<std::vector<std::string>, FileTensor> in_memory;
  for (FileTensor& tensor : file_tensors(family, model, true))
    if (tensor.stored != Stored::stacked) in_memory[tensor.parts] = std::move(tensor);
  for (FileTensor& tensor : tensors)
    if (const auto at = in_memory.find(tensor.parts); at != in_memory.end()) tensor = at->second;
  return tensors;
}

std::vector<AdapterModule> linear_modules(const Family& family, Transformer& model,
                                          ModuleNames names) {
  std::map<std::string, Linear*> layers;
  for (const auto& [name, layer] : linears_of(model)) layers[name] = layer;
  std::vector<AdapterModule> modules;
  for (FileTensor& tensor : module_tensors(family, model, names)) {
    if (!tensor.name.ends_with(kWeight) || !keeps_rows(tensor.stored)) continue;
    AdapterModule module;
    module.name = without(tensor.name, kWeight);
    module.tensor = std::move(tensor);
    for (std::string& part : module.tensor.parts) {
      if (!part.ends_with(kWeight)) break;
      part = without(part, kWeight);
      if (const auto at = layers.find(part); at != layers.end())
        module.layers.push_back(at->second);
    }
    if (module.layers.size() != module.tensor.parts.size()) continue;
    // B is not transposed, even if the weight is.
    module.transposed = module.tensor.stored == Stored::transposed;
    if (module.transposed) module.tensor.stored = Stored::plain;
    modules.push_back(std::move(module));
  }
  return modules;
}

std::vector<AdapterModule> adapter_modules(const Family& family, Transformer& model,
                                           ModuleNames names) {
  std::vector<AdapterModule> modules = linear_modules(family, model, names);
  std::erase_if(modules, [](const AdapterModule& module) {
    return !std::all_of(module.tensor.parts.begin(), module.tensor.parts.end(), can_be_adapted);
  });
  return modules;
}

Tensor read_adapter_tensor(const AdapterFile& file, const StoredTensor& stored,
                           const Shape& expected) {
  if (stored.shape != expected)
    fail(ErrorKind::BadFile, "{}: {} is {}; expected {}: the adapter belongs to another base",
         file.path, stored.name, describe(stored.shape), describe(expected));
  const DType type = stored.dtype.value_or(DType::u8);
  if (type != DType::f32 && type != DType::bf16 && type != DType::f64 && type != DType::f16)
    fail(ErrorKind::BadFile, "{}: {} is of type {}; expected floating-point numbers", file.path,
         stored.name, stored.type);
  const Tensor value = file.tensors.tensor(stored.name);
  if (count_nonfinite(value) > 0)
    fail(ErrorKind::BadFile, "{}: {} has elements that are not finite; expected finite numbers",
         file.path, stored.name);
  if (value.dtype() == DType::f16) return widen_halves(value);
  return convert(value, DType::f32);
}

void read_module(const AdapterFile& file, const StoredModule& stored, const AdapterModule& module,
                 Adapter& adapter) {
  const int64_t in = module.layers[0]->weight.shape[1];
  std::vector<Shape> downs, ups, magnitudes;
  int64_t outputs = 0;
  for (const Linear* layer : module.layers) {
    const int64_t out = layer->weight.shape[0];
    downs.push_back({stored.rank, in});
    ups.push_back({out, stored.rank});
    magnitudes.push_back({out});
    outputs += out;
  }
  const auto read = [&](const StoredTensor& tensor, const Shape& expected) {
    return read_adapter_tensor(file, tensor, expected);
  };
  const bool stacked = module.tensor.stored == Stored::stacked;
  const Shape of_up = stacked ? shape_in_file(module.tensor, ups) : Shape{outputs, stored.rank};
  const auto rows = from_file(module.tensor, read(*stored.up, of_up), ups);
  const Shape of_down = stacked ? shape_in_file(module.tensor, downs) : downs[0];
  const Tensor down = read(*stored.down, of_down);
  const auto columns =
      stacked ? from_file(module.tensor, down, downs) : std::vector<Tensor>(rows.size(), down);
  std::vector<Tensor> lengths(rows.size());
  if (stored.magnitude != nullptr)
    lengths = from_file(module.tensor, read(*stored.magnitude, {outputs}), magnitudes);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string& part = module.tensor.parts[i];
    AdapterValues& values =
        can_be_adapted(part) ? adapter.layers[part] : adapter.changes[part + std::string(kWeight)];
    values = {columns[i], rows[i], lengths[i], stored.scale};
  }
}

void add_stored_adapter(Transformer& model, const Adapter& adapter) {
  change_weights(model, adapter, 1);
  for (const auto& [name, parameter] : parameters_of(model))
    parameter->trainable = adapter.replaced.contains(name) || adapter.changes.contains(name);
  uint32_t index = 0;
  for (const auto& [name, layer] : linears_of(model)) {
    const auto at = adapter.layers.find(name);
    const uint32_t number = index++;
    if (at == adapter.layers.end()) continue;
    const AdapterValues& values = at->second;
    add_adapter(*layer, {.rank = values.down.dim(0),
                         .scale = values.scale,
                         .dropout = adapter.dropout,
                         .dora = static_cast<bool>(values.magnitude),
                         .index = number});
    set_values(layer->adapter, values);
    if (values.magnitude) layer->adapter.keep_lengths(layer->weight);
  }
  check_adapters_of_experts(model);
}

void add_adapter_sum(Transformer& model, const std::vector<std::pair<Adapter, double>>& adapters) {
  check_replacements(adapters);
  for (const auto& [adapter, weight] : adapters) change_weights(model, adapter, weight);
  for (const auto& [name, layer] : linears_of(model)) {
    AdapterSum sum(*layer);
    bool adapted = false;
    for (const auto& [adapter, weight] : adapters) {
      const auto at = adapter.layers.find(name);
      if (at == adapter.layers.end()) continue;
      sum.add(at->second, weight);
      adapted = true;
    }
    if (adapted) sum.finish();
  }
  check_adapters_of_experts(model);
}

}  // namespace fovea::model
