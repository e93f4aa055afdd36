#include "checkpoint/quantized.h"

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/weight_rows.h"

namespace fovea::model {
namespace {

constexpr const char* kKey = "quantization_config";

// Returns the tensor's description with the outputs as the first axis.
FileTensor untransposed(FileTensor tensor) {
  if (tensor.stored == Stored::transposed) tensor.stored = Stored::plain;
  return tensor;
}

// Replaces the last extent of each shape.
std::vector<Shape> with_width(std::vector<Shape> shapes, int64_t width) {
  for (Shape& shape : shapes) shape.back() = width;
  return shapes;
}

void check_shape(const StoredTensor& stored, const Shape& expected, const std::string& folder) {
  if (stored.shape == expected) return;
  fail(ErrorKind::BadFile, "{}: {} is {}; expected {} for the model's sizes and group_size", folder,
       stored.name, describe(stored.shape), describe(expected));
}

}  // namespace

std::optional<Quantization> take_quantization(nlohmann::json& config, const std::string& path) {
  const auto found = config.find(kKey);
  if (found == config.end() || found->is_null()) return std::nullopt;
  const auto field = [&](const char* key) {
    return found->is_object() && found->contains(key) ? found->at(key) : nlohmann::json();
  };
  // The weights of BitNet's files are full ones, and those of MXFP4 have their own source; both
  // families read the key.
  if (field("quant_method") == "bitnet" || field("quant_method") == "mxfp4") return std::nullopt;
  const nlohmann::json method = field("quant_method"), bits = field("bits"),
                       group = field("group_size");
  if (method != "fovea") {
    fail(ErrorKind::Unsupported,
         "{}: {} has quant_method {}; expected fovea, or a model with full weights", path, kKey,
         brief(method));
  }
  if (bits != 8 && bits != 4)
    fail(ErrorKind::BadFile, "{}: {} has bits {}; expected 8 or 4", path, kKey, brief(bits));
  if (group != 32 && group != 64 && !(group == 0 && bits == 8))
    fail(ErrorKind::BadFile, "{}: {} has group_size {}; expected 32, 64 or, with 8 bits, 0", path,
         kKey, brief(group));
  config.erase(kKey);
  return Quantization{bits == 8 ? WeightFormat::int8 : WeightFormat::int4, group.get<int64_t>()};
}

nlohmann::ordered_json quantization_json(const Quantization& quantization) {
  return {{"quant_method", "fovea"},
          {"bits", bits_of(quantization.format)},
          {"group_size", quantization.group}};
}

void check_quantizable(const std::string& model, const std::string& name, const Tensor& values) {
  check_quantizable(model, name, count_nonfinite(values), values.size());
}

void check_quantizable(const std::string& model, const std::string& name, int64_t nonfinite,
                       int64_t size) {
  if (nonfinite == 0) return;
  fail(ErrorKind::BadFile,
       "{}: {} of {} elements of {} are not finite, which quantised weights cannot store; expected "
       "finite ones",
       model, nonfinite, size, name);
}

std::string scale_name(const std::string& tensor) { return tensor + "_scale"; }

bool can_be_quantized(const FileTensor& tensor) {
  return tensor.stored == Stored::plain || tensor.stored == Stored::transposed ||
         tensor.stored == Stored::by_head || tensor.stored == Stored::rotary_last ||
         tensor.stored == Stored::stacked;
}

std::vector<PackedWeight> quantized_from_file(const FileTensor& tensor, const TensorSource& file,
                                              const StoredTensor& stored,
                                              const std::vector<Shape>& shapes, int64_t group,
                                              const std::string& folder) {
  const FileTensor lying = untransposed(tensor);
  const int64_t width = shapes[0].back();
  const int64_t row = stored.dtype == DType::u8 ? (width + 1) / 2 : width;
  const int64_t size = group_size(group, width);
  const auto rows_shapes = with_width(shapes, row);
  const auto scale_shapes = with_width(shapes, (width + size - 1) / size);
  check_shape(stored, shape_in_file(lying, rows_shapes), folder);
  const StoredTensor* scales = file.find(scale_name(stored.name));
  if (scales == nullptr) {
    fail(ErrorKind::BadFile, "{}: {} has no {}; expected scales for quantised weights", folder,
         stored.name, scale_name(stored.name));
  }
  check_shape(*scales, shape_in_file(lying, scale_shapes), folder);
  if (scales->dtype != DType::f16) {
    fail(ErrorKind::BadFile, "{}: {} is {}; expected F16", folder, scales->name, scales->type);
  }
  const auto rows = from_file(lying, file.tensor(stored.name), rows_shapes, true);
  const auto row_scales = from_file(lying, file.tensor(scales->name), scale_shapes, true);
  const WeightFormat format = stored.dtype == DType::u8 ? WeightFormat::int4 : WeightFormat::int8;
  std::vector<PackedWeight> parts;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (stored.contains(rows[i])) {
      parts.emplace_back(
          format, rows[i].dim(0), width, group,
          std::make_unique<QuantizedRows>(rows[i], row_scales[i], file.file_of(stored)));
    } else {
      parts.emplace_back(rows[i], row_scales[i], width, group);
    }
  }
  return parts;
}

void quantized_to_file(const FileTensor& tensor, const std::vector<PackedWeight>& parts,
                       std::map<std::string, Tensor>& tensors) {
  std::vector<Tensor> rows, scales;
  for (const PackedWeight& part : parts) {
    const PackedWeight::Quantized quantized = part.quantized();
    rows.push_back(quantized.rows);
    scales.push_back(quantized.scales);
  }
  const FileTensor lying = untransposed(tensor);
  tensors[tensor.name] = to_file(lying, rows);
  tensors[scale_name(tensor.name)] = to_file(lying, scales);
}

}  // namespace fovea::model
