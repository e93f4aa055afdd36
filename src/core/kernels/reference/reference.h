#pragma once

// The entries of the reference table: naive loops that read every stored type as double, with every
// sum in double. Units are not summed separately: in double, the order of additions hardly affects
// the result.

#include "kernels/kernels.h"

namespace fovea::reference {

void gemm(Out c, In a, In b, In bias, const GemmShape& shape);
void packed_linear(std::span<const PackedProduct> products, In x, int64_t rows);
void packed_gemm(Out c, In a, const PackedMatrix& w, In bias, const GemmShape& shape);
void unpack_rows(Out y, const PackedMatrix& w, Indices rows, int64_t count);
void convert(Out y, In x, int64_t size);
void add(Out y, In a, In b, int64_t size);
void multiply(Out y, In a, In b, int64_t size);
void scale(Out y, In x, float factor, int64_t size);
void shift(Out y, In x, float offset, int64_t size);
void softcap(Out y, In x, float cap, int64_t size);
void softcap_backward(Out dx, In dy, In x, float cap, int64_t size);
void elementary(Out y, In x, Elementary kind, int64_t size);
void elementary_backward(Out dx, In dy, In x, Elementary kind, int64_t size);
void minimum(Out y, In a, In b, int64_t size);
void minimum_backward(Out dx, In dy, In x, In other, int64_t size);
void clip(Out y, In x, float least, float most, int64_t size);
void clip_backward(Out dx, In dy, In x, float least, float most, int64_t size);
void activation(Out y, In x, Activation kind, int64_t size);
void gated_activation(Out y, In x, In factor, Activation kind, int64_t size);
void activation_backward(Out dx, In dy, In x, Activation kind, int64_t size);
void gated_activation_backward(Out dx, Out dfactor, In dy, In x, In factor, Activation kind,
                               int64_t size);
void dropout(Out y, In x, const Dropout& dropout, int64_t size);
void sum_rows(Out y, In x, Rows rows);
double sum(In x, int64_t size);
double sum_of_squares(In x, int64_t size);
void layer_norm(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon,
                Rows rows);
void layer_norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                         NormEpsilon epsilon, Rows rows);
void rms_norm(Out y, Out scale, In x, In weight, float epsilon, Rows rows);
void rms_norm_backward(Out dx, Out dweight, In dy, In x, In scale, In weight, Rows rows);
void scale_columns(Out y, In x, In factors, In bias, Rows rows);
void dynamic_tanh(Out y, In x, In alpha, In weight, In bias, Rows rows);
void dynamic_tanh_backward(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x, In alpha,
                           In weight, Rows rows);
void softmax(Out y, In x, Rows rows);
void softmax_backward(Out dx, In dy, In y, Rows rows);
void divide_by_sum(Out y, In x, Rows rows);
void divide_by_sum_backward(Out dx, In dy, In x, Rows rows);
void rotate(Out y, In x, In cosines, In sines, const Rotation& rotation);
void recurrent_cell(Out h, Out c, Out y, Out kept, In x, In u, In h0, In c0,
                    const CellShape& shape);
void recurrent_cell_backward(const CellGradients& d, In dy, In dh, In dc, In kept, In h0, In c0,
                             In c, const CellShape& shape);
void copy_columns(Out y, In x, const ColumnCopy& copy);
void copy_columns_backward(Out dx, In dy, const ColumnCopy& copy);
void unfold(Out y, In x, const Windows& windows);
void unfold_backward(Out dx, In dy, const Windows& windows);
void choose_experts(Out experts, In scores, In bias, const ExpertChoice& choice, Rows rows);
int64_t first_outside(Indices numbers, int64_t count, int64_t limit);
void group_by_expert(Out rows, Out places, int64_t* counts, Indices choices, int64_t row_count,
                     int64_t k, int64_t experts);
void pick(Out y, In x, Indices columns, int64_t k, Rows rows);
void pick_backward(Out dx, In dy, Indices columns, int64_t k, Rows rows);
void combine(Out y, In z, Indices places, In weights, int64_t choices, Rows rows);
void combine_backward(Out dz, Out dweights, In dy, In z, Indices places, In weights,
                      int64_t choices, Rows rows);
void embedding(Out y, In table, Indices ids, Rows rows);
void embedding_backward(Out dtable, In dy, Indices ids, Rows rows, int64_t entries);
void attention(Out y, Out lse, In q, In k, In v, const AttentionShape& shape);
void attention_paged(Out y, In q, const PagedAttention& shape, const std::vector<PagedText>& spans);
void put_in_pages(std::span<const PageRows> rows);
void attention_backward(Out dq, Out dk, Out dv, Out dbias, In dy, In q, In k, In v, In y, In lse,
                        const AttentionShape& shape);
void attention_weights(Out w, In q, In k, const AttentionShape& shape);
void cross_entropy(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows);
void cross_entropy_backward(Out dlogits, In logits, In lse, Indices targets, In factors,
                            float factor, float smoothing, Rows rows, Classes classes);
void kl_divergence(Out losses, Out lse, Out rest, In logits, Indices top, In log_p,
                   const TopClasses& classes, Rows rows);
void kl_divergence_backward(Out dlogits, In logits, In lse, In rest, Indices top, In log_p,
                            const TopClasses& classes, float factor, Rows rows, Classes columns);
void adamw(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size);
void sgd(Out weight, Out m, In gradient, const Sgd& step, int64_t size);
void lion(Out weight, Out m, In gradient, const Lion& step, int64_t size);
void packed_adamw(Out weight, const PackedMoments& moments, In gradient, const AdamW& step,
                  int64_t size);

}  // namespace fovea::reference
