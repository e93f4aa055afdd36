#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fovea/inspect.h"
#include "model/transformer.h"

namespace fovea {

// The inputs and outputs of one attention call: q [1, T, H, D], k and v [1, S, G, D], the options,
// and the outputs of the heads [1, T, H, D].
struct AttentionMap {
  Tensor q, k, v, heads;
  AttentionOptions options;
};

// A stack, and its results for one text.
struct StackRun {
  const Stack* stack = nullptr;
  std::vector<int32_t> ids;
  std::vector<Tensor> stream;  // [1, T, C]: the residual stream before each layer and at the end
  Tensor output;               // [1, T, C]: after the final norm
  Pass pass;                   // the pass with which its blocks run

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
};

// The computation of a model for one text. The residual stream of every layer is kept. Other values
// are computed from it again on request, by the same blocks, so that they have the same bits as in
// the run. The public Inspector (fovea/inspect.h) documents each request.
class Inspection {
 public:
  // `source` is for the encoder, if there is one; `ids` for the decoder, if there is one, including
  // its start token. The model must outlive the Inspection.
  Inspection(const Transformer& model, std::vector<int32_t> source, std::vector<int32_t> ids,
             std::vector<HeadPlace> muted = {});

  const Transformer& model() const { return model_; }
  // Returns the run of the stack that computes the queries; it is the same for self and cross.
  const StackRun& run(Look look) const;
  const StackSpec& stack_spec(Look look) const;
  int64_t keys(Look look) const;  // number of keys, S

  Map map(const MapQuery& query) const;
  std::vector<std::vector<Looked>> strongest(const MapQuery& query, int64_t count) const;
  std::vector<HeadScores> head_scores(Look look, int64_t layer,
                                      const std::vector<bool>& punctuation) const;
  std::vector<double> induction(int64_t layer, int64_t period) const;  // by head
  std::vector<LayerSizes> sizes(Look look) const;

  std::vector<float> logits(int64_t position) const;
  std::vector<std::vector<Guess>> lens(int64_t first, int64_t end) const;
  std::vector<Surprise> surprise() const;

  std::vector<Step> walk(const WalkQuery& query) const;
  std::vector<std::vector<Routed>> routing(Look look, int64_t layer) const;

  // Returns the inputs and outputs of a layer's attention, which are cached.
  const AttentionMap& attended(Look look, int64_t layer) const;
  // Returns the attention weights of one head for R query rows.   -> f32 [R, S]
  Tensor weights(Look look, int64_t layer, int64_t head, Interval rows) const;
  // Applies the model's head to rows of a stack's output.   [R, C] -> f32 [R, V]
  Tensor logits_of(const Tensor& rows) const;

 private:
  void read(StackRun& run, const Sequence& sequence, const Pass& given);
  void attend(const ProbePoint& point, const AttentionInputs& inputs,
              std::map<std::pair<Look, int64_t>, AttentionMap>* kept) const;
  void check_layer(Look look, int64_t layer) const;
  static void check_head(int64_t head, int64_t heads);

  const Transformer& model_;
  std::vector<HeadPlace> muted_;
  StackRun source_, main_;  // source_: the encoder, if there are an encoder and a decoder
  mutable std::map<std::pair<Look, int64_t>, AttentionMap> kept_;
};

// Returns the Euclidean norm of each layer's gradients of the mean loss of next-token prediction.
// Empty unless the model is a decoder-only language model and there are at least two ids.
std::vector<float> gradient_sizes(const Transformer& model, const std::vector<int32_t>& ids);

}  // namespace fovea
