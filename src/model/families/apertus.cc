#include "base/error.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Apertus (Swiss AI 2025): LLaMA with xIELU instead of a gate, and norms of queries and keys.
void apertus_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  // transformers scales the positions of a file that has neither key.
  if (io.reading() && io.value("rope_parameters").is_null() && io.value("rope_scaling").is_null())
    fail(ErrorKind::BadFile, "{}: rope_parameters is missing; expected an object", io.name());
  llama_sizes(io, s, {.theta = 1.2e7f, .epsilon = 1e-5f, .activation_key = nullptr});
  io.only("hidden_act", "xielu");
  io.write("hidden_act", "xielu");
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  d.attention.norm = QueryKeyNorm::head;
  d.ffn.gated = false;
  d.ffn.xielu = true;
  if (io.reading()) io.refuse_unknown({});
}

std::vector<Architecture> apertus_architectures() {
  std::vector<Architecture> all = language_models("Apertus");
  all.push_back(
      {"ApertusForTokenClassification", {.kind = HeadKind::token, .labels = 2, .bias = true}});
  return all;
}

const Names apertus_names =
    with_decoder_heads(llama_attention_names()) +
    Names{{"model.layers.{i}.{attention,feedforward}_layernorm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"model.layers.{i}.mlp.{up,down}_proj.weight", "decoder.{i}.ffn.{up,down}.weight"},
          {"model.layers.{i}.mlp.act_fn.{alpha_p,alpha_n}",
           "decoder.{i}.ffn.xielu.{alpha_p,alpha_n}"},
          {"model.layers.{i}.mlp.act_fn.{beta,eps}", "decoder.{i}.ffn.xielu.{beta,epsilon}",
           Stored::scalar}};

}  // namespace

const Family apertus = {"apertus", apertus_architectures(), apertus_config, apertus_names,
                        "model."};

}  // namespace fovea::model
