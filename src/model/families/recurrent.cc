#include "families/registry.h"

namespace fovea::model {
namespace {

// Language models of PyTorch's recurrent layers: an embedding, nn.RNN, nn.GRU or nn.LSTM, and a
// linear layer, named as in PyTorch's example of a word language model. All vectors have one width,
// and nothing is added to the layers: no positions, norms, residual connections or feed-forward
// layers.
void recurrent_config(Config& io, Spec& s, MixerKind cell) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  io("hidden_size", s.width);
  io.only("input_size", s.width);
  io("num_layers", d.layers);
  io("bias", d.recurrence.bias, true);
  io("max_position_embeddings", s.context, 1024);
  io("initializer_range", s.init_deviation, 0.02f);
  io("tie_word_embeddings", s.head.tied, false);
  io("decoder_bias", s.head.bias, true);
  io.only("nonlinearity", "tanh");
  io.only("bidirectional", false);
  io.only("proj_size", 0);
  io.only("dropout", 0.0);
  if (!io.reading()) return;
  d.mixers = {cell};
  d.position.kind = PositionKind::none;
  d.placement.input = d.final_norm = d.residual = d.ffn.present = false;
  d.attention.heads = 1;  // there is no attention
  io.refuse_unknown({"batch_first"});
}

void rnn_config(Config& io, Spec& s) { recurrent_config(io, s, MixerKind::rnn); }
void gru_config(Config& io, Spec& s) { recurrent_config(io, s, MixerKind::gru); }
void lstm_config(Config& io, Spec& s) { recurrent_config(io, s, MixerKind::lstm); }

const Names recurrent_names = {
    {"encoder.weight", "embedding.token"},
    {"rnn.weight_{ih,hh}_l{i}", "decoder.{i}.recurrence.{input,hidden}.weight"},
    {"rnn.bias_{ih,hh}_l{i}", "decoder.{i}.recurrence.{input,hidden}.bias"},
    {"decoder.{weight,bias}", "head.output.{weight,bias}"},
};

}  // namespace

const Family rnn = {"rnn", {{"RNNModel", {.tied = false}}}, rnn_config, recurrent_names};
const Family gru = {"gru", {{"RNNModel", {.tied = false}}}, gru_config, recurrent_names};
const Family lstm = {"lstm", {{"RNNModel", {.tied = false}}}, lstm_config, recurrent_names};

}  // namespace fovea::model
