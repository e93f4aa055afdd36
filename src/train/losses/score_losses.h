#pragma once

// The objectives of models that search, as losses of scores, and what keeps sparse vectors sparse.
// The definitions and defaults are those of sentence-transformers and PyLate. Letters: B queries, K
// candidates of each, of which the first is the positive; N = K - 1 negatives; V vocabulary.

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace fovea::train {

// The mean over the negatives of ((s_0 - s_n) - margin)^2, with the margins [B, N] of a teacher
// (Hofstaetter et al. 2020, arXiv:2010.02666).   scores [B, K] -> [1]
Tensor margin_error(const Tensor& scores, const std::vector<float>& margins);

// temperature^2 times the mean over the queries of KL(softmax(t / temperature) || softmax(s /
// temperature)), where t are the scores of a teacher [B, K].   scores s [B, K] -> [1]
Tensor list_divergence(const Tensor& scores, const std::vector<float>& teacher, float temperature);

// (s - least) / (greatest - least + 1e-8), by the least and the greatest score of each query, as
// PyLate scales them before their divergence.   [B, K] -> [B, K]
Tensor in_unit_interval(const Tensor& scores);

// The mean over the queries of the cross-entropy of softmax(s) and softmax(labels) (Cao et al.
// 2007, ListNet).   scores [B, K], labels [B, K] -> [1]
Tensor list_net_loss(const Tensor& scores, const std::vector<float>& labels);

// LambdaLoss (Wang et al. 2018) with the weights of NDCG-Loss2++ (mu = 10): for all pairs of
// candidates of a query whose labels are l_i > l_j, at the ranks i and j by descending scores, the
// mean of -w_ij log2 sigmoid(s_i - s_j), with
//   w_ij = |G_i - G_j| (10 |1 / D(d) - 1 / D(d + 1)| + |1 / D(i) - 1 / D(j)|),   d = |i - j|
//   G_i = (2^max(l_i, 0) - 1) / (the greatest possible DCG),   D(i) = log2(1 + i)
// 0 if no labels differ.   scores [B, K], labels [B, K] -> [1]
Tensor lambda_loss(const Tensor& scores, const std::vector<float>& labels);

// The mean of (s - label)^2.   scores [B, K], labels [B, K] -> [1]
Tensor score_error(const Tensor& scores, const std::vector<float>& labels);

// The sum over v of the square of the mean over the texts of |w_v| (Paria et al. 2020,
// arXiv:2004.05665, eq. 4), for weights of at least 0: how many products a search needs.
// x [texts, V] -> [1]
Tensor flops_of(const Tensor& x);
// The mean over the texts of the sum over v of |w_v|, for weights of at least 0.
// x [texts, V] -> [1]
Tensor absolute_sum_of(const Tensor& x);

// Returns row b's element columns[b * count + i] as y[b, i].   x [B, K] -> [B, count]
Tensor pick_columns(const Tensor& x, const std::vector<int32_t>& columns);

// The similarities of late interaction (Khattab and Zaharia 2020, eq. 3): the sum over a query's
// vectors of their largest product with a vector of the document; the mean if `mean`. The vectors
// of the next query_counts[i] rows of `queries` are those of query i, and so on.
// queries [rows, C], documents [rows, C] -> [queries, documents]
Tensor late_interactions(const Tensor& queries, const std::vector<int64_t>& query_counts,
                         const Tensor& documents, const std::vector<int64_t>& document_counts,
                         bool mean);

}  // namespace fovea::train
