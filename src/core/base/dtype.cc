#include "base/dtype.h"

namespace fovea {

std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::bf16: return "bf16";
    case DType::f64: return "fp64";
    case DType::f16: return "fp16";
    case DType::i32: return "int32";
    case DType::i64: return "int64";
    case DType::i8: return "int8";
    case DType::u8: return "uint8";
  }
  return "?";
}

}  // namespace fovea
