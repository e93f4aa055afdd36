#include "kernels/cpu/cpu.h"

namespace fovea {

namespace {

const Kernels kTable = {
    .device = "cpu",
    .gemm = cpu::gemm,
    .packed_linear = cpu::packed_linear,
    .packed_gemm = cpu::packed_gemm,
    .unpack_rows = cpu::unpack_rows,
    .convert = cpu::convert,
    .add = cpu::add,
    .multiply = cpu::multiply,
    .scale = cpu::scale,
    .shift = cpu::shift,
    .softcap = cpu::softcap,
    .softcap_backward = cpu::softcap_backward,
    .activation = cpu::activation,
    .gated_activation = cpu::gated_activation,
    .activation_backward = cpu::activation_backward,
    .elementary = cpu::elementary,
    .elementary_backward = cpu::elementary_backward,
    .minimum = cpu::minimum,
    .minimum_backward = cpu::minimum_backward,
    .clip = cpu::clip,
    .clip_backward = cpu::clip_backward,
    .dropout = cpu::dropout,
    .sum_rows = cpu::sum_rows,
    .layer_norm = cpu::layer_norm,
    .layer_norm_backward = cpu::layer_norm_backward,
    .rms_norm = cpu::rms_norm,
    .rms_norm_backward = cpu::rms_norm_backward,
    .scale_columns = cpu::scale_columns,
    .dynamic_tanh = cpu::dynamic_tanh,
    .dynamic_tanh_backward = cpu::dynamic_tanh_backward,
    .softmax = cpu::softmax,
    .softmax_backward = cpu::softmax_backward,
    .divide_by_sum = cpu::divide_by_sum,
    .divide_by_sum_backward = cpu::divide_by_sum_backward,
    .rotate = cpu::rotate,
    .recurrent_cell = cpu::recurrent_cell,
    .recurrent_cell_backward = cpu::recurrent_cell_backward,
    .unfold = cpu::unfold,
    .unfold_backward = cpu::unfold_backward,
    .copy_columns = cpu::copy_columns,
    .copy_columns_backward = cpu::copy_columns_backward,
    .choose_experts = cpu::choose_experts,
    .first_outside = cpu::first_outside,
    .group_by_expert = cpu::group_by_expert,
    .pick = cpu::pick,
    .pick_backward = cpu::pick_backward,
    .combine = cpu::combine,
    .combine_backward = cpu::combine_backward,
    .embedding = cpu::embedding,
    .embedding_backward = cpu::embedding_backward,
    .attention = cpu::attention,
    .attention_paged = cpu::attention_paged,
    .put_in_pages = cpu::put_in_pages,
    .attention_backward = cpu::attention_backward,
    .attention_weights = cpu::attention_weights,
    .cross_entropy = cpu::cross_entropy,
    .cross_entropy_backward = cpu::cross_entropy_backward,
    .adamw = cpu::adamw,
    .sum = cpu::sum,
    .sum_of_squares = cpu::sum_of_squares,
};

}  // namespace

const Kernels& cpu_kernels() { return kTable; }

}  // namespace fovea
