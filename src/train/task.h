#pragma once

#include "families/directory.h"
#include "fovea/tokenizer.h"
#include "fovea/train.h"
#include "plan/estimate.h"
#include "train/examples.h"

namespace fovea {

using Say = std::function<void(std::string)>;

// What a run is for: its data, and what is asked of the model.
class Task {
 public:
  explicit Task(const TrainOptions& options) : options_(options) {}
  virtual ~Task() = default;

  // A tokenizer made from the data, as options.tokenizer says.
  virtual Tokenizer make_tokenizer(const Spec& spec) = 0;
  // Refuses a model that cannot do it; gives it the head that the task needs, and says so.
  // `origin`: of the checkpoint that it comes from, or empty.
  virtual void shape(Spec& spec, const Tokenizer& tokenizer, const Origin& origin,
                     const Say& say) = 0;
  virtual Cost cost(const Spec& spec, DType compute) const = 0;
  // What config.json of a new model says besides its Spec.
  virtual Origin origin(const Spec&, const Tokenizer&) const { return {}; }
  // With `read_only` nothing is written anywhere. What it gives must not outlive the task.
  virtual std::unique_ptr<Examples> examples(const Spec& spec, const Tokenizer& tokenizer,
                                             const Origin& origin, bool read_only,
                                             const Say& say) = 0;
  // More about the last validation than its loss, by name.
  using Figures = std::vector<std::pair<std::string, double>>;
  virtual Figures figures(const Transformer&, DType, const Examples&) const { return {}; }

 protected:
  TrainOptions options_;
};

// The task of the options' data and objective, for a model of this kind. The data is read.
std::unique_ptr<Task> open_task(const TrainOptions& options, const Spec& spec);

// The objective that `automatic` means.
Objective objective_of(const TrainOptions& options, const Spec& spec);
const char* name_of(Objective objective);

std::unique_ptr<Task> make_text_task(const TrainOptions& options);
std::unique_ptr<Task> make_pairs_task(const TrainOptions& options);

}  // namespace fovea
