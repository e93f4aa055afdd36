#pragma once

#include <map>
#include <string>
#include <vector>

#include "transformer/transformer.h"

namespace fovea::model {

// How the file stores a parameter that fovea keeps as [out, in]. transposed: as [in, out]. by_head:
// fused parts alternate: for each key-value head, its queries, its key and its value.
// by_query_head, by_delta_head: likewise for each query head, or each key head of gated_delta
// layers. by_quarter: fused parts alternate quarter by quarter. batched: with a leading axis of 1.
// column_by_column: all experts, with a leading axis, as [in, out] with fused parts that alternate
// column by column; likewise the biases, as [experts, out].
// convolution: [out, in / n, n], where n is the kernel width. column_convolution: [C, n] as [C, 1,
// n]. image_convolution: [out, in / (n n), n, n]. stacked: all experts, with a leading axis for
// them. flattened: [1, C] as [C]. column: [C] as [C, 1]. scalar: [1] as []. rotary_pairs: rows i
// and i + D / 2 of each head, which RoPE rotates together, are stored as rows 2i and 2i + 1 (D: the
// number of rotated rows of a head). transposed_parts: each part is stored as [in, out], one below
// the other. swapped_halves: rows i and i + D / 2 of each head are exchanged, in a model that
// rotates backwards. rotary_last: the first rows of each head, which latent attention rotates, are
// its last ones. heads: [H D, W] with a leading axis for heads, [H, D, W]. heads_transposed:
// likewise, with the matrix of each head transposed, [H, W, D]. one_plus: the file has the factor 1
// + w instead of the gain w. minus_exp: the file has -exp(x); minus_exp_column: likewise, as a
// column. norm_groups: [C] as [groups, C / groups], for the norms of state_space layers. keyless:
// biases of queries, keys and values, or of keys and values, of which those of keys do not exist:
// the file has zeros before the last part.
enum class Stored {
  plain,
  transposed,
  by_head,
  by_query_head,
  by_delta_head,
  by_quarter,
  batched,
  convolution,
  column_convolution,
  image_convolution,
  stacked,
  column_by_column,
  flattened,
  column,
  scalar,
  rotary_pairs,
  swapped_halves,
  rotary_last,
  heads,
  heads_transposed,
  transposed_parts,
  one_plus,
  minus_exp,
  minus_exp_column,
  norm_groups,
  keyless
};

// One rule of a family's table: names of tensors in the file (`theirs`, on the left) and fovea's
// names of the parameters (`ours`, on the right).
//   {i} {e}  any layer's and expert's number, the same on both sides
//   {a,b}    alternatives; each group on the left matches the group at the same place on the right,
//            item by item
//   {a+b}    on the right only: one tensor in the file holds these in order along the outputs
struct NameRule {
  std::string theirs, ours;
  Stored stored = Stored::plain;
  bool (*when)(const Spec&) = nullptr;  // null = always
};
using Names = std::vector<NameRule>;  // empty: the file uses fovea's own names

// One tensor of a file and the parameters that it holds, in their order along the outputs.
struct FileTensor {
  std::string name;
  Stored stored = Stored::plain;
  std::vector<std::string> parts;
  int64_t group = 0;    // by_head, by_quarter: the number of alternations; rotary_pairs,
                        // swapped_halves, rotary_last: the width of a head; heads: their number;
                        // convolutions: the kernel width; stacked, column_by_column: the number of
                        // experts; norm_groups: the number of groups
  int64_t rotated = 0;  // rotary_pairs, rotary_last: the number of rotated rows of a head
};

// Returns the file's tensors for a model's parameters, by the rules. Adapters are not among them:
// they have their own files. Throws Internal if a parameter has no rule.
std::vector<FileTensor> file_tensors(const Names& names, Transformer& model);

// Returns the names that the rules have on the left, without groups; layers and experts are {i}.
std::vector<std::string> names_in_file(const Names& names);

// Makes the file's tensor from the values of its parts: fused and transposed according to the rule.
Tensor to_file(const FileTensor& tensor, const std::vector<Tensor>& parts);

// The inverse of to_file(): returns the parts, in f32, with the given `shapes`. A tensor that needs
// no change is not copied. With `keep_dtype`, the parts keep the file's dtype; the transposed
// kinds, one_plus and minus_exp(_column) do not support this.
std::vector<Tensor> from_file(const FileTensor& tensor, const Tensor& value,
                              const std::vector<Shape>& shapes, bool keep_dtype = false);

// Returns the shape of the file's tensor, given the shapes of its parts.
Shape shape_in_file(const FileTensor& tensor, const std::vector<Shape>& shapes);

}  // namespace fovea::model
