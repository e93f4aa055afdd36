#include "base/error.h"
#include "families/bert.h"
#include "families/registry.h"

namespace fovea::model {
void layers_with_experts(Config& io, StackSpec& e) {
  auto& dense = e.ffn.experts.dense_layers;
  const auto without = [&](int64_t step) {
    std::vector<int64_t> layers;
    for (int64_t i = 0; i < e.layers; ++i)
      if (i % step != 1) layers.push_back(i);
    return layers;
  };
  int64_t step = 2;
  while (!io.reading() && step < e.layers && without(step) != dense) ++step;
  io("moe_every_n_layers", step);
  dense = without(step);
}

namespace {

// Nomic Embed 2 (Nussbaum and Duderstadt 2025): experts without biases, and one bias for their sum.
void nomic_experts(Config& io, StackSpec& e) {
  ExpertsSpec& x = e.ffn.experts;
  const nlohmann::json step = io.value("moe_every_n_layers");
  if (io.reading() ? step.is_null() || step == 0 : x.count == 0) return;
  io("num_experts", x.count);
  io("moe_top_k", x.chosen, 1);
  io("moe_normalize_expert_weights", x.normalise, false);
  io("router_aux_loss_coef", x.balance, 0.1f, 1e3f);
  x.sum_bias = true;
  layers_with_experts(io, e);
  io.only("num_shared_experts", 0);
  io.only("expert_choice_router", false);
  io.only("ffn_div", 1.0);
}

void nomic_activation(Config& io, FeedForwardSpec& f) {
  const nlohmann::json name = io.value("activation_function");
  if (io.reading()) f.gated = name == "swiglu" || name == "geglu";
  if (!f.gated) return io("activation_function", f.activation, "gelu");
  const bool silu = io.reading() ? name == "swiglu" : f.activation == Activation::silu;
  f.activation = silu ? Activation::silu : Activation::gelu;
  io.write("activation_function", silu ? "swiglu" : "geglu");
}

// The keys of the model's own code, which are those of GPT-2 and more.
void nomic_own_keys(Config& io, Spec& s) {
  StackSpec& e = *s.encoder;
  io("vocab_size", s.vocabulary);
  io("n_embd", s.width);
  io("n_layer", e.layers);
  io("n_head", e.attention.heads);
  io("n_inner", e.ffn.width, 4 * s.width);
  io("n_positions", s.context, 1024);
  io("layer_norm_epsilon", e.norm.epsilon, 1e-5f);
  io("resid_pdrop", s.dropout.residual, 0.1f);
  io("embd_pdrop", s.dropout.embedding, 0.1f);
  io("attn_pdrop", s.dropout.attention, 0.1f);
  nomic_activation(io, e.ffn);
  io("qkv_proj_bias", e.attention.bias, true);
  e.attention.output_bias = e.attention.bias;
  io("mlp_fc1_bias", e.ffn.inner_bias, true);
  io("mlp_fc2_bias", e.ffn.bias, true);
  if (e.ffn.inner_bias && !e.ffn.bias && io.reading())
    fail(ErrorKind::Unsupported, "{}: mlp_fc1_bias is true and mlp_fc2_bias false; expected others",
         io.name());
  RotarySpec& rotary = e.position.rotary;
  io("rotary_emb_base", rotary.theta, 10000, 1e9f);
  io("rotary_emb_fraction", rotary.share, 0);
  io("rotary_emb_interleaved", rotary.neighbours, false);
  nomic_experts(io, e);
  for (const char* off : {"prenorm", "parallel_block", "parallel_block_tied_norm", "use_rms_norm",
                          "causal", "scale_attn_by_inverse_layer_idx"})
    io.only(off, false);
  for (const char* none : {"rotary_emb_scale_base", "rotary_scaling_factor"})
    io.only(none, nullptr);
  io.only("scale_attn_weights", true);
  // Some files have the keys of transformers too. The own code does not read them.
  io.only("hidden_size", s.width);
  io.only("num_hidden_layers", e.layers);
  io.only("num_attention_heads", e.attention.heads);
  io.only("intermediate_size", e.ffn.width);
  for (const char* same :
       {"hidden_act", "head_dim", "layer_norm_eps", "max_position_embeddings", "rope_parameters",
        "hidden_dropout_prob", "attention_probs_dropout_prob"})
    io.value(same);
}

// Nomic Embed (Nussbaum et al. 2024): BERT with rotary positions and gated feed-forward layers.
void nomic_config(Config& io, Spec& s) {
  rotary_bert_shape(s);
  StackSpec& e = *s.encoder;
  io.padding(s, 0);
  const bool own = io.reading() ? io.says("n_embd") : e.attention.bias || e.ffn.bias;
  if (own) {
    nomic_own_keys(io, s);
    io("tie_word_embeddings", s.head.tied, true);
    if (s.head.kind == HeadKind::language_model) s.head.activation = e.ffn.activation;
  } else {
    e.ffn.gated = true;
    e.attention.bias = e.attention.output_bias = e.ffn.bias = false;
    bert_sizes(io, s, {.activation = "silu", .dropout = 0, .attention_dropout = 0});
    io("head_dim", e.attention.head_width, 0);
    io.rope(s.context, e.position.rotary, {.context = 2048, .theta = 1000});
  }
  io("type_vocab_size", s.token_types, 2);
  if (io.reading())
    io.refuse_unknown({"dense_seq_output", "fused_bias_fc", "fused_dropout_add_ln",
                       "last_layer_subset", "max_trained_positions", "moe_impl", "moe_resid_pdrop",
                       "pad_vocab_size_multiple", "reorder_and_upcast_attn", "summary_activation",
                       "summary_first_dropout", "summary_proj_to_labels", "summary_type",
                       "summary_use_proj", "use_xentropy", "add_pooling_layer"});
}

const std::string kNomic = "nomic_bert.encoder.layers.{i}.";

const Names nomic_names =
    masked_output_names("cls.predictions.") +
    Names{
        {"nomic_bert.embeddings.{word,token_type}_embeddings.weight", "embedding.{token,type}"},
        {"nomic_bert.emb_ln.{weight,bias}", "encoder.norm.embedding.{weight,bias}"},
        {kNomic + "attn.Wqkv.{weight,bias}",
         "encoder.{i}.attention.{query+key+value}.{weight,bias}"},
        {kNomic + "attn.out_proj.{weight,bias}", "encoder.{i}.attention.output.{weight,bias}"},
        {kNomic + "norm{1,2}.{weight,bias}", "encoder.{i}.norm.{attention,ffn}.sum.{weight,bias}"},
        {kNomic + "mlp.fc{12,11}.{weight,bias}", "encoder.{i}.ffn.{gate,up}.{weight,bias}",
         Stored::plain, [](const Spec& s) { return s.encoder->ffn.gated; }},
        {kNomic + "mlp.fc{1,2}.{weight,bias}", "encoder.{i}.ffn.{up,down}.{weight,bias}"},
        {kNomic + "mlp.router.layer.weight", "encoder.{i}.ffn.router.weight"},
        {kNomic + "mlp.experts.mlp.w1", "encoder.{i}.ffn.experts.{e}.up.weight"},
        {kNomic + "mlp.experts.mlp.w2", "encoder.{i}.ffn.experts.{e}.down.weight",
         Stored::transposed_parts},
        {kNomic + "mlp.experts.bias", "encoder.{i}.ffn.sum_bias"},
        {"nomic_bert.pooler.dense.{weight,bias}", "sequence.transform.{weight,bias}"},
        {"classifier.{weight,bias}", "sequence.output.{weight,bias}"},
        {"classifier.{weight,bias}", "tagger.output.{weight,bias}"},
        {"cls.predictions.transform.{dense,layer_norm}.{weight,bias}",
         "head.{transform,norm}.{weight,bias}"}};

const Names nomic_in_memory = rotary_bert_in_memory("nomic_bert.") +
                              Names{{"nomic_bert.layers.{i}.mlp.{gate,up,down}_proj.weight",
                                     "encoder.{i}.ffn.{gate,up,down}.weight"}};

}  // namespace

const Family nomic_bert = {
    "nomic_bert",
    {{"NomicBertForMaskedLM", masked_language_model()},
     {"NomicBertForPreTraining", masked_language_model()},
     {"NomicBertModel", {.kind = HeadKind::pooled}},
     {"NomicBertForSequenceClassification", labels_of_first(Activation::tanh)},
     {"NomicBertForTokenClassification", labels_of_each()}},
    nomic_config,
    nomic_names,
    "nomic_bert.",
    {"cls.predictions.bias", "cls.predictions.decoder.bias", "pooler.dense.weight",
     "pooler.dense.bias"},
    nomic_in_memory};

}  // namespace fovea::model
