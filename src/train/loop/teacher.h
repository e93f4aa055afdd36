#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "loop/output_cache.h"
#include "losses/batch.h"
#include "ops/ops.h"

namespace fovea::train {

// Throws InvalidArgument if the teacher is an encoder, a decoder or an encoder-decoder, and the
// student is not. Checked before the data, whose errors would name another reason.
void check_teacher(const std::string& path, const model::Spec& student);

struct TeacherOptions {
  std::string path;       // of the model
  std::string cache;      // folder of its outputs
  int64_t top = 64;       // classes per row
  float temperature = 1;  // of the softmax
  int64_t outputs = 0;    // number of outputs that are classes; the others are ignored
  DType compute = DType::f32;
  bool reads_documents = false;  // several texts share a row
};

// The model whose predictions a run learns. Its outputs for a text do not depend on the other texts
// of a batch, so each is computed once.
class Teacher {
 public:
  // `student`: the Spec of the model that is trained. Throws InvalidArgument if it does not fit the
  // teacher, and the errors of open_model_files().
  Teacher(TeacherOptions options, const model::Spec& student);

  // Returns the probabilities for the rows of HeadInputs. They have the same bits if they are
  // computed and if they are found. Those for WrittenAnswers are not kept.
  TopProbabilities operator()(const Batch& batch);

  // Writes the outputs to the cache from now on. Without this call they are not kept beyond this
  // object's lifetime.
  void keep_outputs() { cache_->open(); }

  const model::Spec& spec() const { return model_.spec; }
  const std::vector<std::string>& labels() const { return labels_; }
  const std::vector<std::string>& warnings() const { return warnings_; }
  uint64_t weight_bytes() const { return weight_bytes_; }
  uint64_t hash() const { return hash_; }  // of its files

 private:
  // Computes all rows of the batch.
  void compute(const Batch& batch, const TopProbabilities& p) const;

  TeacherOptions options_;
  model::Transformer model_;
  std::vector<std::string> labels_, warnings_;
  uint64_t weight_bytes_ = 0, hash_ = 0;
  std::unique_ptr<OutputCache> cache_;
};

}  // namespace fovea::train
