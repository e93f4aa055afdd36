#pragma once

// Pools the vectors of a text's tokens into one vector.

#include <string>
#include <vector>

#include "fovea/core/op_options.h"
#include "tensor/tensor.h"

namespace fovea::infer {

// For tokens t = first .. last of a row, in the order of the enumerators: the first token; the
// maximum of each element; the mean; the sum divided by the square root of the number of tokens;
// the mean with weights t + 1; the last token. attention: see attention_pooling().
enum class TokenPooling { cls, max, mean, mean_sqrt_len, weighted_mean, last, attention };

// Parses a name of sentence-transformers; throws BadFile, naming the file and the valid modes, if
// it is unknown.
TokenPooling token_pooling_named(const std::string& name, const std::string& file);

// Returns the name of sentence-transformers.
const char* name_of(TokenPooling mode);
// The modes without trained weights, in the order of the enumerators.
inline constexpr TokenPooling kTokenPoolings[] = {
    TokenPooling::cls,           TokenPooling::max,           TokenPooling::mean,
    TokenPooling::mean_sqrt_len, TokenPooling::weighted_mean, TokenPooling::last};

// Pools the interval `pooled` of each batch row. Throws InvalidArgument if an interval is empty.
// hidden [B, T, C] -> f32 (f64 if hidden is f64) [B, C]; differentiable
Tensor pool_tokens(const Tensor& hidden, TokenPooling mode, const std::vector<Interval>& pooled);

// Pools by learned attention: the sum over t of a_t h_t, where a_t = exp(v . h_t) / sum over the
// tokens s of the interval of exp(v . h_s).
// hidden [B, T, C], vector f32 [C] -> f32 (f64 if hidden is f64) [B, C]; differentiable
Tensor attention_pooling(const Tensor& hidden, const Tensor& vector,
                         const std::vector<Interval>& pooled);

// Concatenates rows: x[i] [B, C] each -> [B, count * C]
Tensor concat_width(const std::vector<Tensor>& x);

// Returns x / sqrt(|x|^2 + 1e-24) for each row, so that zero stays zero. x [B, C] -> [B, C]
Tensor unit_length(const Tensor& x);

}  // namespace fovea::infer
