#pragma once

#include <memory>
#include <vector>

#include "nn/block.h"
#include "nn/input.h"
#include "nn/positions.h"

namespace fovea::model {

// Widths of the residual stream and of the embeddings; 0 = the same.
struct StackWidths {
  int64_t stream = 0, embedding = 0;
  int64_t of_embedding() const { return embedding > 0 ? embedding : stream; }
};

// The positions, the norm of the embeddings, their projection, the blocks in order, and the final
// norm.
struct Stack {
  Positions positions;
  Norm embedding_norm;
  Linear projection;          // of embeddings of another width
  std::vector<Block> blocks;  // of all layers, or one for each run of layers with the same weights
  int64_t layers = 0;
  Norm norm;
  Dropout embedding_dropout;
  bool decodes = false, causal = false;  // a decoder; tokens see only earlier ones
  bool norm_before_positions = false;    // embedding_norm reads embeddings without positions

  Stack() = default;
  enum class Kind { encoder, decoder, decoder_across };
  Stack(const StackSpec& spec, const DropoutSpec& dropout, StackWidths widths, int64_t context,
        Kind kind);

  bool shares_weights() const { return std::ssize(blocks) < layers; }
  // Returns the block of a layer, which must not outlive the stack. Of layers with the same
  // weights, each has a block with its own number, which refers to these weights.
  std::shared_ptr<const Block> block(int64_t layer) const;

  // x [B, T, C], or of the embeddings' width, f32, embedded tokens; positions i32 [B, T]; empty =
  // consecutive positions, from 0 in each document of pass.mask, or from the length of each cached
  // text. -> [B, T, C] in pass.compute. An image's registers are inserted after the positions are
  // added.
  Tensor operator()(Tensor x, const Pass& pass, const Tensor& token_positions,
                    const Input* image = nullptr) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    positions.each(f, name);
    embedding_norm.each(f, name + ".norm.embedding");
    projection.each(f, name + ".projection");
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i].each(f, name + "." + std::to_string(i));
    norm.each(f, name + ".norm.final");
  }
};

}  // namespace fovea::model
