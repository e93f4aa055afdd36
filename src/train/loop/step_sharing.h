#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fovea/train/train.h"
#include "loop/rounded_reduce.h"
#include "loop/shards.h"
#include "loop/step_shares.h"
#include "parallel/communicator.h"
#include "parallel/tree_reduce.h"
#include "tensor/tape.h"

namespace fovea::train {

// Shares the units of each step among the processes (ranks) of a job. Each rank computes the
// gradients of its nodes, in this order:
//
//   for (const StepNode& node : sharing.share(passes)) {
//     PassGradients gradients;
//     for (const UnitRange& range : node.ranges) {
//       sharing.expect(node, range, gradients);
//       gradients.backward(loss of the range, range.last);
//     }
//     sharing.add(gradients);
//   }
//   all = sharing.exchange(numbers);
//
// Afterwards each rank has the gradients of the whole step, or those of its shards. From the second
// step on, a thread sends them while the last backward pass of the rank goes on. exchange(),
// gather() and of_first() are collective.
class StepSharing {
 public:
  struct Options {
    Shards* shards = nullptr;  // each rank gets the gradients of its own
    GradientPrecision gradients = GradientPrecision::fp32;  // those that are sent
    // Each rank keeps the gradients of its nodes, times the number of ranks, as those of the step.
    bool local = false;
  };
  // `parameters`: those of the model, which must outlive this object, as must the shards.
  StepSharing(Communicator& ranks, const std::vector<model::NamedParameter>& parameters,
              const Options& options);
  ~StepSharing();
  StepSharing(const StepSharing&) = delete;
  StepSharing& operator=(const StepSharing&) = delete;

  int rank() const { return ranks_.rank(); }
  int size() const { return ranks_.size(); }
  // The factor of the numbers of this rank, if exchange() returns no others.
  double scale() const { return local_ ? size() : 1; }

  // Begins a step. Returns the nodes of this rank.
  std::vector<StepNode> share(const std::vector<PassUnits>& passes);
  // Called before each backward pass of a node.
  void expect(const StepNode& node, const UnitRange& range, PassGradients& gradients);
  // Keeps the gradients of a node.
  void add(PassGradients& gradients);
  // Sets the gradients of the parameters, or of their shards, to the sums over the nodes of all
  // ranks. Returns the numbers of all ranks, in the order of the ranks.
  std::vector<double> exchange(const std::vector<double>& own);
  // The seconds that the last exchange() of the rank that waited least has waited for gradients,
  // after its own last backward pass.
  double waited() const { return waited_; }

  std::vector<double> gather(const std::vector<double>& own) const;
  // Returns the numbers of rank 0.
  std::vector<int64_t> of_first(const std::vector<int64_t>& own) const;

 private:
  // A sum of gradients to exchange: of one use of a parameter in backward().
  struct Use {
    size_t leaf = 0, number = 0;  // the parameter, and which of its uses
    std::vector<Tensor> own;      // of each node of this rank; empty if the node does not reach it
    Tensor total;                 // with shards, that of this rank; empty if it has no elements
    bool ready = false;           // `own` is complete
  };
  // Uses [first, last), which are sent together.
  struct Bucket {
    size_t first = 0, last = 0;
    RoundedReduction rounded;
  };

  Use& use_of(size_t leaf, size_t number);
  void add_buckets(size_t first);
  void agree_on_new_uses();
  std::vector<Use*> uses_in(const Bucket& bucket);
  std::vector<TreeReduction::Summand> sums_of(const std::vector<Use*>& uses);
  // Begins the sums of a bucket, which reduction_.finish() ends.
  void reduce(Bucket& bucket);
  Tensor sum_of_ranks(Bucket& bucket);
  Tensor part_of_rank(Bucket& bucket);
  void keep_own();
  void give_totals();
  void run();
  void send_buckets(std::unique_lock<std::mutex>& lock);

  Communicator& ranks_;
  Shards* const shards_;
  const bool rounds_, local_;
  std::vector<Tensor> leaves_;
  std::map<const void*, size_t> leaf_of_;  // by PassGradients::identity()

  RankSummands summands_;        // of this step
  size_t nodes_ = 0, node_ = 0;  // of this rank; the current one
  // The uses in the order in which all ranks send them. References to them stay valid. The uses
  // after `agreed_` are those that other ranks do not know yet.
  std::deque<Use> uses_;
  size_t agreed_ = 0;
  std::deque<Bucket> buckets_;

  double waited_ = 0;
  TreeReduction reduction_;
  std::vector<float> missing_;  // -0, instead of sums without elements

  // The thread that sends. `mutex_` guards all that follows, Use::ready and, once it is set, the
  // rest of a Use.
  std::mutex mutex_;
  std::condition_variable changed_;
  bool sending_ = false, ends_ = false;
  std::exception_ptr failed_;
  std::thread sender_;
};

}  // namespace fovea::train
