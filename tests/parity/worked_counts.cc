// Sizes, parameters, FLOPs, costs and scaling laws of the worked examples, and claims without a
// computation.

#include <cmath>

#include "fovea/train/plan.h"
#include "transformer/transformer.h"
#include "worked_examples.h"

namespace fovea::worked {
namespace {

struct Size {
  int64_t layers, heads, width;
};

// Returns a decoder with plain attention and feed-forward layers without biases.
model::Spec plain(const Size& size) {
  model::Spec s;
  s.vocabulary = 1;
  s.context = 1;
  s.width = size.width;
  model::StackSpec& d = *s.decoder;
  d.layers = size.layers;
  d.attention.heads = size.heads;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.position.kind = model::PositionKind::none;
  return s;
}

double parameters_of(const train::Plan& plan, const std::string& name) {
  for (const train::PlanPart& part : plan.parts)
    if (part.name == name) return static_cast<double>(part.parameters);
  return 0;
}

// Returns the number of parameters of attention and FFNs. Without biases, each of L layers of width
// d has 4 d^2 and 8 d^2, so the sum is 12 L d^2.
double matrices_of(const model::Spec& spec) {
  const train::Plan p = train::plan(spec);
  return parameters_of(p, "attention") + parameters_of(p, "feed-forward");
}

model::StackSpec stack_of(const model::Spec& spec) {
  return spec.decoder ? *spec.decoder : *spec.encoder;
}

Size size_of_record(const Example& e) {
  return {e.integer("layers"), e.integer("heads"), e.integer("d_model")};
}

void published(Example& e, const char* name) {
  const model::Spec spec = model::validated(model::preset(name));
  const model::StackSpec stack = stack_of(spec);
  const Size size = size_of_record(e);
  EXPECT_EQ(stack.layers, size.layers);
  EXPECT_EQ(stack.attention.heads, size.heads);
  EXPECT_EQ(spec.width, size.width);
  e.expect("head_dim", static_cast<double>(stack.attention.head_width));
  const auto exact = e.expected("params_exact")["data"][0].get<int64_t>();
  EXPECT_EQ(train::plan(spec).parameters, exact);
  e.expect("params_12Ld2", matrices_of(plain(size)));
}

void rumoured(Example& e) {
  const model::Spec spec = model::validated(plain(size_of_record(e)));
  e.expect("head_dim", static_cast<double>(spec.decoder->attention.head_width));
  e.expect("params_12Ld2", matrices_of(spec));
}

void rule_of_parameters(Example& e) {
  const auto by_rule = [](const char* name) {
    const model::Spec spec = model::preset(name);
    const model::StackSpec stack = stack_of(spec);
    return matrices_of(plain({stack.layers, stack.attention.heads, spec.width})) +
           parameters_of(train::plan(spec), "token embedding");
  };
  e.expect("bert_base_12Ld2_plus_Vd", by_rule("bert-base"));
  e.expect("gpt3_12Ld2_plus_Vd", by_rule("gpt3"));
  e.pass_over("formula", "text; its numbers are checked here");
}

void layer_of_base(Example& e) {
  model::Spec spec;
  spec.vocabulary = spec.context = 1;
  spec.width = e.integer("d_model");
  spec.encoder = model::preset("transformer-base").encoder;
  spec.decoder.reset();
  spec.encoder->layers = 1;
  spec.encoder->ffn.bias = false;
  const train::Plan bare = train::plan(spec);
  const double ffn = parameters_of(bare, "feed-forward");
  e.expect("attention", parameters_of(bare, "attention"));
  e.expect("ffn1", ffn / 2);
  e.expect("ffn2", ffn / 2);
  e.expect("total", matrices_of(spec));
  spec.encoder->attention.bias = spec.encoder->attention.output_bias = true;
  spec.encoder->ffn.bias = true;
  e.expect("total_with_biases_and_norms",
           matrices_of(spec) + parameters_of(train::plan(spec), "norms"));
}

void original_base(Example& e) {
  const model::Spec spec = model::validated(model::preset("transformer-base"));
  const model::AttentionSpec& a = spec.encoder->attention;
  e.expect("d_model", static_cast<double>(spec.width));
  e.expect("d_ff", static_cast<double>(spec.encoder->ffn.width));
  e.expect("num_heads", static_cast<double>(a.heads));
  e.expect("d_k", static_cast<double>(a.head_width));
  e.expect("d_v", static_cast<double>(a.head_width));
  e.expect("num_layers_encoder", static_cast<double>(spec.encoder->layers));
  e.expect("num_layers_decoder", static_cast<double>(spec.decoder->layers));
}

void widths_of_heads(Example& e) {
  const model::Spec spec = model::validated(plain({1, e.integer("h"), e.integer("d_model")}));
  model::Transformer model(spec);
  const model::AttentionSpec& a = spec.decoder->attention;
  const Shape output =
      std::get<model::Attention>(model.decoder.blocks[0].mixer).output.weight.shape;
  const auto width = static_cast<double>(a.head_width);
  e.expect("d_k", width);
  e.expect("concat", static_cast<double>(a.heads * a.head_width));
  if (e.id() == "s004.headdim.512") {
    e.expect("d_v", width);
    e.expect("sqrt_d_k", std::sqrt(width));
  } else {
    e.expect("W_O_rows", static_cast<double>(output[0]));
    e.expect("W_O_cols", static_cast<double>(output[1]));
  }
}

// The dot product of two vectors of ones is their width; attention divides by the square root of
// the width.
void root_of_width(Example& e) {
  const Tensor one = full({1, e.integer("d_k")}, 1, e.dtype());
  e.expect("sqrt", std::sqrt(to_doubles(linear(one, one))[0]));
}

void hidden_width(Example& e) {
  const model::Spec spec = model::validated(plain({1, 8, e.integer("d_model")}));
  EXPECT_EQ(spec.decoder->ffn.width, e.integer("ratio") * spec.width);
  e.expect("d_ff", static_cast<double>(spec.decoder->ffn.width));
}

void one_projection(Example& e) {
  std::vector<double> sizes;
  for (size_t i = 0; i < e.values("h").size(); ++i) {
    const auto heads = static_cast<int64_t>(e.values("h")[i]);
    const auto width = static_cast<int64_t>(e.values("d_model")[i]);
    sizes.push_back(parameters_of(train::plan(plain({1, heads, width})), "attention") / 4);
  }
  e.expect("per_projection", sizes);
}

void tiny_model(Example& e) {
  std::vector<double> bare, whole;
  for (const int64_t vocabulary : e.parameter("V")) {
    model::Spec spec = plain({e.integer("blocks"), e.integer("num_heads"), e.integer("d_model")});
    spec.vocabulary = vocabulary;
    spec.head.tied = false;
    spec.decoder->final_norm = false;
    spec.decoder->ffn.width = e.integer("d_ff");
    const train::Plan p = train::plan(spec);
    whole.push_back(static_cast<double>(p.parameters));
    bare.push_back(whole.back() - parameters_of(p, "norms"));
  }
  e.expect("params_no_norm", bare);
  e.expect("params_with_affine_norm", whole);
  e.pass_over("generated_length", "text about other code");
}

void all_pairs(Example& e) {
  const auto pairs = [&](size_t i) {
    return static_cast<double>(
        train::attention_pairs(static_cast<int64_t>(e.values("n")[i]), false));
  };
  e.expect("pairs_1k", pairs(0));
  e.expect("pairs_100k", pairs(1));
}

void pairs_of_window(Example& e) {
  const int64_t n = e.integer("n");
  e.expect("full", static_cast<double>(train::attention_pairs(n, false)));
  e.expect("causal", static_cast<double>(train::attention_pairs(n, true)));
  e.expect("causal_window",
           static_cast<double>(train::attention_pairs(n, true, e.integer("window"))));
}

// Compares n^2 d for the pairs of attention with n d^2 for the matrix of a recurrent layer.
void complexity(Example& e) {
  const auto compare = [&](const char* key, int64_t n, int64_t d) {
    const auto& info = e.expected(key).at("info");
    EXPECT_EQ(train::attention_pairs(n, false) * d, info.at("self_attention").get<int64_t>())
        << key;
    EXPECT_EQ(n * elements({d, d}), info.at("recurrent").get<int64_t>()) << key;
  };
  compare("at_n512_d512", 512, 512);
  compare("at_n100_d512", 100, 512);
  compare("at_n1000_d512", 1000, 512);
  for (const char* key : {"recurrent", "self_attention", "crossover"})
    e.pass_over(key, "formulas as text; their values are checked here");
}

train::Plan training_of_gpt3(const train::PlanOptions& options) {
  return train::plan(model::preset("gpt3"), options);
}

void training_flops(Example& e) {
  train::PlanOptions options;
  options.tokens = e.value("D");
  e.expect("flops_nominal", train::rule_flops(e.value("N"), e.value("D")));
  e.expect("flops_exact_N", training_of_gpt3(options).training.rule_flops);
}

void training_cost_of_gpt3(Example& e) {
  train::PlanOptions options;
  options.tokens = 1e9;
  options.speed = e.external("throughput_flops");
  options.price = e.external("usd_per_gpu_hour");
  const train::TrainingPlan t = training_of_gpt3(options).training;
  const double share = e.value("flops") / t.flops;  // hours and cost are proportional to FLOPs
  e.expect("gpu_hours", t.device_hours * share);
  e.expect("usd", t.cost * share);
}

void power_laws(Example& e) {
  e.expect("loss_factor_on_doubling_N",
           train::kaplan_loss_of_size(2e9) / train::kaplan_loss_of_size(1e9));
  e.expect("loss_factor_on_doubling_D",
           train::kaplan_loss_of_data(2e9) / train::kaplan_loss_of_data(1e9));
  e.expect("loss_at_N_175e9", train::kaplan_loss_of_size(175e9));
}

void heads_of_gpt3(Example& e) {
  const model::StackSpec d = *model::preset("gpt3").decoder;
  e.expect("total", static_cast<double>(d.layers * d.attention.heads));
}

Check said(std::vector<const char*> outputs, const char* reason) {
  return [=](Example& e) {
    for (const char* output : outputs) e.pass_over(output, reason);
  };
}

}  // namespace

Checks count_checks() {
  const auto model = [](const char* name) { return [=](Example& e) { published(e, name); }; };
  return {
      {"s000.scale.64", root_of_width},
      {"s003.sqrt512", root_of_width},
      {"s000.headdim.768", widths_of_heads},
      {"s004.headdim.512", widths_of_heads},
      {"s000.ffn.4x.bert", hidden_width},
      {"s003.ffn.4x.base", hidden_width},
      {"s002.gpt3.heads", heads_of_gpt3},
      {"s001.pairs", all_pairs},
      {"d.window.pairs", pairs_of_window},
      {"s004.complexity", complexity},
      {"s000.mha.cost", one_projection},
      {"s003.params.base_layer", layer_of_base},
      {"s003.config.base", original_base},
      {"s001.tiny", tiny_model},
      {"s000.model.bert_base", model("bert-base")},
      {"s000.model.bert_large", model("bert-large")},
      {"s000.model.gpt2_xl", model("gpt2-xl")},
      {"s000.model.gpt3", model("gpt3")},
      {"s000.model.llama2_70b", model("llama2-70b")},
      {"s000.model.gpt4", rumoured},
      {"s000.params.formula", rule_of_parameters},
      {"s000.flops.6nd", training_flops},
      {"s000.cost.gpt3", training_cost_of_gpt3},
      {"s000.scaling.kaplan", power_laws},
  };
}

Checks claims() {
  return {
      {"s001.gpt4.moe", said({"total_B"}, "a rumour about a closed model")},
      {"s004.path50", said({"steps"}, "about recurrent networks, which fovea does not support")},
      {"s000.emergence", said({"few_shot_params", "chain_of_thought_params"}, "an observation")},
      {"s00x.defaults", said({"s000", "s001", "s003", "s004"}, "defaults of other code")},
      {"s001.compare",
       said({"speedup_training", "long_range_tokens", "lstm_decay_step", "gap_tokens_example"},
            "timings without a setup")},
      {"s001.translation", said({"direction"}, "an example sentence")},
      {"s00x.sentences", said({"sentences", "ambiguous_word", "pronoun"}, "example sentences")},
  };
}

}  // namespace fovea::worked
