// Tensors, gradients, and files of them.

#include "fovea/core/tensor.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <list>

#include "arrays.h"
#include "bindings.h"
#include "call.h"
#include "fovea/core/autograd.h"
#include "fovea/core/error.h"
#include "fovea/core/ops.h"
#include "fovea/core/random.h"
#include "fovea/core/safetensors.h"
#include "tensors.h"
#include "values.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

constexpr std::pair<const char*, DType> kTypes[] = {
    {"float32", DType::f32}, {"bfloat16", DType::bf16}, {"float64", DType::f64},
    {"float16", DType::f16}, {"int32", DType::i32},     {"int64", DType::i64},
    {"int8", DType::i8},     {"uint8", DType::u8}};

std::string shown(const Tensor& t) {
  if (!t) return "Tensor()";
  const std::string kind = fmt::format("{}, {}{}", describe(t.shape()), numpy_name(t.dtype()),
                                       t.wants_gradient() ? ", wants a gradient" : "");
  constexpr int64_t kShown = 1000;
  if (t.size() > kShown) return fmt::format("Tensor({})", kind);
  return fmt::format("Tensor({})\n{}", kind, nb::cast<std::string>(nb::str(array_of(t))));
}

// Lists of numbers, arrays, or anything with DLPack.
Tensor made_tensor(const nb::object& values, const std::optional<std::string>& dtype) {
  const nb::module_ numpy = nb::module_::import_("numpy");
  nb::object array = values;
  const bool foreign = nb::hasattr(values, "__dlpack__") || nb::hasattr(values, "__array__");
  if (!foreign) {
    array = numpy.attr("asarray")(values);
    const std::string kind = nb::cast<std::string>(array.attr("dtype").attr("kind"));
    if (!dtype) array = array.attr("astype")(kind == "f" ? "float32" : "int32");
  }
  const Tensor tensor = tensor_from(array);
  if (!dtype || dtype_of(*dtype) == tensor.dtype()) return tensor;
  const DType type = dtype_of(*dtype);
  const bool integers = type == DType::i32 || type == DType::i64;
  if (integers) return tensor_from(numpy.attr("asarray")(array, *dtype));
  return convert(tensor, type);
}

nb::object exported_tensor(const Tensor& t, const nb::kwargs& how) {
  if (t.wants_gradient())
    throw Error(ErrorKind::InvalidArgument,
                "dlpack: the tensor wants a gradient; expected tensor.detach()");
  using enum nb::dlpack::dtype_code;
  std::vector<size_t> shape(t.shape().begin(), t.shape().end());
  const nb::capsule owner(new Tensor(t), [](void* p) noexcept { delete static_cast<Tensor*>(p); });
  const auto bits =
      static_cast<uint8_t>(8 * t.bytes() / static_cast<size_t>(std::max<int64_t>(t.size(), 1)));
  const bool whole = t.dtype() == DType::i32 || t.dtype() == DType::i64 || t.dtype() == DType::i8;
  const auto code = t.dtype() == DType::bf16 ? Bfloat
                    : t.dtype() == DType::u8 ? UInt
                    : whole                  ? Int
                                             : Float;
  const nb::ndarray<nb::array_api> array(t.data(), shape.size(), shape.data(), owner, nullptr,
                                         {static_cast<uint8_t>(code), bits, 1});
  return nb::cast(array).attr("__dlpack__")(**how);
}

void add_arrays(nb::class_<Tensor>& c) {
  c.def(
       "__init__",
       [](Tensor* self, const nb::object& values, const std::optional<std::string>& dtype) {
         new (self) Tensor(made_tensor(values, dtype));
       },
       nb::arg("values"), nb::arg("dtype") = nb::none(),
       "From numbers in lists (a copy in float32 or int32), or from an array of NumPy or any "
       "object with DLPack, whose memory it shares.")
      .def_prop_ro("shape",
                   [](const Tensor& t) { return nb::tuple(nb::cast(extents_of(t.shape()))); })
      .def_prop_ro("dtype", [](const Tensor& t) { return numpy_name(t.dtype()); })
      .def_prop_ro("size", &Tensor::size)
      .def_prop_ro("ndim", &Tensor::rank)
      .def_prop_ro("nbytes", &Tensor::bytes)
      .def_prop_ro("device", [](const Tensor& t) { return std::string(name_of(t.device())); })
      .def(
          "to", [](const Tensor& t, const std::string& name) { return t.to(device_named(name)); },
          nb::arg("device"), "Returns the tensor on a device, such as \"cpu\".")
      .def(
          "numpy", [](const Tensor& t) { return array_of(t); },
          nb::sig("def numpy(self) -> NDArray[Any]"),
          "Returns a NumPy array that shares the memory; of bfloat16 numbers a copy in float32.")
      .def(
          "__array__",
          [](const Tensor& t, const nb::object& dtype, const nb::object&) {
            const nb::object array = array_of(t);
            return dtype.is_none() ? array : nb::object(array.attr("astype")(dtype));
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack__", &exported_tensor, nb::arg("how"))
      .def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(1, 0); })
      .def("item", &number_of, "Returns the number of a tensor of one element.")
      .def("__float__", &number_of)
      .def("__len__", [](const Tensor& t) { return t.dim(0); });
}

void add_views(nb::class_<Tensor>& c) {
  c.def(
       "view",
       [](const Tensor& t, const std::vector<int64_t>& shape) {
         return t.view(shape_of(shape, t.size()));
       },
       nb::arg("shape"), "Returns the same elements with another shape; -1 = what fits.")
      .def("rows", &Tensor::rows, nb::arg("begin"), nb::arg("end"),
           "Returns a slice of the first axis; it has no gradient.")
      .def("detach", &Tensor::detach, "Returns the same elements without a gradient.")
      .def("copy", [](const Tensor& t) { return copy(t); })
      .def(
          "convert", [](const Tensor& t, const std::string& d) { return convert(t, dtype_of(d)); },
          nb::arg("dtype"), "Returns a copy in another type; it has no gradient.");
}

void add_gradients(nb::class_<Tensor>& c) {
  c.def(
       "want_gradient", [](Tensor& t) { return t.want_gradient(); },
       "Makes this a leaf whose gradient stays after backward(); returns it.")
      .def_prop_ro("wants_gradient", &Tensor::wants_gradient)
      .def_prop_ro(
          "gradient",
          [](const Tensor& t) -> MaybeTensor {
            Tensor gradient = t.gradient();
            return gradient ? MaybeTensor(gradient) : std::nullopt;
          },
          "The gradient of a leaf; None until backward() has reached it.")
      .def("clear_gradient", &Tensor::clear_gradient)
      .def(
          "backward",
          [](const Tensor& t, float factor) {
            const nb::gil_scoped_release unlocked;
            backward(t, factor);
          },
          nb::arg("factor") = 1.0f, "Computes the gradients of the leaves from this number.");
}

void add_operators(nb::class_<Tensor>& c) {
  c.def(
       "__add__", [](const Tensor& a, const Tensor& b) { return add(a, b); }, nb::is_operator())
      .def(
          "__add__", [](const Tensor& a, float b) { return shift(a, b); }, nb::is_operator())
      .def(
          "__radd__", [](const Tensor& a, float b) { return shift(a, b); }, nb::is_operator())
      .def(
          "__sub__", [](const Tensor& a, const Tensor& b) { return subtract(a, b); },
          nb::is_operator())
      .def(
          "__sub__", [](const Tensor& a, float b) { return shift(a, -b); }, nb::is_operator())
      .def(
          "__rsub__", [](const Tensor& a, float b) { return shift(scale(a, -1), b); },
          nb::is_operator())
      .def(
          "__mul__", [](const Tensor& a, const Tensor& b) { return multiply(a, b); },
          nb::is_operator())
      .def(
          "__mul__", [](const Tensor& a, float b) { return scale(a, b); }, nb::is_operator())
      .def(
          "__rmul__", [](const Tensor& a, float b) { return scale(a, b); }, nb::is_operator())
      .def(
          "__truediv__", [](const Tensor& a, float b) { return scale(a, 1 / b); },
          nb::is_operator())
      .def("__neg__", [](const Tensor& a) { return scale(a, -1); })
      .def("__repr__", &shown);
}

void add_functions(nb::module_& module) {
  module.def(
      "empty",
      [](const std::vector<int64_t>& s, const std::string& d) {
        return empty(shape_of(s), dtype_of(d));
      },
      nb::arg("shape"), nb::arg("dtype") = "float32");
  module.def("empty_like", &empty_like, nb::arg("x"));
  module.def(
      "zeros",
      [](const std::vector<int64_t>& s, const std::string& d) {
        return zeros(shape_of(s), dtype_of(d));
      },
      nb::arg("shape"), nb::arg("dtype") = "float32");
  module.def(
      "full",
      [](const std::vector<int64_t>& s, double value, const std::string& d) {
        return full(shape_of(s), value, dtype_of(d));
      },
      nb::arg("shape"), nb::arg("value"), nb::arg("dtype") = "float32");
  module.def(
      "normal",
      [](const std::vector<int64_t>& s, float deviation, uint64_t seed, uint32_t number) {
        return normal(shape_of(s), deviation, seed, number);
      },
      nb::arg("shape"), nb::arg("deviation"), nb::arg("seed"), nb::arg("number") = 0,
      "Returns numbers of the normal distribution; the same for the same seed and number.");
}

void add_tape(nb::module_& module) {
  module.def("clear_tape", &clear_tape, "Discards the recorded ops of this thread.");
  module.def("recording", &recording, "Returns whether ops of this thread are recorded.");
  module.def(
      "recompute",
      [](const nb::object& layer) {
        const Shared function = shared(layer);
        return recompute([function] {
          const nb::gil_scoped_acquire locked;
          const nb::object results = (*function)();
          if (nb::isinstance<Tensor>(results))
            return std::vector<Tensor>{nb::cast<Tensor>(results)};
          return nb::cast<std::vector<Tensor>>(results);
        });
      },
      nb::arg("layer"),
      "Runs layer() and returns its tensors; the backward pass runs it again instead of keeping "
      "intermediate results.");
}

void add_memory_and_files(nb::module_& module) {
  module.def(
      "tensor_memory",
      [] {
        const MemoryUse use = tensor_memory();
        nb::dict bytes;
        bytes["live"] = use.live;
        bytes["peak"] = use.peak;
        bytes["held"] = use.held;
        return bytes;
      },
      "Returns the bytes in tensors: live, peak, and held for reuse.");
  module.def("reset_peak_memory", &reset_peak_memory);
  module.def(
      "read_safetensors",
      [](const std::string& path) { return call([path] { return read_safetensors(path); }); },
      nb::arg("path"), "Returns the tensors of a file, which are read-only.");
  module.def(
      "write_safetensors",
      [](const std::string& path, const std::map<std::string, Tensor>& tensors) {
        call([=] { write_safetensors(path, tensors); });
      },
      nb::arg("path"), nb::arg("tensors"));
}

// Turns recording off between __enter__ and __exit__.
struct RecordingOff {
  RecordingOff() = default;
  RecordingOff(const RecordingOff&) = delete;
  std::list<NoGradient> scopes;
};

void add_scopes(nb::module_& module) {
  nb::class_<RecordingOff>(module, "no_gradient",
                           "Turns recording off: with fovea.no_gradient(): ...")
      .def(nb::init<>())
      .def("__enter__", [](RecordingOff& s) { s.scopes.emplace_back(); })
      .def("__exit__", [](RecordingOff& s, const nb::args&) { s.scopes.pop_back(); });
  nb::class_<Random>(module, "Random", "Random numbers that depend only on a seed (Philox).")
      .def(
          "__init__",
          [](Random* self, uint64_t seed, const std::string& stream, uint32_t substream) {
            new (self) Random(seed,
                              one_of<Stream>("stream", stream,
                                             {{"init", Stream::init},
                                              {"shuffle", Stream::shuffle},
                                              {"dropout", Stream::dropout},
                                              {"sampling", Stream::sampling},
                                              {"moments", Stream::moments}}),
                              substream);
          },
          nb::arg("seed"), nb::arg("stream") = "sampling", nb::arg("substream") = 0)
      .def("word", &Random::word)
      .def("uniform", [](Random& r) { return r.uniform(); })
      .def("uniform_double", &Random::uniform_double)
      .def("normal", &Random::normal);
}

}  // namespace

DType dtype_of(const std::string& name) {
  for (const auto& [each, type] : kTypes)
    if (name == each) return type;
  if (name == "fp32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  throw FieldError(ErrorKind::InvalidArgument, "dtype",
                   fmt::format("\"{}\"; expected float32, bfloat16, float64, float16, int32, "
                               "int64, int8 or uint8",
                               name));
}

std::string numpy_name(DType type) {
  for (const auto& [name, each] : kTypes)
    if (each == type) return name;
  return "";
}

Shape shape_of(const std::vector<int64_t>& extents, int64_t size) {
  Shape shape(extents.begin(), extents.end());
  const auto open = std::find(shape.begin(), shape.end(), -1);
  if (size < 0 || open == shape.end()) return shape;
  *open = 1;
  const int64_t others = elements(shape);
  *open = others == 0 ? 0 : size / others;
  return shape;
}

std::vector<int64_t> extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

void add_tensor(nb::module_& module) {
  nb::class_<Tensor> c(
      module, "Tensor",
      "A contiguous, row-major array of numbers. Ops on tensors that want a gradient "
      "are recorded, and backward() computes it.");
  add_arrays(c);
  add_views(c);
  add_gradients(c);
  add_operators(c);
  add_functions(module);
  add_tape(module);
  add_memory_and_files(module);
  add_scopes(module);
}

}  // namespace fovea::python
