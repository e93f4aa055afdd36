#include "base/error.h"
#include "ops/ops.h"
#include "ops/statistics.h"

namespace fovea {

Routing route(const Tensor& logits, const RouteOptions& o, const Tensor& bias) {
  const auto [k, groups, groups_chosen] = o.choice;
  check(logits.rank() == 2 && k > 0 && k <= logits.dim(1),
        "route: {} choices of logits {}; expected [R, E] and 1 to E choices", k, logits.shape());
  const Rows rows = rows_of(logits);
  check(
      groups > 0 && rows.width % groups == 0 && groups_chosen > 0 && groups_chosen <= groups &&
          k <= rows.width / groups * groups_chosen,
      "route: {} choices in {} of {} groups of {} experts; expected equal groups, and at most the "
      "experts of those chosen",
      k, groups_chosen, groups, rows.width);
  check(!bias || bias.shape() == Shape{rows.width},
        "route: bias is {}, logits are {}; expected [E] and [R, E]", bias.shape(), logits.shape());
  const auto scores_of = [&](const Tensor& z) {
    return o.sigmoid ? activation(cast(z, working_type(z)), Activation::sigmoid) : softmax(z);
  };
  Tensor experts = empty({rows.count, k}, DType::i32, logits.device());
  // Without a bias, the order of the scores is that of the logits.
  kernels(logits).choose_experts(experts, bias ? scores_of(logits.detach()) : logits, bias,
                                 o.choice, rows);
  Tensor weights;
  if (o.sigmoid) {
    weights = scores_of(pick(logits, experts));
    if (o.normalise) weights = divide_by_sum(weights);
  } else {
    // The softmax over the chosen logits equals the chosen weights divided by their sum.
    weights = o.normalise ? softmax(pick(logits, experts)) : pick(softmax(logits), experts);
  }
  return {o.scale == 1 ? weights : scale(weights, o.scale), experts};
}

}  // namespace fovea
