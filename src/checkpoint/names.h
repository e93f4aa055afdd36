#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/transformer.h"

namespace fovea {

// How a tensor lies in the file where we keep [out, in]. transposed: [in, out]. by_head: fused
// parts alternate head by head. batched: with an axis of 1 in front. convolution: [out, in / n, n],
// or [out, in / (n n), n, n] of an image. stacked: of all experts, with an axis for them in front.
// rotary_pairs: each head's rows i and i + n / 2, which rotary positions turn together, as
// neighbours 2 i and 2 i + 1. one_plus: a gain of 1 + w as what it multiplies by.
enum class Stored {
  plain,
  transposed,
  by_head,
  batched,
  convolution,
  image_convolution,
  stacked,
  rotary_pairs,
  one_plus
};

// One rule of a family's table, read from left to right when loading and from right to left when
// saving.
//   {i} {e}  any layer's and expert's number, the same on both sides
//   {a,b}    alternatives; the n-th group on the left goes with the n-th on the right, item by item
//   {a+b}    on the right only: one tensor in the file, these one after the other along the outputs
struct NameRule {
  std::string theirs, ours;
  Stored stored = Stored::plain;
  bool (*when)(const Spec&) = nullptr;  // null = always
};
using Names = std::vector<NameRule>;  // empty: the file uses our own names

// One tensor of a file and the parameters that it holds, in their order along the outputs.
struct FileTensor {
  std::string name;
  Stored stored = Stored::plain;
  std::vector<std::string> parts;
  int64_t group = 0;  // by_head, rotary_pairs: a head's width; convolutions: n; stacked: experts
};

// The file's tensors for a model's parameters, by the rules; Internal if a parameter has no rule.
std::vector<FileTensor> file_tensors(const Names& names, Transformer& model);

// A tensor as the file holds it, from its parts' values: fused and transposed as the rule says.
Tensor to_file(const FileTensor& tensor, const std::vector<Tensor>& parts);

// The way back: the parts, in f32, of these shapes. A tensor that needs no change is not copied.
// With `keep_dtype` they stay in the file's dtype; not for a transposed tensor.
std::vector<Tensor> from_file(const FileTensor& tensor, const Tensor& value,
                              const std::vector<Shape>& shapes, bool keep_dtype = false);

// The shape in the file for parts of these shapes.
Shape shape_in_file(const FileTensor& tensor, const std::vector<Shape>& shapes);

}  // namespace fovea
