#include "open/calibrate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/threads.h"
#include "fovea/core/read_file.h"
#include "open/model_parts.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

// Sums of squares of the inputs of matrices.
class InputSquares {
 public:
  explicit InputSquares(Transformer& model) {
    model.each([&](const std::string& name, const Parameter& p) {
      if (p.shape.size() == 2) sums_[&p] = {name, {}, 0};
    });
  }

  // x [..., in]
  void add(const Parameter& weight, const Tensor& x) {
    Sums& to = sums_.at(&weight);
    const Tensor values = x.dtype() == DType::f32 ? x : convert(x, DType::f32);
    const int64_t width = values.dim(-1), rows = values.size() / width;
    const float* from = values.data_as<float>();
    to.squares.resize(static_cast<size_t>(width));
    to.rows += rows;
    parallel_for(width, 256, [&](int64_t begin, int64_t end) {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t i = begin; i < end; ++i) {
          const double value = from[row * width + i];
          to.squares[static_cast<size_t>(i)] += value * value;
        }
    });
  }

  // The sums of the matrices of a tensor: all experts of a layer, or the first of several matrices
  // with the same inputs. Empty if the tensor is not a matrix or had no inputs.
  ImportanceMatrix::Columns columns_of(const FileTensor& tensor) const {
    ImportanceMatrix::Columns columns;
    const size_t matrices = tensor.stored == Stored::stacked ? tensor.parts.size() : 1;
    for (size_t i = 0; i < matrices; ++i) {
      for (const auto& [parameter, sums] : sums_) {
        if (sums.name != tensor.parts[i]) continue;
        const auto width = static_cast<size_t>(parameter->shape[1]);
        for (size_t k = 0; k < width; ++k)
          columns.sums.push_back(sums.rows == 0 ? 0.0f : static_cast<float>(sums.squares[k]));
        columns.counts.push_back(static_cast<float>(sums.rows));
      }
    }
    const auto& counts = columns.counts;
    const bool any = std::any_of(counts.begin(), counts.end(), [](float n) { return n > 0; });
    return any ? columns : ImportanceMatrix::Columns{};
  }

 private:
  struct Sums {
    std::string name;
    std::vector<double> squares;
    int64_t rows = 0;
  };
  std::map<const Parameter*, Sums> sums_;
};

// Runs `rows` windows of `length` tokens; the head's input is the output of the decoder.
void run(Transformer& model, const int32_t* tokens, int64_t rows, int64_t length,
         InputSquares& squares) {
  const NoGradient off;
  Probe probe;
  probe.product = [&](const Parameter& weight, const Tensor& x) { squares.add(weight, x); };
  Pass pass;
  pass.probe = &probe;
  const Tensor ids = empty({rows, length}, DType::i32);
  std::copy_n(tokens, rows * length, ids.data_as<int32_t>());
  const Tensor hidden = model.hidden(ids, pass);
  const bool tied = model.spec.head.tied;
  squares.add(tied ? model.token_embedding : model.head.output.weight, hidden);
}

}  // namespace

ImportanceMatrix calibrate(const Model& model, const std::vector<FileTensor>& tensors,
                           const std::string& path) {
  constexpr int64_t kLongest = 512, kTokensAtOnce = 2048;
  constexpr size_t kMostBytes = size_t{64} << 20;
  const std::vector<int32_t> tokens = model.tokenizer().encode(read_file(path, kMostBytes));
  const int64_t count = std::ssize(tokens);
  check(count > 0, "{}: no tokens; expected a text", path);
  const int64_t length = std::min({model.spec().context, kLongest, count});
  const int64_t at_once = std::max<int64_t>(1, kTokensAtOnce / length);
  Transformer& transformer = parts_of(model).transformer;
  InputSquares squares(transformer);
  const int64_t windows = count / length;
  for (int64_t n = 0; n < windows; n += at_once)
    run(transformer, tokens.data() + n * length, std::min(at_once, windows - n), length, squares);

  ImportanceMatrix matrix;
  matrix.texts = {path};
  matrix.chunks = windows;
  matrix.chunk_length = length;
  for (const FileTensor& tensor : tensors) {
    auto columns = squares.columns_of(tensor);
    for (const float sum : columns.sums) {
      if (!std::isfinite(sum))
        fail(ErrorKind::BadFile,
             "{}: the inputs of {} are not finite; expected a model with finite values", path,
             tensor.name);
    }
    if (!columns.sums.empty()) matrix.tensors[tensor.name] = std::move(columns);
  }
  return matrix;
}

}  // namespace fovea::model
