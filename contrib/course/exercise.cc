// The arithmetic of attention in double, as a student would write it, and the comparison with
// arrays of a file.

#include "course/exercise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/math.h"
#include "base/ordered_json.h"
#include "fovea/core/read_file.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kExerciseBytes = size_t{1} << 20;  // a file typed or printed by a student
constexpr double kTolerance = 1e-3;                 // numbers with three digits are right
constexpr double kHidden = -std::numeric_limits<double>::infinity();

struct Array {
  std::vector<int64_t> shape;
  std::vector<double> values;

  int64_t dim(size_t axis) const { return shape[axis]; }
  double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * shape[1] + column)];
  }
};

Array zeros(std::vector<int64_t> shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return {std::move(shape), std::vector<double>(count)};
}

// Reads nested lists; null is not a number, as NumPy's NaN and infinity become null in JSON.
void read_array(const Json& list, size_t depth, const std::string& name, Array& into) {
  if (!list.is_array()) {
    check(list.is_number() || list.is_boolean() || list.is_null(), "{}: expected numbers", name);
    check(depth == into.shape.size(), "{}: its rows differ in depth; expected one shape", name);
    into.values.push_back(list.is_boolean()  ? (list.get<bool>() ? 1.0 : 0.0)
                          : list.is_number() ? list.get<double>()
                                             : kHidden);
    return;
  }
  const auto size = static_cast<int64_t>(list.size());
  check(size > 0, "{}: has an empty list; expected numbers", name);
  if (depth == into.shape.size() && into.values.empty()) into.shape.push_back(size);
  check(depth < into.shape.size() && into.shape[depth] == size,
        "{}: its rows differ in length; expected one shape", name);
  for (const Json& item : list) read_array(item, depth + 1, name, into);
}

std::optional<Array> array_of(const Json& file, const std::string& name, size_t axes) {
  if (!file.contains(name)) return {};
  Array array;
  read_array(file.at(name), 0, name, array);
  check(array.shape.size() == axes, "{}: has shape [{}]; expected {} axes", name,
        fmt::join(array.shape, ", "), axes);
  return array;
}

void expect_shape(const Array& array, const std::string& name, std::vector<int64_t> shape) {
  check(array.shape == shape, "{}: has shape [{}]; expected [{}]", name,
        fmt::join(array.shape, ", "), fmt::join(shape, ", "));
}

Array product(const Array& a, const Array& b, bool transposed) {
  const int64_t m = a.dim(0), k = a.dim(1), n = b.dim(transposed ? 0 : 1);
  Array c = zeros({m, n});
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) {
        const double x = a.at(i, l), y = transposed ? b.at(j, l) : b.at(l, j);
        if (x != 0) c.values[static_cast<size_t>(i * n + j)] += x * y;
      }
  return c;
}

// softmax over the keys (axis 1); over the queries, a frequent mistake, with `axis` 0.
Array softmax(const Array& scores, int axis = 1) {
  Array p = scores;
  const int64_t rows = scores.dim(0), columns = scores.dim(1);
  const int64_t lines = axis == 1 ? rows : columns, length = axis == 1 ? columns : rows;
  for (int64_t line = 0; line < lines; ++line) {
    const auto at = [&](int64_t i) -> double& {
      return p.values[static_cast<size_t>(axis == 1 ? line * columns + i : i * columns + line)];
    };
    double most = kHidden, sum = 0;
    for (int64_t i = 0; i < length; ++i) most = std::max(most, at(i));
    for (int64_t i = 0; i < length; ++i) {
      at(i) = at(i) == kHidden ? 0 : math::exp(at(i) - most);  // a row without visible keys is zero
      sum += at(i);
    }
    for (int64_t i = 0; i < length; ++i) at(i) = sum > 0 ? at(i) / sum : 0;
  }
  return p;
}

Array scaled_by(Array scores, double factor, const Array* visible) {
  for (size_t i = 0; i < scores.values.size(); ++i) {
    scores.values[i] *= factor;
    if (visible != nullptr && visible->values[i] == 0) scores.values[i] = kHidden;
  }
  return scores;
}

// A wrong result that names its cause.
struct Mistake {
  Array result;
  const char* cause;
};
struct Computed {
  std::string name;
  Array result;
  std::vector<Mistake> mistakes = {};
};

bool close(double a, double b) {
  return a == b || std::abs(a - b) <= kTolerance * std::max(1.0, std::abs(b));
}
bool same(const Array& a, const Array& b) {
  return a.shape == b.shape &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), close);
}

// Attention of one head (Vaswani et al. 2017, eq. 1), each step with its frequent mistakes.
std::vector<Computed> attention_steps(const Array& q, const Array& k, const Array& v,
                                      const Array* seen) {
  const auto width = static_cast<double>(k.dim(1));
  const Array scores = product(q, k, true);                            // [T, S]
  const Array scaled = scaled_by(scores, 1 / std::sqrt(width), seen);  // [T, S]
  const Array weights = softmax(scaled);                               // [T, S]
  const Array unscaled = softmax(scaled_by(scores, 1, seen));
  const Array by_width = softmax(scaled_by(scores, 1 / width, seen));
  const Array open = softmax(scaled_by(scores, 1 / std::sqrt(width), nullptr));
  const Array by_query = softmax(scaled, 0);
  std::vector<Computed> steps = {
      {"scores", scores},
      {"scaled",
       scaled,
       {{scaled_by(scores, 1 / width, seen), "divided by d, not by the root of d"},
        {scores, "not divided by the root of d"}}},
      {"weights", weights, {}},
      {"output", product(weights, v, false), {}}};
  const std::pair<const Array*, const char*> wrong[] = {
      {&unscaled, "the scores are not divided by the root of d"},
      {&by_width, "the scores are divided by d, not by its root"},
      {&by_query, "the softmax runs over the queries: rows must add up to 1, not columns"},
      {&open, "the mask is not applied"}};
  for (const auto& [result, cause] : wrong) {
    steps[2].mistakes.push_back({*result, cause});
    steps[3].mistakes.push_back({product(*result, v, false), cause});
  }
  return steps;
}

Array head_of(const Array& all, int64_t head) {
  Array one = zeros({all.dim(1), all.dim(2)});
  const auto size = one.values.size();
  std::copy_n(all.values.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(head) * size),
              size, one.values.begin());
  return one;
}

// Appends the result of a head, [T, N], to that of the earlier heads, [H, T, N].
void stack_onto(Computed& all, const Computed& one) {
  if (all.name.empty()) {
    all = one;
    all.result.shape.insert(all.result.shape.begin(), 0);
    for (Mistake& mistake : all.mistakes)
      mistake.result.shape.insert(mistake.result.shape.begin(), 1);
    ++all.result.shape[0];
    return;
  }
  const auto append = [](Array& to, const Array& from) {
    to.values.insert(to.values.end(), from.values.begin(), from.values.end());
  };
  append(all.result, one.result);
  ++all.result.shape[0];
  for (size_t i = 0; i < one.mistakes.size(); ++i) {
    append(all.mistakes[i].result, one.mistakes[i].result);
    ++all.mistakes[i].result.shape[0];
  }
}

// Heads side by side: [H, T, D] -> [T, H D].
Array side_by_side(const Array& heads) {
  const int64_t H = heads.dim(0), T = heads.dim(1), D = heads.dim(2);
  Array wide = zeros({T, H * D});
  for (int64_t h = 0; h < H; ++h)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t d = 0; d < D; ++d)
        wide.values[static_cast<size_t>(t * H * D + h * D + d)] =
            heads.values[static_cast<size_t>((h * T + t) * D + d)];
  return wide;
}

std::optional<Array> visible_keys(const Json& file, int64_t T, int64_t S) {
  std::optional<Array> mask = array_of(file, "mask", 2);
  if (mask) expect_shape(*mask, "mask", {T, S});
  if (!file.value("causal", false)) return mask;
  if (!mask) {
    mask = zeros({T, S});
    std::fill(mask->values.begin(), mask->values.end(), 1.0);
  }
  for (int64_t t = 0; t < T; ++t)
    for (int64_t s = t + 1; s < S; ++s) mask->values[static_cast<size_t>(t * S + s)] = 0;
  return mask;
}

std::vector<Computed> one_head(const Json& file) {
  // The example of the course: two queries, three keys of width 3, values of width 2.
  const Array q = array_of(file, "Q", 2).value_or(Array{{2, 3}, {1, 0, 1, 0, 1, 0}});
  const Array k = array_of(file, "K", 2).value_or(Array{{3, 3}, {1, 1, 0, 0, 1, 1, 1, 0, 1}});
  const Array v = array_of(file, "V", 2).value_or(Array{{3, 2}, {1, 2, 3, 0, 0, 1}});
  expect_shape(k, "K", {k.dim(0), q.dim(1)});
  expect_shape(v, "V", {k.dim(0), v.dim(1)});
  const std::optional<Array> seen = visible_keys(file, q.dim(0), k.dim(0));
  return attention_steps(q, k, v, seen ? &*seen : nullptr);
}

std::vector<Computed> several_heads(const Json& file) {
  const Array x = *array_of(file, "X", 2);
  const auto needed = [&](const char* name, size_t axes) {
    std::optional<Array> found = array_of(file, name, axes);
    check(found.has_value(), "{}: not given; X needs W_Q, W_K, W_V [H, C, D] and W_O", name);
    return *found;
  };
  const Array wq = needed("W_Q", 3), wk = needed("W_K", 3), wv = needed("W_V", 3);
  const Array wo = needed("W_O", 2);
  const int64_t T = x.dim(0), H = wq.dim(0);
  expect_shape(wq, "W_Q", {H, x.dim(1), wq.dim(2)});
  expect_shape(wk, "W_K", {H, x.dim(1), wq.dim(2)});
  expect_shape(wv, "W_V", {H, x.dim(1), wv.dim(2)});
  expect_shape(wo, "W_O", {H * wv.dim(2), wo.dim(1)});
  const std::optional<Array> seen = visible_keys(file, T, T);
  std::vector<Computed> steps(7);
  for (int64_t h = 0; h < H; ++h) {
    std::vector<Computed> head = {{"queries", product(x, head_of(wq, h), false)},
                                  {"keys", product(x, head_of(wk, h), false)},
                                  {"values", product(x, head_of(wv, h), false)}};
    for (Computed& step :
         attention_steps(head[0].result, head[1].result, head[2].result, seen ? &*seen : nullptr))
      head.push_back(std::move(step));
    for (size_t i = 0; i < head.size(); ++i) stack_onto(steps[i], head[i]);
  }
  steps.back().name = "heads";
  const Array wide = side_by_side(steps.back().result);
  steps.push_back({"concatenated", wide});
  steps.push_back({"output", product(wide, wo, false), {{wide, "W_O is not applied"}}});
  return steps;
}

// The index of an element of `shape`, such as [1, 0].
std::string index_text(size_t element, const std::vector<int64_t>& shape) {
  std::vector<size_t> index(shape.size());
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = element % static_cast<size_t>(shape[axis]);
    element /= static_cast<size_t>(shape[axis]);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

ExerciseStep compared(const Computed& step, const std::optional<Array>& found) {
  ExerciseStep result{step.name, step.result.shape, found.has_value(), false,
                      "",        step.result.values};
  if (!found) return result;
  if (found->shape != step.result.shape) {
    result.message = fmt::format("has shape [{}]; expected [{}]", fmt::join(found->shape, ", "),
                                 fmt::join(step.result.shape, ", "));
    return result;
  }
  result.right = same(*found, step.result);
  if (result.right) {
    result.message = "right";
    return result;
  }
  size_t worst = 0;
  while (close(found->values[worst], step.result.values[worst])) ++worst;
  result.message = fmt::format("{} is {:.4g}; expected {:.4g}", index_text(worst, found->shape),
                               found->values[worst], step.result.values[worst]);
  for (const Mistake& mistake : step.mistakes)
    if (same(*found, mistake.result))
      return result.message += fmt::format(" ({})", mistake.cause), result;
  return result;
}

}  // namespace

std::vector<ExerciseStep> check_exercise(const std::string& path) {
  Json file;
  try {
    file = parse_ordered_json(read_file(path, kExerciseBytes), path);
  } catch (const JsonFault& fault) {
    throw Error(ErrorKind::BadFile, fault.what());
  }
  if (!file.is_object())
    fail(ErrorKind::BadFile, "{}: is not a JSON object; expected arrays by name, such as Q", path);
  try {
    std::vector<ExerciseStep> steps;
    for (const Computed& step : file.contains("X") ? several_heads(file) : one_head(file))
      steps.push_back(compared(step, array_of(file, step.name, step.result.shape.size())));
    return steps;
  } catch (const Error& error) {
    throw Error(error.kind(), path + ": " + error.what());
  } catch (const Json::exception&) {
    throw Error(ErrorKind::InvalidArgument, path + ": causal: expected true or false");
  }
}

}  // namespace fovea
