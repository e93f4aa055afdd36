#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/float_mode.h"
#include "fovea/infer/image_model.h"
#include "fovea/study/inspect.h"
#include "transformer/prompt_images.h"
#include "transformer/transformer.h"

namespace fovea::study {

// The inputs and outputs of one attention call: q [1, T, H, D], k and v [1, S, G, D], the options,
// and the outputs of the heads [1, T, H, D].
struct AttentionMap {
  Tensor q, k, v, heads;
  AttentionOptions options;
};

// A stack, and its results for one text.
struct StackRun {
  const model::Stack* stack = nullptr;
  std::vector<int32_t> ids;
  std::vector<Tensor> stream;  // [1, T, C]: the residual stream before each layer and at the end
  Tensor output;               // [1, T, C]: after the final norm
  model::LayerPass pass;       // the pass with which its blocks run
  // Of a model with value_residual: the values of its first attention layer [1, T, G, D'], and the
  // number of this layer.
  Tensor first_values;
  int64_t first_attention = 0;

  // Returns the first values if a layer reads them, else an empty tensor.
  Tensor first_values_of(int64_t layer) const {
    return layer > first_attention ? first_values : Tensor();
  }
  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
};

// The values of one layer at its probe points, for all tokens; `cross` says whether a point is one
// of cross-attention.
struct LayerValues {
  using What = model::ProbePoint::What;
  std::map<std::pair<What, bool>, Tensor> points;  // [1, T, ...]

  // Returns the value of a token, [1, 1, width]; empty if the layer has no such point.
  Tensor row(What what, int64_t token, bool cross = false) const;
  // Returns the output of a sublayer, before its output norm if it has one.
  Tensor result(What unnormed, What output, int64_t token, bool cross = false) const {
    const Tensor y = row(unnormed, token, cross);
    return y ? y : row(output, token, cross);
  }
};

// The computation of a model for one text. The residual stream of every layer is kept. Other values
// are computed from it again on request, by the same blocks, so that they have the same bits as in
// the run.
struct Inspection::State {
  // `source` is for the encoder, if there is one; `ids` for the decoder, if there is one, including
  // its start token. The model must outlive the State, unless `owner` is set.
  // `vectors` replace the embeddings of some tokens of the decoder, such as those of images.
  State(const model::Transformer& model, std::vector<int32_t> source, std::vector<int32_t> ids,
        std::vector<model::HeadIndex> muted = {}, std::vector<NeuronIndex> muted_neurons = {},
        const model::TokenVectors& vectors = {});
  // An encoder of images: pixels [1, 3, S, S]. Its tokens have no ids; they are numbered instead.
  State(const model::Transformer& model, const Tensor& pixels);

  // Returns the run of the stack that computes the queries; it is the same for self and cross.
  const StackRun& run(model::AttentionKind kind) const;
  const model::StackSpec& stack_spec(model::AttentionKind kind) const;
  int64_t keys(model::AttentionKind kind) const;  // number of keys, S
  void check_layer(model::AttentionKind kind, int64_t layer) const;
  void check_text(const char* what) const;  // throws InvalidArgument if there are images
  static void check_head(int64_t head, int64_t heads);

  // Returns the inputs and outputs of a layer's attention, which are cached.
  const AttentionMap& attended(model::AttentionKind kind, int64_t layer) const;
  // Returns the values of the layer in the stack that computes the queries of `kind`; cached.
  const LayerValues& values(model::AttentionKind kind, int64_t layer) const;
  // Return the attention weights, and the inputs of their softmax, of one head for R query rows.
  // -> f32 [R, S]
  Tensor weights(model::AttentionKind kind, int64_t layer, int64_t head, Interval rows) const;
  Tensor scores(model::AttentionKind kind, int64_t layer, int64_t head, Interval rows) const;
  // Returns a probe that switches the muted heads and neurons off and passes the values to `see`,
  // which may be null. It must not outlive the State.
  model::Probe probe(std::function<void(const model::ProbePoint&, Tensor&)> see) const;
  // Applies the model's head to rows of a stack's output.   [R, C] -> f32 [R, V]
  Tensor logits_of(const Tensor& rows) const;

  const model::Transformer& model;
  std::optional<model::Model> owner;              // keeps `model` alive
  std::optional<infer::ImageModel> image_owner;   // the same, for an encoder of images
  bool has_images = false;                        // some tokens are those of images
  std::vector<InspectedToken> source_text, text;  // empty if unknown
  StackRun source, main;               // source: the encoder, if there are an encoder and a decoder
  mutable std::recursive_mutex mutex;  // held during each call of the public functions

 private:
  struct HeadRows {
    Tensor q, k;  // [1, R, 1, D], [1, S, 1, D]
    AttentionOptions options;
  };
  HeadRows head_rows(model::AttentionKind kind, int64_t layer, int64_t head, Interval rows) const;
  void read(StackRun& run, const model::Sequence& sequence, const model::Pass& given);
  void attend(const model::ProbePoint& point, const model::AttentionInputs& inputs,
              std::map<std::pair<model::AttentionKind, int64_t>, AttentionMap>* kept) const;

  std::vector<model::HeadIndex> muted_;
  std::vector<NeuronIndex> muted_neurons_;
  mutable std::map<std::pair<model::AttentionKind, int64_t>, AttentionMap> kept_;
  mutable std::map<std::pair<const model::Stack*, int64_t>, LayerValues> values_;
};

// Returns row t of x [1, T, ...] as [1, 1, rest].
inline Tensor row_of(const Tensor& x, int64_t t) {
  const int64_t T = x.dim(1), rest = x.size() / T;
  return x.view({T, rest}).rows(t, t + 1).view({1, 1, rest});
}

// Held during a call of a public function: the lock and the default float mode.
class InspectionCall {
 public:
  explicit InspectionCall(const Inspection::State& state) : lock_(state.mutex), state_(state) {}
  const Inspection::State* operator->() const { return &state_; }
  const Inspection::State& operator*() const { return state_; }

 private:
  const FloatMode mode_;
  const std::lock_guard<std::recursive_mutex> lock_;
  const Inspection::State& state_;
};

// Returns, for each head of a layer, the mean attention weight from token t to token t - period +
// 1, for t >= period; empty in a recurrent layer.
std::vector<double> induction(const Inspection::State& state, int64_t layer, int64_t period);

// Returns the Euclidean norm of each layer's gradients of the mean loss of next-token prediction.
// Empty unless the model is a decoder-only language model and there are at least two ids.
std::vector<float> gradient_sizes(const model::Transformer& model, const std::vector<int32_t>& ids);

}  // namespace fovea::study
