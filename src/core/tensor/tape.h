#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "fovea/core/autograd.h"
#include "kernels/sum_tree.h"
#include "tensor/tensor.h"

namespace fovea {

// Sums the gradients of leaves over the passes of a step by the tree of sum_tree.h. A leaf that is
// used several times (a tied matrix) has one sum per use; these are added at the end, in the order
// in which backward() reaches them, so that the result does not depend on how the units of a step
// are split into passes. A sum is added as soon as the other half of its node exists.
class PassGradients {
 public:
  void backward(const Tensor& loss, int64_t pass);  // passes must ascend
  void finish();                                    // moves the sums to the leaves' gradients
  // Returns the sums of a leaf, one for each of its uses, and forgets them; none if no pass has
  // reached the leaf. A sum that receive() has given away is empty.
  std::vector<Tensor> take(const Tensor& leaf);
  // From now on, gives away each sum as soon as backward() has written it: the next pass must be
  // the last. `leaf` identifies a leaf, as identity() does.
  using Receiver = std::function<void(const void* leaf, size_t use, const Tensor& sum)>;
  void receive(Receiver receiver) { receiver_ = std::move(receiver); }
  static const void* identity(const Tensor& leaf);
  // Sets a leaf's gradient to the sum of those of its uses, or adds it.
  static void give(const Tensor& leaf, const std::vector<Tensor>& sums);

 private:
  friend class Gradients;
  struct Use {
    SumTree tree;
    std::vector<Tensor> sums;
    bool given = false;
    Out next(int64_t pass, const Tensor& x);
    void merge_complete();
    Tensor total();
    void merge();
  };
  struct Leaf {
    std::vector<Use> uses;
    int64_t pass = -1;
    size_t met = 0;  // uses reached so far in this pass
    const void* identity = nullptr;
  };
  static void add(Gradient& slot, const Tensor& sum);
  Out destination(const std::shared_ptr<Gradient>& slot, const Tensor& x);
  void merge_complete();  // the sums that the last op has written

  Receiver receiver_;
  std::map<std::shared_ptr<Gradient>, Leaf> leaves_;
  std::vector<std::pair<Leaf*, size_t>> written_;  // uses, by the last op
  int64_t pass_ = 0;
};

}  // namespace fovea
