#include "checkpoint/names.h"

#include <cstring>
#include <optional>

#include "base/error.h"

namespace fovea {
namespace {

using Alternatives = std::vector<std::string>;

// "a.{x,y}.b" -> {"a.", "{x,y}", ".b"}; {i} stays part of the text around it.
std::vector<std::string> pieces_of(const std::string& pattern) {
  std::vector<std::string> pieces(1);
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] == '{' && pattern.compare(at, 3, "{i}") != 0) {
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

// A pair of names without groups; several of ours where theirs is fused.
struct Expanded {
  std::string theirs;
  std::vector<std::string> ours;
  Stored stored;
};

std::vector<Expanded> expand(const NameRule& rule) {
  const auto left = pieces_of(rule.theirs), right = pieces_of(rule.ours);
  std::vector<Expanded> all{{left[0], {right[0]}, rule.stored}};
  size_t partner = 1;  // the next group on the left
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

// The layer number with which `pattern` is `name`: "" where it has none.
std::optional<std::string> match(const std::string& pattern, const std::string& name) {
  const size_t at = pattern.find("{i}");
  if (at == std::string::npos)
    return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string head = pattern.substr(0, at), tail = pattern.substr(at + 3);
  if (!name.starts_with(head) || !name.ends_with(tail) || name.size() <= head.size() + tail.size())
    return std::nullopt;
  const std::string number = name.substr(at, name.size() - head.size() - tail.size());
  if (number.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  return number;
}

std::string with_layer(std::string pattern, const std::string& number) {
  const size_t at = pattern.find("{i}");
  return at == std::string::npos ? pattern : pattern.replace(at, 3, number);
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

}  // namespace

std::vector<FileTensor> file_tensors(const Names& names, Transformer& model) {
  std::vector<Expanded> rules;
  for (const NameRule& rule : names)
    for (Expanded& e : expand(rule)) rules.push_back(std::move(e));

  std::vector<FileTensor> tensors;
  std::map<std::string, size_t> known;
  model.each([&](const std::string& name, Parameter&) {
    if (rules.empty()) return tensors.push_back({name, Stored::plain, {name}});
    for (const Expanded& rule : rules) {
      for (const std::string& pattern : rule.ours) {
        const auto layer = match(pattern, name);
        if (!layer) continue;
        const std::string theirs = with_layer(rule.theirs, *layer);
        if (known.emplace(theirs, tensors.size()).second) {
          tensors.push_back({theirs, rule.stored, {}});
          for (const std::string& part : rule.ours)
            tensors.back().parts.push_back(with_layer(part, *layer));
        }
        return;
      }
    }
    fail(ErrorKind::Internal, "{}: no rule gives it a name in the file", name);
  });
  return tensors;
}

Shape shape_in_file(const FileTensor& tensor, const std::vector<Shape>& shapes) {
  Shape shape = shapes[0];
  for (size_t i = 1; i < shapes.size(); ++i) shape[0] += shapes[i][0];
  if (tensor.stored == Stored::transposed && shape.size() == 2) std::swap(shape[0], shape[1]);
  return shape;
}

Tensor to_file(const FileTensor& tensor, const std::vector<Tensor>& parts) {
  Tensor whole = parts[0].detach();
  if (parts.size() > 1) {
    Shape shape = whole.shape();
    for (size_t i = 1; i < parts.size(); ++i) shape[0] += parts[i].dim(0);
    whole = empty(shape, parts[0].dtype());
    char* to = whole.data_as<char>();
    for (const Tensor& part : parts) {
      std::memcpy(to, part.data(), part.bytes());
      to += part.bytes();
    }
  }
  return tensor.stored == Stored::transposed && whole.rank() == 2 ? transpose(whole) : whole;
}

std::vector<Tensor> from_file(const FileTensor& tensor, const Tensor& value,
                              const std::vector<Shape>& shapes) {
  Tensor whole = value.dtype() == DType::f32 ? value : convert(value, DType::f32);
  if (tensor.stored == Stored::transposed && whole.rank() == 2) whole = transpose(whole);
  std::vector<Tensor> parts;
  int64_t row = 0;
  for (const Shape& shape : shapes) {
    parts.push_back(whole.rows(row, row + shape[0]));
    row += shape[0];
  }
  return parts;
}

}  // namespace fovea
