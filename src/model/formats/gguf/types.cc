#include "formats/gguf/types.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/error.h"
#include "checkpoint/gguf_blocks.h"

namespace fovea::model {
namespace {

using enum FileDType;

// In the order of FileDType, from fp32 on.
constexpr std::array kTypes = {GgufFileType{fp32, "fp32", 0, "F32"},
                               GgufFileType{bf16, "bf16", 32, "BF16"},
                               GgufFileType{fp16, "fp16", 1, "F16"},
                               GgufFileType{q8_0, "q8_0", 7, "Q8_0"},
                               GgufFileType{q6_k, "q6_k", 18, "Q6_K"},
                               GgufFileType{q5_k_m, "q5_k_m", 17, "Q5_K"},
                               GgufFileType{q5_k_s, "q5_k_s", 16, "Q5_K"},
                               GgufFileType{q5_1, "q5_1", 9, "Q5_1"},
                               GgufFileType{q5_0, "q5_0", 8, "Q5_0"},
                               GgufFileType{q4_k_m, "q4_k_m", 15, "Q4_K"},
                               GgufFileType{q4_k_s, "q4_k_s", 14, "Q4_K"},
                               GgufFileType{q4_1, "q4_1", 3, "Q4_1"},
                               GgufFileType{q4_0, "q4_0", 2, "Q4_0"},
                               GgufFileType{iq4_nl, "iq4_nl", 25, "IQ4_NL"},
                               GgufFileType{iq4_xs, "iq4_xs", 30, "IQ4_XS"},
                               GgufFileType{q3_k_l, "q3_k_l", 13, "Q3_K"},
                               GgufFileType{q3_k_m, "q3_k_m", 12, "Q3_K"},
                               GgufFileType{q3_k_s, "q3_k_s", 11, "Q3_K"},
                               GgufFileType{q2_k, "q2_k", 10, "Q2_K"},
                               GgufFileType{q2_k_s, "q2_k_s", 21, "Q2_K"},
                               GgufFileType{mxfp4_moe, "mxfp4_moe", 38, "MXFP4"}};

// The layer of "blk.7.attn_v.weight" or "enc.blk.7.attn_v.weight", 7; 0 for other names.
int64_t layer_of(std::string_view tensor) {
  int64_t layer = 0;
  if (const size_t at = tensor.find("blk."); at != tensor.npos)
    std::from_chars(tensor.data() + at + 4, tensor.data() + tensor.size(), layer);
  return layer;
}

// Whether types that end in _m have more bits in this layer: in the first and the last eighth, and
// in every third layer between.
bool has_more_bits(int64_t layer, int64_t layers) {
  return layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
}

const StackSpec& stack_of(const Spec& spec) { return spec.decoder ? *spec.decoder : *spec.encoder; }

std::string block_of_values(const GgufMix& mix, int64_t layer) {
  const StackSpec& stack = stack_of(mix.spec);
  const int64_t layers = stack.layers, heads = stack.attention.heads;
  const int64_t kv_heads = std::max<int64_t>(1, stack.attention.kv_heads);
  if (stack.ffn.experts.count == 8) return "Q8_0";
  std::string block = mix.type.block;
  switch (mix.type.dtype) {
    case q2_k: block = heads / kv_heads >= 4 ? "Q4_K" : "Q3_K"; break;
    case q2_k_s: block = heads / kv_heads >= 4 ? "Q4_K" : "Q2_K"; break;
    case q3_k_m: block = layer < 2 ? "Q5_K" : "Q4_K"; break;
    case q3_k_l: block = "Q5_K"; break;
    case q4_k_s: block = layer < 4 ? "Q5_K" : "Q4_K"; break;
    case q4_k_m:
    case q5_k_m:
      if (has_more_bits(layer, layers)) block = "Q6_K";
      break;
    case iq4_nl:
    case iq4_xs:
      if (heads / kv_heads >= 4) block = "Q5_K";
      break;
    default: break;
  }
  // LLaMA 70B, whose value matrices are small
  const bool large = mix.llama && layers == 80 && heads != kv_heads;
  return large && (block == "Q3_K" || block == "Q4_K") ? "Q5_K" : block;
}

std::string block_of_down(const GgufMix& mix, int64_t layer) {
  const int64_t layers = stack_of(mix.spec).layers;
  const bool first = layer < layers / 8;
  switch (mix.type.dtype) {
    case q2_k: return "Q3_K";
    case q2_k_s: return first ? "Q4_K" : "Q2_K";
    case q3_k_m: return layer < layers / 16 ? "Q5_K" : "Q4_K";
    case q3_k_l: return "Q5_K";
    case q4_k_s: return first ? "Q5_K" : "Q4_K";
    case q4_k_m: return has_more_bits(layer, layers) ? "Q6_K" : "Q4_K";
    case q5_k_m: return has_more_bits(layer, layers) ? "Q6_K" : "Q5_K";
    case q4_0: return first && mix.importance ? "Q4_1" : "Q4_0";
    case q5_0: return first && mix.importance ? "Q5_1" : "Q5_0";
    case iq4_nl:
    case iq4_xs: return first && !mix.importance ? "Q5_K" : mix.type.block;
    default: return mix.type.block;
  }
}

std::string block_of_output(const GgufMix& mix) {
  const FileDType dtype = mix.type.dtype;
  const bool below_five = dtype == q2_k || dtype == q3_k_s || dtype == q3_k_m || dtype == q4_k_s ||
                          dtype == q4_k_m || dtype == iq4_nl || dtype == iq4_xs;
  if (stack_of(mix.spec).ffn.experts.count == 8) return below_five ? "Q5_K" : mix.type.block;
  if (dtype == q2_k) return "Q3_K";
  if (dtype == q3_k_m) return "Q4_K";
  return dtype == q3_k_l ? "Q5_K" : mix.type.block;
}

}  // namespace

const GgufFileType& gguf_file_type(FileDType dtype) {
  check(dtype != automatic, "dtype: automatic; expected the type of a file");
  return kTypes[static_cast<size_t>(dtype) - 1];
}

const GgufFileType* find_gguf_file_type(int64_t number) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const auto& type) { return type.number == number; });
  return found == kTypes.end() ? nullptr : found;
}

const GgufFileType* find_gguf_file_type(std::string_view block) {
  const auto* found = std::find_if(kTypes.begin(), kTypes.end(),
                                   [&](const auto& type) { return type.block == block; });
  return found == kTypes.end() ? nullptr : found;
}

std::string block_in_mix(const GgufMix& mix, std::string_view tensor) {
  const std::string block = mix.type.block;
  if (!is_quantized(mix.type.dtype)) return block;
  const auto is = [&](std::string_view part) { return tensor.find(part) != tensor.npos; };
  if (mix.type.dtype == mxfp4_moe) return is("_exps.") ? "MXFP4" : "Q8_0";
  const int64_t layer = layer_of(tensor);
  if (tensor == "output.weight" || (tensor == "token_embd.weight" && mix.spec.head.tied))
    return block == "Q8_0" ? block : "Q6_K";
  if (is("attn_v.weight") || is("attn_qkv.weight")) return block_of_values(mix, layer);
  if (is("attn_k.weight") && stack_of(mix.spec).ffn.experts.count == 8) return "Q8_0";
  if (is("ffn_down")) return block_of_down(mix, layer);
  return is("attn_output.weight") ? block_of_output(mix) : block;
}

std::string fallback_block(const std::string& block, int64_t width) {
  const GgufFormat* format = find_gguf_format(block);
  if (format == nullptr || width % block_format(format->format).block == 0) return block;
  constexpr std::pair<const char*, const char*> kInstead[] = {
      {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"Q4_K", "Q5_0"},
      {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}, {"IQ4_XS", "IQ4_NL"}};
  for (const auto& [wanted, instead] : kInstead)
    if (block == wanted && width % 32 == 0) return instead;
  return "F16";
}

}  // namespace fovea::model
