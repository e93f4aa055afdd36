#include "base/error.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Returns the kinds of the layers in attention_types: pairs of a list of kinds and the number of
// its repetitions.
std::vector<std::string> kinds_of(const nlohmann::json& types, const Config& io, int64_t layers) {
  const auto refuse = [&] {
    fail(ErrorKind::BadFile,
         "{}: attention_types is {}; expected pairs of a list of \"global\" and \"local\" and a "
         "number, {} layers together",
         io.name(), types.dump().substr(0, 80), layers);
  };
  std::vector<std::string> kinds;
  if (!types.is_array()) refuse();
  for (const auto& pair : types) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_array() ||
        !pair[1].is_number_integer() || pair[1] < 0 || pair[1] > layers)
      refuse();
    for (int64_t n = 0; n < pair[1].get<int64_t>(); ++n) {
      for (const auto& kind : pair[0]) {
        if ((kind != "global" && kind != "local") || std::ssize(kinds) == layers) refuse();
        kinds.push_back(kind);
      }
    }
  }
  if (std::ssize(kinds) != layers) refuse();
  return kinds;
}

void local_layers(Config& io, StackSpec& d) {
  auto& windows = d.attention.windows;
  int64_t window = 256;
  nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
  for (int64_t i = 0; i < d.layers && !io.reading(); ++i) {
    const int64_t w = windows.empty() ? 0 : windows[static_cast<size_t>(i)];
    if (w > 0) window = w;
    kinds.push_back(w > 0 ? "local" : "global");
  }
  io("window_size", window, window);
  if (!io.reading()) {
    io.write("attention_layers", kinds);
    using Json = nlohmann::ordered_json;
    return io.write("attention_types", Json::array({Json::array({kinds, 1})}));
  }
  const nlohmann::json types = io.value("attention_types");
  io.value("attention_layers");  // follows from attention_types
  const auto absent = nlohmann::json::parse(R"([[["global", "local"], 12]])");
  for (const std::string& kind : kinds_of(types.is_null() ? absent : types, io, d.layers))
    windows.push_back(kind == "local" ? window : 0);
}

// GPT-Neo (Black et al. 2021): GPT-2 with local layers, and scores without a scale.
void gpt_neo_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position.kind = PositionKind::learned;
  io("vocab_size", s.vocabulary);
  classifier_padding(io, s);
  io("max_position_embeddings", s.context, 2048);
  io("hidden_size", s.width);
  io("num_layers", d.layers);
  io("num_heads", d.attention.heads);
  io("intermediate_size", d.ffn.width, 0);
  io("activation_function", d.ffn.activation, "gelu_new");
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("initializer_range", s.init_deviation, 0.02f);
  io("embed_dropout", s.dropout.embedding, 0);
  io("attention_dropout", s.dropout.attention, 0);
  io("resid_dropout", s.dropout.residual, 0);
  io("tie_word_embeddings", s.head.tied, true);
  d.attention.scale = 1;
  d.attention.bias = false;
  local_layers(io, d);
  if (io.reading())
    io.refuse_unknown({"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                       "summary_type", "summary_use_proj"});
}

const Names gpt_neo_names = with_decoder_heads(
    {{"transformer.w{t,p}e.weight", "{embedding.token,decoder.position}"},
     {"transformer.h.{i}.ln_{1,2}.{weight,bias}",
      "decoder.{i}.norm.{attention,ffn}.input.{weight,bias}"},
     {"transformer.h.{i}.attn.attention.{q,k,v,out}_proj.{weight,bias}",
      "decoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
     {"transformer.h.{i}.mlp.c_{fc,proj}.{weight,bias}", "decoder.{i}.ffn.{up,down}.{weight,bias}"},
     {"transformer.ln_f.{weight,bias}", "decoder.norm.final.{weight,bias}"},
     {"lm_head.weight", "head.output.weight"}},
    "classifier");

}  // namespace

const Family gpt_neo = {"gpt_neo",      decoder_architectures("GPTNeo", "GPTNeoForCausalLM"),
                        gpt_neo_config, gpt_neo_names,
                        "transformer.", {".attention.bias", ".attention.masked_bias"}};

}  // namespace fovea::model
