#pragma once

#include <cstdint>
#include <vector>

#include "fovea/study/inspect.h"

namespace fovea::study {

// What the parts of a model add to its predictions: neurons, attributions of logits, patches, and
// the circuits of heads. All of them throw InvalidArgument if a layer, head or token does not
// exist, and Unsupported if the model lacks what is requested.

// A token, and what something adds to its logit, or its score as a key.
struct TokenValue {
  int32_t id = 0;
  float value = 0;
};

struct Neuron {
  int64_t neuron = 0;
  float activation = 0;  // mlp_hidden of `fovea trace`
  // What the neuron adds to the logits: its activation times its output row, through the norms with
  // their scales on this text, and the head. The tokens with the largest values; empty if the head
  // is not a language model.
  std::vector<TokenValue> promoted;
};
// Returns the neurons of each feed-forward layer with the largest absolute activations for one
// token, in descending order; an empty list for a layer of experts.
std::vector<std::vector<Neuron>> strongest_neurons(const Inspection& run, model::AttentionKind kind,
                                                   int64_t token, int64_t count);

// The difference of the logits of two tokens (before a softcap), as a sum over the parts of the
// model: each part's output, through the norms after it with their scales on this text, times the
// difference of the two rows of the head's matrix (direct logit attribution).
struct LogitAttribution {
  double difference = 0;  // computed from the output of the stack; the sum of all other numbers
  double embedding = 0;   // with positions that are added
  double biases = 0;      // of the attention outputs, of the norms and of the head
  std::vector<std::vector<double>> heads;               // by layer; empty in a recurrent layer
  std::vector<double> recurrence, cross, feed_forward;  // by layer; 0 if the layer has none
};
LogitAttribution attribute_logits(const Inspection& run, int64_t token, int32_t one, int32_t other);

// Differences of the logits of two tokens, one - other, at the last token.
struct PatchedDifferences {
  double into = 0, from = 0;                 // of the two texts
  std::vector<std::vector<double>> patched;  // [layers][tokens]
};
// Element [l][t] is the difference in `into` if the residual stream before layer l at token t is
// that of `from` (activation patching). The texts must have the same number of tokens, at most 256,
// and the models one stack.
PatchedDifferences patch_differences(const Inspection& into, const Inspection& from, int32_t one,
                                     int32_t other);

struct SteerOptions {
  int64_t layer = 0;
  double strength = 1;
  int64_t tokens = 16;  // at most 64
};
// Continues the text of `run` with the most probable tokens, while strength times a direction is
// added to the residual stream before a layer at every token: the mean of `toward` over its tokens
// at this layer minus that of `run`. Returns the new tokens. The model must be a decoder.
std::vector<int32_t> steer(const Inspection& run, const Inspection& toward,
                           const SteerOptions& options);

// The two circuits of a head (Elhage et al. 2021), for the bare embeddings of the text's tokens,
// after the norm of the layer's input and without positions.
struct HeadCircuit {
  // QK: the scores of the text's tokens as keys, [T][T], and the tokens of the vocabulary that have
  // the highest scores, [T].
  std::vector<std::vector<float>> scores;
  std::vector<std::vector<TokenValue>> sought;
  // OV: the tokens whose logits the head raises most if it attends to the token, [T]; the vector is
  // scaled by the final norm as if nothing else were in the residual stream.
  std::vector<std::vector<TokenValue>> written;
};
HeadCircuit head_circuit(const Inspection& run, model::AttentionKind kind, int64_t layer,
                         int64_t head, int64_t count);

// The rotation of queries and keys of a layer, as attention uses it.
struct RotaryAngles {
  int64_t pairs = 0;
  bool halves = true;                 // pairs are (i, i + pairs); else (2i, 2i + 1)
  std::vector<float> cosines, sines;  // [T][pairs], times the model's attention factor
};
RotaryAngles rotary_angles(const Inspection& run, model::AttentionKind kind, int64_t layer);

}  // namespace fovea::study
