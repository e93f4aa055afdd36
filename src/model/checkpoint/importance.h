#pragma once

// How much each input of each matrix matters: the sum of squares of the activations that it
// multiplies, over a text. Quantisers weight the errors of a column with it. The files are those of
// llama.cpp: GGUF files with general.type "imatrix", and an older binary format.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fovea::model {

struct ImportanceMatrix {
  // Of the inputs of one or, for stacked experts, several matrices: sums of squares [matrices,
  // width], and the number of activations that were added up, [matrices] or [1].
  struct Columns {
    std::vector<float> sums, counts;
  };
  std::map<std::string, Columns> tensors;  // by the names of GGUF: "blk.0.attn_q.weight"
  std::vector<std::string> texts;          // paths of the texts
  int64_t chunks = 0, chunk_length = 0;    // windows of the texts, and their tokens

  // Returns the weights of the columns of a tensor, [matrices, width], which are positive and have
  // a mean near 1; empty if the tensor is unknown. Throws InvalidArgument if the sizes differ.
  std::vector<float> weights_of(const std::string& tensor, int64_t matrices, int64_t width) const;
};

// Reads a file of either format. Throws BadFile if it is damaged or a number is not finite.
ImportanceMatrix read_importance(const std::string& path);
void write_importance(const std::string& path, const ImportanceMatrix& matrix);  // GGUF

}  // namespace fovea::model
