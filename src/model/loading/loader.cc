#include "loading/loader.h"

#include <algorithm>

#include "base/error.h"
#include "base/machine.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_weights.h"
#include "checkpoint/weight_rows.h"
#include "ops/ternary.h"
#include "safetensors/safetensors.h"
#include "transformer/pack.h"

namespace fovea::model {
namespace {

bool is_buffer(const Family& family, const std::string& name) {
  return std::any_of(family.buffers.begin(), family.buffers.end(),
                     [&](auto& end) { return name.ends_with(end); });
}

// Returns the default packed format of a tensor that is not packed as stored: blocks become bf16.
WeightFormat default_format(const StoredTensor& stored, DType dtype) {
  return dtype == DType::bf16 || find_gguf_format(stored.type) != nullptr ? WeightFormat::bf16
                                                                          : WeightFormat::f32;
}

// Returns whether the parameter may stay bf16 in inference, because the ops that read it widen it.
bool reads_bf16(const Parameter& p) {
  return p.role == Role::matrix || p.role == Role::residual_matrix || p.role == Role::head_matrix ||
         p.role == Role::token_embedding;
}

bool is_whole_numbers(const StoredTensor& stored) {
  return stored.dtype == DType::i8 || stored.dtype == DType::u8;
}

// Returns whether from_file() can keep the dtype of a tensor.
bool keeps_dtype(Stored stored) {
  return stored != Stored::transposed && stored != Stored::transposed_parts &&
         stored != Stored::heads_transposed && stored != Stored::one_plus &&
         stored != Stored::minus_exp && stored != Stored::minus_exp_column;
}

// Returns whether only few rows of a parameter are read, so that it stays in the file.
bool is_table(const Spec& spec, const std::string& name) {
  return name == "embedding.token" && !spec.head.tied;
}

// Heads of masked language models have their bias twice, and compute with that of the decoder.
// Returns its name if `name` is that of the other one, else an empty text.
std::string decoder_bias_of(const std::string& name) {
  if (!name.ends_with("predictions.bias") && !name.ends_with("lm_head.bias")) return "";
  return name.substr(0, name.size() - 4) + "decoder.bias";
}

// The inverse, for files that have only the other one.
std::string bias_beside(const std::string& name) {
  constexpr std::string_view kDecoder = "decoder.bias";
  if (!name.ends_with(kDecoder)) return "";
  return name.substr(0, name.size() - kDecoder.size()) + "bias";
}

// Returns a matrix of a ternary product, of any dtype of floats, as it is packed.
Tensor rounded_ternary(const Tensor& value) {
  const Tensor wide = value.dtype() == DType::f16   ? widen_halves(value)
                      : value.dtype() == DType::f32 ? value
                                                    : convert(value, DType::f32);
  return round_ternary(wide).detach();
}

// The memory that must remain besides that of the weights.
constexpr uint64_t kReserve = uint64_t{256} << 20;

}  // namespace

const StoredTensor* Loader::find(const std::string& name) const {
  const std::string prefix = family_.prefix;
  if (const auto* stored = file_.find(decoder_bias_of(name))) return stored;
  std::vector<std::string> spellings = {name, prefix + name};
  if (!prefix.empty() && name.starts_with(prefix)) spellings[1] = name.substr(prefix.size());
  for (size_t i = 0; i < 2; ++i) {
    for (const auto& [now, once] : {std::pair(".weight", ".gamma"), {".bias", ".beta"}})
      if (spellings[i].ends_with(std::string("LayerNorm") + now))
        spellings.push_back(spellings[i].substr(0, spellings[i].rfind('.')) + once);
  }
  for (const std::string& spelling : spellings)
    if (const auto* stored = file_.find(spelling)) return stored;
  return file_.find(bias_beside(name));
}

// Returns whether the file uses the names that transformers has in memory, if they differ.
bool Loader::uses_names_in_memory(Transformer& model) const {
  if (family_.names_in_memory.empty()) return false;
  const auto tensors = file_tensors(family_, model, true);
  return std::all_of(tensors.begin(), tensors.end(),
                     [&](const FileTensor& tensor) { return find(tensor.name) != nullptr; });
}

std::vector<Loader::Item> Loader::items(Transformer& model) const {
  std::map<std::string, Parameter*> parameters;
  model.each([&](const std::string& name, Parameter& p) { parameters[name] = &p; });
  std::vector<Item> items;
  for (FileTensor& tensor : file_tensors(family_, model, uses_names_in_memory(model))) {
    Item item;
    for (const std::string& part : tensor.parts) {
      item.parts.push_back(parameters.at(part));
      item.shapes.push_back(item.parts.back()->shape);
    }
    item.stored = find(tensor.name);
    item.expected = shape_in_file(tensor, item.shapes);
    item.tensor = std::move(tensor);
    items.push_back(std::move(item));
  }
  return items;
}

bool Loader::is_quantized_in_file(const Item& item) const {
  return files_.origin.quantization && is_whole_numbers(*item.stored) &&
         can_be_quantized(item.tensor);
}

WeightSizes Loader::sizes(Transformer& model) const {
  WeightSizes sizes;
  const auto add = [&](std::string_view format, int64_t bytes, bool in_file) {
    sizes.formats[std::string(format)] += bytes;
    if (in_file) sizes.in_file += bytes;
  };
  for (const Item& item : items(model)) {
    if (item.stored == nullptr || (!item.stored->dtype && !is_quantized_in_file(item))) continue;
    const DType dtype = item.stored->dtype.value_or(DType::f32);
    Formats formats = formats_of(model.spec, item, dtype);
    if (is_quantized_in_file(item)) {
      formats.assign(item.parts.size(),
                     dtype == DType::u8 ? WeightFormat::int4 : WeightFormat::int8);
    } else if (stays_in_blocks(model.spec, item)) {
      formats.assign(item.parts.size(), format_as_stored(item.tensor, *item.stored, item.shapes));
    }
    for (size_t i = 0; i < item.parts.size(); ++i) {
      const bool table = is_table(model.spec, item.tensor.parts[i]);
      const Shape& shape = item.shapes[i];
      if (formats[i]) {
        const int64_t group =
            files_.origin.quantization ? files_.origin.quantization->group : loading_.packing.group;
        const PackedWeight weight(*formats[i], shape[0], shape[1],
                                  fovea::is_quantized(*formats[i]) ? group : 32, nullptr);
        add(name_of(*formats[i]), static_cast<int64_t>(weight.bytes()), table);
      } else {
        const DType kept = stays_bf16(item, dtype) ? DType::bf16 : DType::f32;
        int64_t bytes = static_cast<int64_t>(size_of(kept));
        for (const int64_t extent : shape) bytes *= extent;
        add(name_of(kept), bytes, table && kept == dtype);
      }
    }
  }
  return sizes;
}

void Loader::load(Transformer& model) {
  if (model.spec.decoder) layers_ = model.spec.decoder->layers;
  if (loading_.weights == Weights::packed) {
    const WeightSizes all = sizes(model);
    fits_ = all.in_memory() + kReserve <= available_memory();
  }
  for (const Item& item : items(model)) {
    const FileTensor& tensor = item.tensor;
    const StoredTensor* stored = item.stored;
    const bool of_head = tensor.parts[0].starts_with(std::string(model.head_name()) + ".");
    if (loading_.new_head != nullptr && of_head &&
        (stored == nullptr || stored->shape != item.expected)) {
      lacking.insert(lacking.end(), tensor.parts.begin(), tensor.parts.end());
      continue;
    }
    if (stored == nullptr) {
      if (!compute_sinusoids(model.spec, item)) missing_.push_back(tensor.name);
      continue;
    }
    used_.insert(stored->name);
    if (is_quantized_in_file(item)) {
      load_quantized(item);
    } else if (stored->shape != item.expected) {
      misshapen_.push_back(fmt::format("{} is {}, expected {}", tensor.name,
                                       describe(stored->shape), describe(item.expected)));
    } else if (loading_.weights == Weights::in_file) {
      leave_in_file(item);
    } else if (stays_in_blocks(model.spec, item)) {
      load_blocks(model.spec, item);
    } else {
      load_full(model.spec, item);
    }
    if (copied_ > loading_.most_copied) run_queue();
  }
  run_queue();
}

// Sets a table of sinusoids that files of the family may leave out. Returns false if it is another
// tensor.
bool Loader::compute_sinusoids(const Spec& spec, const Item& item) const {
  Parameter& table = *item.parts[0];
  if (table.role != Role::sinusoids || !is_buffer(family_, item.tensor.name)) return false;
  const std::string& name = item.tensor.parts[0];
  const StackSpec& stack = name.starts_with("encoder.") ? *spec.encoder : *spec.decoder;
  initialise(table, name, 0, {.stack = &stack});
  return true;
}

// Returns whether the tensor predicts further tokens, in a family that has such.
bool Loader::predicts_further(const std::string& name) const {
  if (family_.predicts_further && name.starts_with("mtp.")) return true;
  const std::string layers =
      name.starts_with("blk.") ? "blk." : std::string(family_.prefix) + "layers.";  // of GGUF
  if (!family_.predicts_further || !name.starts_with(layers)) return false;
  const std::string number =
      name.substr(layers.size(), name.find('.', layers.size()) - layers.size());
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !number.empty() && number.size() < 6 && std::all_of(number.begin(), number.end(), digit) &&
         std::stoll(number) >= layers_;
}

void Loader::report(std::vector<std::string>& warnings) const {
  std::vector<std::string> unknown;
  for (const StoredTensor& stored : file_.stored()) {
    if (used_.contains(stored.name) || is_buffer(family_, stored.name)) continue;
    if (loading_.new_head != nullptr || stored.name == passed_over_) continue;
    if (used_.contains(decoder_bias_of(stored.name)) || predicts_further(stored.name)) continue;
    unknown.push_back(stored.name);
  }
  std::vector<std::string> wrong;
  if (!missing_.empty())
    wrong.push_back(fmt::format("{} missing: {}", missing_.size(), first_names(missing_)));
  if (!misshapen_.empty())
    wrong.push_back(fmt::format("{} misshapen: {}", misshapen_.size(), first_names(misshapen_)));
  if (!unknown.empty())
    wrong.push_back(fmt::format("{} unknown: {}", unknown.size(), first_names(unknown)));
  if (!wrong.empty()) {
    fail(ErrorKind::BadFile,
         "{}: the tensors do not match the config ({}); expected a {} checkpoint of the config's "
         "sizes",
         folder_, fmt::join(wrong, "; "), family_.model_type);
  }
  warnings.insert(warnings.end(), not_finite_.begin(), not_finite_.end());
}

void Loader::run_queue() {
  queue_.run();
  copied_ = 0;
}

Tensor Loader::checked(const StoredTensor& stored) {
  const Tensor value = file_.tensor(stored.name);
  warn_of_nonfinite(stored, count_nonfinite(value), value.size());
  return value;
}

void Loader::warn_of_nonfinite(const StoredTensor& stored, int64_t bad, int64_t size) {
  if (bad == 0) return;
  not_finite_.insert(
      fmt::format("{}: {} of {} elements of {} are not finite", folder_, bad, size, stored.name));
}

// Returns whether the blocks of a tensor are packed as they are stored: unless another format is
// requested, matrices that would be packed anyway, and the token embedding.
bool Loader::stays_in_blocks(const Spec& spec, const Item& item) const {
  if (loading_.weights != Weights::packed || loading_.packing.format) return false;
  const auto format = format_as_stored(item.tensor, *item.stored, item.shapes);
  if (!format) return false;
  for (size_t i = 0; i < item.parts.size(); ++i) {
    const std::string& name = item.tensor.parts[i];
    const auto packed = packed_format(spec, name, *item.parts[i], WeightFormat::int8);
    if (packed != WeightFormat::int8 && name != "embedding.token") return false;
  }
  return true;
}

void Loader::load_blocks(const Spec& spec, const Item& item) {
  files_.origin.dtypes[item.tensor.name] = DType::f32;
  auto weights = blocks_from_file(item.tensor, *item.stored, item.shapes, file_);
  for (size_t i = 0; i < item.parts.size(); ++i) {
    if (!fits_) weights[i].stay_in_rows();
    item.parts[i]->packed = weights[i];
  }
  const bool table = is_table(spec, item.tensor.parts[0]);
  queue_.add_to_count(std::move(weights), [this, stored = item.stored, table](int64_t bad) {
    warn_of_nonfinite(*stored, bad, elements(stored->shape));
    if (table) file_.release(*stored);
  });
}

// Returns whether a tensor that is not packed stays bf16 in memory.
bool Loader::stays_bf16(const Item& item, DType dtype) const {
  return loading_.weights == Weights::packed && dtype == DType::bf16 &&
         keeps_dtype(item.tensor.stored) &&
         std::all_of(item.parts.begin(), item.parts.end(),
                     [](const Parameter* p) { return reads_bf16(*p); });
}

int64_t Loader::group_of(WeightFormat format) const {
  return fovea::is_quantized(format) ? loading_.packing.group : 32;
}

Loader::Formats Loader::formats_of(const Spec& spec, const Item& item, DType dtype) const {
  Formats formats(item.parts.size());
  if (loading_.weights != Weights::packed) return formats;
  const WeightFormat wanted = loading_.packing.format.value_or(default_format(*item.stored, dtype));
  for (size_t i = 0; i < item.parts.size(); ++i)
    formats[i] = packed_format(spec, item.tensor.parts[i], *item.parts[i], wanted);
  return formats;
}

// Throws Unsupported if a tensor does not have floats.
void Loader::check_floats(const Item& item, DType dtype) const {
  if (dtype != DType::f32 && dtype != DType::bf16 && dtype != DType::f16 && dtype != DType::f64) {
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected fp32, bf16, fp16 or fp64", folder_,
         item.tensor.name, name_of(dtype));
  }
}

// Records the dtype in which a tensor will be saved.
void Loader::save_as(const Item& item, DType dtype) {
  if (dtype == DType::f64) return;
  files_.origin.dtypes[item.tensor.name] = dtype;
  if (dtype != DType::f32) files_.origin.dtype = dtype;
}

void Loader::leave_in_file(const Item& item) {
  const StoredTensor& stored = *item.stored;
  const DType dtype = stored.dtype ? *stored.dtype : file_.tensor(stored.name).dtype();
  check_floats(item, dtype);
  save_as(item, dtype);
  files_.in_file->add(item.tensor, stored, item.shapes);
}

void Loader::load_full(const Spec& spec, const Item& item) {
  const StoredTensor& stored = *item.stored;
  Tensor value = file_.tensor(stored.name);
  const DType dtype = value.dtype();
  check_floats(item, dtype);
  const Formats formats = formats_of(spec, item, dtype);
  const bool all_packed = std::all_of(formats.begin(), formats.end(),
                                      [](const auto& format) { return format.has_value(); });
  // Packing counts NaN and infinity. Converting fp64 could add infinity.
  const bool counted = !all_packed || dtype == DType::f64;
  if (counted) warn_of_nonfinite(stored, count_nonfinite(value), value.size());
  if (loading_.weights != Weights::owned) save_as(item, dtype);
  const bool transposed = item.tensor.stored == Stored::transposed;
  if (all_packed && transposed && stored.contains(value) && dtype != DType::f64)
    return load_columns(item, value, formats);
  const bool stays_half = all_packed && dtype == DType::f16 && keeps_dtype(item.tensor.stored);
  if (dtype == DType::f16 && !stays_half) value = widen_halves(value);
  const auto values =
      from_file(item.tensor, value, item.shapes, stays_half || stays_bf16(item, dtype));
  std::vector<PackedWeight> weights;
  for (size_t i = 0; i < item.parts.size(); ++i) {
    Parameter& parameter = *item.parts[i];
    if (formats[i]) {
      const Tensor rows = parameter.ternary ? rounded_ternary(values[i]) : values[i];
      weights.push_back(packed_later(item, rows, *formats[i]));
      parameter.packed = weights.back();
      parameter.value = {};
    } else {
      const bool copies = loading_.weights == Weights::owned || item.parts.size() > 1;
      parameter.value = copies ? copy(values[i]) : values[i];
    }
  }
  const bool mapped =
      !item.parts[0]->ternary && std::all_of(values.begin(), values.end(),
                                             [&](const Tensor& v) { return stored.contains(v); });
  // What is needed of a table was only counted: few of its rows are read again.
  if (loading_.weights == Weights::packed && (weights.empty() || !mapped)) file_.release(stored);
  if (!weights.empty()) queue(item, std::move(weights), mapped, counted);
}

// Packs the columns of a transposed tensor of the file late.
void Loader::load_columns(const Item& item, const Tensor& value, const Formats& formats) {
  std::vector<PackedWeight> weights;
  int64_t first = 0;
  for (size_t i = 0; i < item.parts.size(); ++i) {
    const int64_t outputs = item.shapes[i][0];
    auto columns =
        std::make_unique<TensorColumns>(value, first, outputs, file_.file_of(*item.stored));
    weights.emplace_back(*formats[i], outputs, item.shapes[i][1], group_of(*formats[i]),
                         std::move(columns));
    if (!fits_) weights.back().stay_in_rows();
    item.parts[i]->packed = weights.back();
    item.parts[i]->value = {};
    first += outputs;
  }
  queue(item, std::move(weights), true, false);
}

// Returns a weight that is packed from `value`: a part of the file, or a copy of one.
PackedWeight Loader::packed_later(const Item& item, const Tensor& value, WeightFormat format) {
  const bool mapped = item.stored->contains(value);
  if (!mapped) copied_ += value.bytes();
  PackedWeight weight(
      format, value.dim(0), value.dim(1), group_of(format),
      std::make_unique<TensorRows>(value, mapped ? file_.file_of(*item.stored) : nullptr));
  if (mapped && !fits_) weight.stay_in_rows();
  return weight;
}

// Queues the weights of a tensor. `mapped`: they are rows of the file. `counted`: their NaN and
// infinities are known already.
void Loader::queue(const Item& item, std::vector<PackedWeight> weights, bool mapped, bool counted) {
  bool rounds = false;
  int64_t size = 0;
  for (const PackedWeight& weight : weights) {
    rounds |= fovea::is_quantized(weight.matrix().format);
    size += weight.matrix().outputs * weight.matrix().width;
  }
  auto report = [this, name = item.tensor.name, stored = item.stored, rounds, size,
                 counted](int64_t bad) {
    if (rounds) check_quantizable(folder_, name, bad, size);
    if (!counted) warn_of_nonfinite(*stored, bad, size);
  };
  if (!mapped || (rounds && fits_))
    queue_.add_to_pack(std::move(weights), std::move(report));
  else
    queue_.add_to_count(std::move(weights), std::move(report));
}

void Loader::load_quantized(const Item& item) {
  const auto values = quantized_from_file(item.tensor, file_, *item.stored, item.shapes,
                                          files_.origin.quantization->group, folder_);
  for (size_t i = 0; i < item.parts.size(); ++i) {
    PackedWeight& weight = item.parts[i]->packed = values[i];
    if (loading_.weights != Weights::packed)
      weight.packed();
    else if (!fits_)
      weight.stay_in_rows();
  }
  const StoredTensor& scales = *file_.find(scale_name(item.stored->name));
  checked(scales);
  used_.insert(scales.name);
  file_.release(*item.stored);
}

std::string name_of_head(const Spec& spec, const Family& family) {
  const auto names_head = [](const NameRule& rule) {
    return rule.ours.starts_with("head.output.");
  };
  if (!family.names.empty() && std::none_of(family.names.begin(), family.names.end(), names_head))
    return "";
  Spec untied = spec;
  untied.head.tied = false;
  const auto model = std::make_unique<Transformer>(untied);  // 40 KB: too large for small stacks
  for (const FileTensor& tensor : file_tensors(family, *model))
    if (tensor.parts[0] == "head.output.weight") return tensor.name;
  return "";
}

}  // namespace fovea::model
