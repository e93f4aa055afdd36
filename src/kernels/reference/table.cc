#include "kernels/reference/reference.h"

namespace fovea {

namespace {

const Kernels kTable = {
    .device = "reference",
    .gemm = reference::gemm,
    .packed_linear = reference::packed_linear,
    .packed_gemm = reference::packed_gemm,
    .unpack_rows = reference::unpack_rows,
    .convert = reference::convert,
    .add = reference::add,
    .multiply = reference::multiply,
    .scale = reference::scale,
    .shift = reference::shift,
    .softcap = reference::softcap,
    .softcap_backward = reference::softcap_backward,
    .activation = reference::activation,
    .gated_activation = reference::gated_activation,
    .activation_backward = reference::activation_backward,
    .elementary = reference::elementary,
    .elementary_backward = reference::elementary_backward,
    .minimum = reference::minimum,
    .minimum_backward = reference::minimum_backward,
    .clip = reference::clip,
    .clip_backward = reference::clip_backward,
    .dropout = reference::dropout,
    .sum_rows = reference::sum_rows,
    .layer_norm = reference::layer_norm,
    .layer_norm_backward = reference::layer_norm_backward,
    .rms_norm = reference::rms_norm,
    .rms_norm_backward = reference::rms_norm_backward,
    .scale_columns = reference::scale_columns,
    .dynamic_tanh = reference::dynamic_tanh,
    .dynamic_tanh_backward = reference::dynamic_tanh_backward,
    .softmax = reference::softmax,
    .softmax_backward = reference::softmax_backward,
    .divide_by_sum = reference::divide_by_sum,
    .divide_by_sum_backward = reference::divide_by_sum_backward,
    .rotate = reference::rotate,
    .recurrent_cell = reference::recurrent_cell,
    .recurrent_cell_backward = reference::recurrent_cell_backward,
    .unfold = reference::unfold,
    .unfold_backward = reference::unfold_backward,
    .copy_columns = reference::copy_columns,
    .copy_columns_backward = reference::copy_columns_backward,
    .choose_experts = reference::choose_experts,
    .first_outside = reference::first_outside,
    .group_by_expert = reference::group_by_expert,
    .pick = reference::pick,
    .pick_backward = reference::pick_backward,
    .combine = reference::combine,
    .combine_backward = reference::combine_backward,
    .embedding = reference::embedding,
    .embedding_backward = reference::embedding_backward,
    .attention = reference::attention,
    .attention_paged = reference::attention_paged,
    .put_in_pages = reference::put_in_pages,
    .attention_backward = reference::attention_backward,
    .attention_weights = reference::attention_weights,
    .cross_entropy = reference::cross_entropy,
    .cross_entropy_backward = reference::cross_entropy_backward,
    .adamw = reference::adamw,
    .sum = reference::sum,
    .sum_of_squares = reference::sum_of_squares,
};

}  // namespace

const Kernels& reference_kernels() { return kTable; }

}  // namespace fovea
