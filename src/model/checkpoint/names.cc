#include "checkpoint/names.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/math.h"

namespace fovea::model {
namespace {

using Alternatives = std::vector<std::string>;

// Returns whether the pattern has a placeholder for a layer ({i}) or an expert ({e}) at `at`.
bool is_number_at(const std::string& pattern, size_t at) {
  return pattern.compare(at, 3, "{i}") == 0 || pattern.compare(at, 3, "{e}") == 0;
}

// Splits a pattern: "a.{x,y}.b" -> {"a.", "{x,y}", ".b"}; {i} and {e} stay part of the text around
// them.
std::vector<std::string> pieces_of(const std::string& pattern) {
  std::vector<std::string> pieces(1);
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '{' && !is_number_at(pattern, at)) {
      const size_t end = pattern.find('}', at) + 1;
      pieces.push_back(pattern.substr(at, end - at));
      pieces.emplace_back();
      at = end;
    } else {
      pieces.back() += pattern[at++];
    }
  }
  return pieces;
}

Alternatives items_of(const std::string& group) {
  Alternatives items(1);
  for (const char c : group.substr(1, group.size() - 2)) {
    if (c == ',' || c == '+')
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

// The names of a rule, without groups. `ours` has several names if the file's tensor is fused.
struct Expanded {
  std::string theirs;
  std::vector<std::string> ours;
  Stored stored;
};

std::vector<Expanded> expand(const NameRule& rule) {
  const auto left = pieces_of(rule.theirs), right = pieces_of(rule.ours);
  std::vector<Expanded> all{{left[0], {right[0]}, rule.stored}};
  size_t partner = 1;  // index of the next group on the left
  for (size_t g = 1; g < right.size(); g += 2) {
    const Alternatives ours = items_of(right[g]);
    const bool fused = right[g].find('+') != std::string::npos;
    std::vector<Expanded> next;
    for (const Expanded& so_far : all) {
      if (fused) {
        next.push_back({so_far.theirs, {}, so_far.stored});
        for (const auto& item : ours)
          next.back().ours.push_back(so_far.ours[0] + item + right[g + 1]);
        continue;
      }
      const Alternatives theirs = items_of(left[partner]);
      for (size_t n = 0; n < ours.size(); ++n) {
        next.push_back(so_far);
        next.back().theirs += theirs[n] + left[partner + 1];
        for (auto& name : next.back().ours) name += ours[n] + right[g + 1];
      }
    }
    if (!fused) partner += 2;
    all = std::move(next);
  }
  return all;
}

// The numbers in place of {i} and {e}, as digits; empty if the pattern lacks the placeholder.
struct Numbers {
  std::string layer, expert;
};

std::optional<Numbers> match(const std::string& pattern, const std::string& name) {
  Numbers numbers;
  size_t n = 0;
  for (size_t p = 0; p < pattern.size();) {
    if (!is_number_at(pattern, p)) {
      if (n >= name.size() || name[n] != pattern[p]) return std::nullopt;
      ++n, ++p;
      continue;
    }
    std::string& number = pattern[p + 1] == 'i' ? numbers.layer : numbers.expert;
    while (n < name.size() && name[n] >= '0' && name[n] <= '9') number += name[n++];
    if (number.empty()) return std::nullopt;
    p += 3;
  }
  return n == name.size() ? std::optional(numbers) : std::nullopt;
}

std::string with_numbers(std::string pattern, const Numbers& numbers) {
  for (const auto& [mark, number] : {std::pair("{i}", numbers.layer), {"{e}", numbers.expert}})
    if (const size_t at = pattern.find(mark); at != std::string::npos)
      pattern.replace(at, 3, number);
  return pattern;
}

Tensor transpose(const Tensor& x) {  // [R, C] -> [C, R]
  const int64_t rows = x.dim(0), columns = x.dim(1);
  Tensor y = empty({columns, rows});
  const float* from = x.data_as<float>();
  float* to = y.data_as<float>();
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t r = 0; r < rows; ++r) to[c * rows + r] = from[r * columns + c];
  return y;
}

bool is_minus_exp(Stored stored) {
  return stored == Stored::minus_exp || stored == Stored::minus_exp_column;
}

bool alternates(Stored stored) {
  return stored == Stored::by_head || stored == Stored::by_query_head ||
         stored == Stored::by_delta_head || stored == Stored::by_quarter;
}

// Calls move(part, row, row in the file, number of rows) for fused parts in the file's order: each
// has `groups` equal runs of rows; the first run of each part is followed by the second of each.
template <class Move>
void each_run(const std::vector<int64_t>& rows, int64_t groups, Move&& move) {
  int64_t in_file = 0;
  for (int64_t group = 0; group < groups; ++group) {
    for (size_t part = 0; part < rows.size(); ++part) {
      const int64_t run = rows[part] / groups;
      move(part, group * run, in_file, run);
      in_file += run;
    }
  }
}

// Moves the first rows of each head after its other rows.
Tensor turn_heads(const Tensor& x, int64_t head_width, int64_t first) {
  Tensor y = empty(x.shape(), x.dtype());
  const size_t row = x.bytes() / static_cast<size_t>(x.dim(0));
  const size_t head = static_cast<size_t>(head_width) * row,
               moved = static_cast<size_t>(first) * row;
  for (size_t at = 0; at < x.bytes(); at += head) {
    const char* const from = x.data_as<char>() + at;
    std::rotate_copy(from, from + moved, from + head, y.data_as<char>() + at);
  }
  return y;
}

// Transposes the matrix of each head: [H R, C] -> [H C, R].
Tensor transpose_heads(const Tensor& x, int64_t heads) {
  const int64_t rows = x.dim(0) / heads, columns = x.dim(1);
  Tensor y = empty({heads * columns, rows});
  for (int64_t h = 0; h < heads; ++h) {
    const Tensor head = transpose(x.rows(h * rows, (h + 1) * rows));
    std::copy_n(head.data_as<float>(), head.size(), y.data_as<float>() + h * head.size());
  }
  return y;
}

// Reorders the rotated rows of each head: from [first half, second half] to pairs, or back.
Tensor swap_pairs(const Tensor& x, int64_t head_width, int64_t rotated, bool to_neighbours) {
  Tensor y = empty(x.shape(), x.dtype());
  const size_t row = x.bytes() / static_cast<size_t>(x.dim(0));
  for (int64_t halved = 0; halved < x.dim(0); ++halved) {
    const int64_t in_head = halved % head_width, head = halved - in_head, half = rotated / 2;
    const int64_t paired = in_head < rotated ? head + in_head % half * 2 + in_head / half : halved;
    const int64_t from = to_neighbours ? halved : paired, to = to_neighbours ? paired : halved;
    std::memcpy(y.data_as<char>() + static_cast<size_t>(to) * row,
                x.data_as<char>() + static_cast<size_t>(from) * row, row);
  }
  return y;
}

// The inverse of without_keys(): the parts with zeros, as many as the last part, before it.
Tensor with_zero_keys(const std::vector<Tensor>& parts) {
  std::vector<float> all;
  for (size_t i = 0; i < parts.size(); ++i) {
    const float* values = parts[i].data_as<float>();
    if (i + 1 == parts.size()) all.resize(all.size() + static_cast<size_t>(parts[i].size()));
    all.insert(all.end(), values, values + parts[i].size());
  }
  return tensor_of(all, {std::ssize(all)});
}

// Returns the parts of a bias without that of the keys. A constant in all scores of a query has no
// effect, so that they need not be zeros.
std::vector<Tensor> without_keys(const Tensor& whole, const std::vector<Shape>& shapes) {
  std::vector<Tensor> parts;
  int64_t row = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (i + 1 == shapes.size()) row += shapes[i][0];
    parts.push_back(whole.rows(row, row + shapes[i][0]));
    row += shapes[i][0];
  }
  return parts;
}

// Returns the transposes of equal parts, which lie one below the other.
std::vector<Tensor> transposed_parts(const Tensor& whole, const std::vector<Shape>& shapes) {
  std::vector<Tensor> parts;
  for (int64_t i = 0, rows = shapes[0][1]; i < std::ssize(shapes); ++i)
    parts.push_back(transpose(whole.rows(i * rows, (i + 1) * rows)));
  return parts;
}

// The columns of experts: calls move(part, row, column, element in the file) for each element of
// the parts, of which each expert has equally many.
template <class Move>
void each_column(const std::vector<Shape>& shapes, int64_t experts, Move&& move) {
  const int64_t parts = std::ssize(shapes) / experts, rows = shapes[0][0];
  const int64_t width = shapes[0].size() == 2 ? shapes[0][1] : 1;
  for (int64_t i = 0; i < std::ssize(shapes); ++i)
    for (int64_t column = 0; column < width; ++column)
      for (int64_t row = 0; row < rows; ++row)
        move(static_cast<size_t>(i), row * width + column,
             ((i / parts * width + column) * rows + row) * parts + i % parts);
}

Tensor columns_of_experts(const std::vector<Tensor>& parts, const FileTensor& tensor) {
  std::vector<Shape> shapes;
  for (const Tensor& part : parts) shapes.push_back(part.shape());
  const Tensor whole = empty(shape_in_file(tensor, shapes));
  each_column(shapes, tensor.group, [&](size_t part, int64_t from, int64_t to) {
    whole.data_as<float>()[to] = parts[part].data_as<float>()[from];
  });
  return whole;
}

std::vector<Tensor> experts_of_columns(const Tensor& whole, const std::vector<Shape>& shapes,
                                       int64_t experts) {
  std::vector<Tensor> parts;
  for (const Shape& shape : shapes) parts.push_back(empty(shape));
  each_column(shapes, experts, [&](size_t part, int64_t to, int64_t from) {
    parts[part].data_as<float>()[to] = whole.data_as<float>()[from];
  });
  return parts;
}

template <class F>
Tensor mapped(const Tensor& x, const F& f) {
  Tensor y = empty(x.shape());
  for (int64_t i = 0; i < x.size(); ++i) y.data_as<float>()[i] = f(x.data_as<float>()[i]);
  return y;
}

std::vector<int64_t> rows_in(const std::vector<Shape>& shapes) {
  std::vector<int64_t> rows;
  for (const Shape& shape : shapes) rows.push_back(shape[0]);
  return rows;
}

// Returns the number of rows of a head that RoPE rotates, for kinds that reorder them; else 0.
int64_t rotated_rows(Stored stored, const Transformer& model) {
  if (stored == Stored::rotary_last) return model.spec.decoder->latent.rotary;
  if (stored != Stored::rotary_pairs) return 0;
  const StackSpec& stack = model.spec.decoder ? *model.spec.decoder : *model.spec.encoder;
  const float share = stack.position.kind == PositionKind::rotary ? stack.position.rotary.share : 1;
  return static_cast<int64_t>(static_cast<float>(stack.attention.head_width) * share);
}

int64_t group_of(Stored stored, const Transformer& model) {
  const Spec& spec = model.spec;
  const auto attention = [&] { return (spec.decoder ? spec.decoder : spec.encoder)->attention; };
  switch (stored) {
    case Stored::by_head: return attention().kv_heads;
    case Stored::by_query_head:
    case Stored::heads:
    case Stored::heads_transposed: return attention().heads;
    case Stored::by_delta_head: return spec.decoder->delta.key_heads;
    case Stored::by_quarter: return 4;
    case Stored::rotary_pairs:
    case Stored::swapped_halves: return attention().head_width;
    case Stored::rotary_last: return attention().head_width + spec.decoder->latent.rotary;
    case Stored::convolution: return 3;
    case Stored::image_convolution: return spec.input.patch;
    case Stored::norm_groups: return spec.decoder->state_space.norm_groups;
    case Stored::column_by_column:
    case Stored::stacked: return (spec.decoder ? spec.decoder : spec.encoder)->ffn.experts.count;
    default: return 0;
  }
}

}  // namespace

std::vector<std::string> names_in_file(const Names& names) {
  std::vector<std::string> all;
  for (const NameRule& rule : names)
    for (Expanded& expanded : expand(rule)) {
      std::string& name = all.emplace_back(std::move(expanded.theirs));
      if (const size_t expert = name.find("{e}"); expert != name.npos)
        name.replace(expert, 3, "{i}");
    }
  return all;
}

std::vector<FileTensor> file_tensors(const Names& names, Transformer& model) {
  std::vector<Expanded> rules;
  for (const NameRule& rule : names) {
    if (rule.when != nullptr && !rule.when(model.spec)) continue;
    for (Expanded& e : expand(rule)) rules.push_back(std::move(e));
  }

  std::vector<FileTensor> tensors;
  std::map<std::string, size_t> known;
  model.each([&](const std::string& name, Parameter& p) {
    if (is_of_adapter(p.role)) return;
    if (rules.empty()) return tensors.push_back({name, Stored::plain, {name}});
    for (const Expanded& rule : rules) {
      for (const std::string& pattern : rule.ours) {
        const auto numbers = match(pattern, name);
        if (!numbers) continue;
        const std::string theirs = with_numbers(rule.theirs, *numbers);
        const auto [at, fresh] = known.emplace(theirs, tensors.size());
        if (fresh)
          tensors.push_back({theirs,
                             rule.stored,
                             {},
                             group_of(rule.stored, model),
                             rotated_rows(rule.stored, model)});
        auto& parts = tensors[at->second].parts;
        if (std::find(parts.begin(), parts.end(), name) != parts.end()) return;
        for (const std::string& part : rule.ours) parts.push_back(with_numbers(part, *numbers));
        return;
      }
    }
    fail(ErrorKind::Internal, "{}: no rule names it in the file", name);
  });
  return tensors;
}

Shape shape_in_file(const FileTensor& tensor, const std::vector<Shape>& shapes) {
  Shape shape = shapes[0];
  const int64_t n = tensor.group;
  if (tensor.stored == Stored::transposed_parts) {
    const auto parts = std::ssize(shapes);
    return {parts * shape[1], shape[0]};
  }
  for (size_t i = 1; i < shapes.size(); ++i) shape[0] += shapes[i][0];
  switch (tensor.stored) {
    case Stored::transposed:
      if (shape.size() == 2) std::swap(shape[0], shape[1]);
      break;
    case Stored::stacked:
      shape = shape.size() == 2 ? Shape{n, shape[0] / n, shape[1]} : Shape{n, shape[0] / n};
      break;
    case Stored::column_by_column:
      shape = shape.size() == 2 ? Shape{n, shape[1], shape[0] / n} : Shape{n, shape[0] / n};
      break;
    case Stored::heads: shape = {n, shape[0] / n, shape[1]}; break;
    case Stored::heads_transposed: shape = {n, shape[1], shape[0] / n}; break;
    case Stored::batched:
      shape.push_back(1);
      std::rotate(shape.begin(), shape.end() - 1, shape.end());
      break;
    case Stored::flattened: shape = {shape[1]}; break;
    case Stored::column:
    case Stored::minus_exp_column: shape.push_back(1); break;
    case Stored::norm_groups: shape = {n, shape[0] / n}; break;
    case Stored::scalar: shape = {}; break;
    case Stored::keyless: shape[0] += shapes.back()[0]; break;
    case Stored::convolution:
      if (shape.size() == 2) shape = {shape[0], shape[1] / n, n};
      break;
    case Stored::column_convolution: shape = {shape[0], 1, shape[1]}; break;
    case Stored::image_convolution:
      if (shape.size() == 2) shape = {shape[0], shape[1] / (n * n), n, n};
      break;
    default: break;
  }
  return shape;
}

Tensor to_file(const FileTensor& tensor, const std::vector<Tensor>& parts) {
  if (tensor.stored == Stored::keyless) return with_zero_keys(parts);
  if (tensor.stored == Stored::column_by_column) return columns_of_experts(parts, tensor);
  if (tensor.stored == Stored::transposed_parts) {
    std::vector<Tensor> transposed;
    for (const Tensor& part : parts) transposed.push_back(transpose(part));
    return to_file({tensor.name, Stored::plain, tensor.parts}, transposed);
  }
  Tensor whole = parts[0].detach();
  std::vector<Shape> shapes;
  for (const Tensor& part : parts) shapes.push_back(part.shape());
  if (parts.size() > 1) {
    Shape shape = whole.shape();
    for (size_t i = 1; i < parts.size(); ++i) shape[0] += parts[i].dim(0);
    whole = empty(shape, parts[0].dtype());
    const size_t row = whole.bytes() / static_cast<size_t>(shape[0]);
    const auto move = [&](size_t part, int64_t from, int64_t to, int64_t rows) {
      std::memcpy(whole.data_as<char>() + static_cast<size_t>(to) * row,
                  parts[part].data_as<char>() + static_cast<size_t>(from) * row,
                  static_cast<size_t>(rows) * row);
    };
    int64_t at = 0;
    if (alternates(tensor.stored)) {
      each_run(rows_in(shapes), tensor.group, move);
    } else {
      for (size_t part = 0; part < parts.size(); at += parts[part++].dim(0))
        move(part, 0, at, parts[part].dim(0));
    }
  }
  if (tensor.stored == Stored::transposed && whole.rank() == 2) return transpose(whole);
  if (tensor.stored == Stored::rotary_pairs)
    return swap_pairs(whole, tensor.group, tensor.rotated, true);
  if (tensor.stored == Stored::swapped_halves)
    return turn_heads(whole, tensor.group, tensor.group / 2);
  if (tensor.stored == Stored::rotary_last) return turn_heads(whole, tensor.group, tensor.rotated);
  if (tensor.stored == Stored::heads_transposed) whole = transpose_heads(whole, tensor.group);
  if (tensor.stored == Stored::one_plus) return mapped(whole, [](float x) { return x + 1; });
  if (is_minus_exp(tensor.stored))
    whole = mapped(whole, [](float x) { return static_cast<float>(-math::exp(double{x})); });
  return whole.view(shape_in_file(tensor, shapes));
}

std::vector<Tensor> from_file(const FileTensor& tensor, const Tensor& value,
                              const std::vector<Shape>& shapes, bool keep_dtype) {
  Tensor whole = keep_dtype || value.dtype() == DType::f32 ? value : convert(value, DType::f32);
  if (tensor.stored == Stored::transposed && whole.rank() == 2) whole = transpose(whole);
  if (tensor.stored == Stored::rotary_pairs)
    whole = swap_pairs(whole, tensor.group, tensor.rotated, false);
  if (tensor.stored == Stored::swapped_halves)
    whole = turn_heads(whole, tensor.group, tensor.group / 2);
  if (tensor.stored == Stored::rotary_last)
    whole = turn_heads(whole, tensor.group, tensor.group - tensor.rotated);
  if (tensor.stored == Stored::heads_transposed)
    whole = transpose_heads(whole.view({whole.dim(0) * whole.dim(1), whole.dim(2)}), tensor.group);
  if (tensor.stored == Stored::one_plus) whole = mapped(whole, [](float x) { return x - 1; });
  if (is_minus_exp(tensor.stored)) whole = mapped(whole, [](float x) { return math::log(-x); });
  if (tensor.stored == Stored::keyless) return without_keys(whole, shapes);
  if (tensor.stored == Stored::column_by_column)
    return experts_of_columns(whole, shapes, tensor.group);
  if (tensor.stored == Stored::transposed_parts) return transposed_parts(whole, shapes);
  if (shapes.size() == 1) return {whole.view(shapes[0])};
  if (tensor.stored == Stored::stacked) {
    const int64_t rows = whole.dim(0) * whole.dim(1);
    whole = whole.view(whole.rank() == 3 ? Shape{rows, whole.dim(2)} : Shape{rows});
  }
  std::vector<Tensor> parts;
  if (alternates(tensor.stored)) {
    for (const Shape& shape : shapes) parts.push_back(empty(shape, whole.dtype()));
    const size_t row = whole.bytes() / static_cast<size_t>(whole.dim(0));
    each_run(rows_in(shapes), tensor.group,
             [&](size_t part, int64_t to, int64_t from, int64_t rows) {
               std::memcpy(parts[part].data_as<char>() + static_cast<size_t>(to) * row,
                           whole.data_as<char>() + static_cast<size_t>(from) * row,
                           static_cast<size_t>(rows) * row);
             });
    return parts;
  }
  int64_t row = 0;
  for (const Shape& shape : shapes) {
    parts.push_back(whole.rows(row, row + shape[0]).view(shape));
    row += shape[0];
  }
  return parts;
}

}  // namespace fovea::model
