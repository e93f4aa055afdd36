#include "loop/step_sharing.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>

#include "base/append.h"
#include "base/error.h"
#include "base/float_mode.h"
#include "tensor/in_place.h"

namespace fovea::train {
namespace {

// Gradients are sent together until they have this many elements.
constexpr int64_t kBucket = int64_t{1} << 18;

// Returns the sum of the summands of this rank, of `size` elements.
Tensor added(const std::vector<TreeReduction::Summand>& summands, int64_t size) {
  Tensor sum = full({size}, -0.0f);
  for (const TreeReduction::Summand& summand : summands) {
    float* to = floats_of(sum).data();
    for (const std::span<const float> piece : summand)
      for (const float x : piece) *to++ += x;
  }
  return sum;
}

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

template <class T>
std::vector<T> numbers_in(std::string_view bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  return numbers;
}

}  // namespace

StepSharing::StepSharing(Communicator& ranks, const std::vector<model::NamedParameter>& parameters,
                         const Options& options)
    : ranks_(ranks),
      shards_(options.shards),
      rounds_(options.gradients == GradientPrecision::bf16),
      local_(options.local),
      reduction_(ranks) {
  for (const auto& [name, parameter] : parameters) {
    if (!parameter->trainable) continue;
    const Tensor& value = parameter->value;
    check(value.dtype() == DType::f32 && value.device_number() == 0,
          "{}: {} on {}; expected fp32 on the CPU to train on several ranks", name,
          name_of(value.dtype()), name_of(value.device()));
    leaf_of_[PassGradients::identity(value)] = leaves_.size();
    leaves_.push_back(value);
  }
  sender_ = std::thread([this] { run(); });
}

StepSharing::~StepSharing() {
  {
    // After an error, the other ranks may wait for the rest of this step.
    std::unique_lock lock(mutex_);
    for (size_t use = 0; use < agreed_; ++use) uses_[use].ready = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !sending_; });
    ends_ = true;
  }
  changed_.notify_all();
  sender_.join();
}

std::vector<StepNode> StepSharing::share(const std::vector<PassUnits>& passes) {
  const std::vector<std::vector<StepNode>> shares = share_step(passes, size());
  const std::vector<StepNode>& own = shares[static_cast<size_t>(rank())];
  summands_.clear();
  for (const std::vector<StepNode>& of_rank : shares) {
    std::vector<int64_t>& last = summands_.emplace_back();
    for (const StepNode& node : of_rank) last.push_back(node.last);
  }
  nodes_ = own.size();
  node_ = 0;
  for (Use& use : uses_) {
    use = Use{use.leaf, use.number, {}, {}, false};
    use.own.resize(nodes_);
    use.ready = nodes_ == 0;
  }
  {
    const std::lock_guard lock(mutex_);
    sending_ = !buckets_.empty();
  }
  changed_.notify_all();
  return own;
}

StepSharing::Use& StepSharing::use_of(size_t leaf, size_t number) {
  for (Use& use : uses_)
    if (use.leaf == leaf && use.number == number) return use;
  const std::lock_guard lock(mutex_);
  Use& use = uses_.emplace_back(Use{leaf, number, {}, {}, false});
  use.own.resize(nodes_);
  return use;
}

void StepSharing::expect(const StepNode& node, const UnitRange& range, PassGradients& gradients) {
  if (local_ || node_ + 1 < nodes_ || range.last != node.ranges.back().last) return;
  gradients.receive([this](const void* leaf, size_t number, const Tensor& sum) {
    Use& use = use_of(leaf_of_.at(leaf), number);
    use.own[node_] = sum;
    {
      const std::lock_guard lock(mutex_);
      use.ready = true;
    }
    changed_.notify_all();
  });
}

void StepSharing::add(PassGradients& gradients) {
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const std::vector<Tensor> sums = gradients.take(leaves_[leaf]);
    for (size_t number = 0; number < sums.size(); ++number)
      if (sums[number]) use_of(leaf, number).own[node_] = sums[number];
  }
  ++node_;
}

std::vector<double> StepSharing::exchange(const std::vector<double>& own) {
  if (local_) {
    keep_own();
    return own;
  }
  ranks_.does(Activity::exchanging);
  const auto begin = std::chrono::steady_clock::now();
  {
    std::unique_lock lock(mutex_);
    for (size_t use = 0; use < agreed_; ++use) uses_[use].ready = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !sending_; });
    if (failed_) std::rethrow_exception(failed_);
  }
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  // The first number of a rank tells whether it has uses that the others may not know.
  std::vector<double> numbers = {uses_.size() > agreed_ ? 1.0 : 0.0, waited.count()};
  append(numbers, own);
  std::vector<double> all;
  bool news = false;
  waited_ = waited.count();
  for (const std::string& bytes : ranks_.gather(bytes_of(numbers))) {
    const auto theirs = numbers_in<double>(bytes);
    news = news || theirs.at(0) != 0;
    waited_ = std::min(waited_, theirs.at(1));
    all.insert(all.end(), theirs.begin() + 2, theirs.end());
  }
  if (news) agree_on_new_uses();
  give_totals();
  return all;
}

void StepSharing::keep_own() {
  for (Use& use : uses_) {
    std::erase_if(use.own, [](const Tensor& sum) { return !sum; });
    if (use.own.empty()) continue;
    std::vector<TreeReduction::Summand> sums;
    for (const Tensor& sum : use.own) sums.push_back({floats_of(sum)});
    const Tensor& leaf = leaves_[use.leaf];
    use.total = added(sums, leaf.size()).view(leaf.shape());
    kernels(leaf).scale(use.total, use.total, static_cast<float>(scale()), leaf.size());
  }
  give_totals();
}

void StepSharing::give_totals() {
  std::vector<std::vector<Tensor>> totals(leaves_.size());
  for (Use& use : uses_) {
    std::vector<Tensor>& of_leaf = totals[use.leaf];
    of_leaf.resize(std::max(of_leaf.size(), use.number + 1));
    of_leaf[use.number] = std::exchange(use.total, {});
  }
  for (size_t leaf = 0; leaf < totals.size(); ++leaf) {
    if (shards_ != nullptr) {
      const nn::Parameter& own = shards_->trained()[leaf]->own;
      std::erase_if(totals[leaf], [](const Tensor& total) { return !total; });
      if (own.trainable) PassGradients::give(own.value, totals[leaf]);
      continue;
    }
    // A parameter that no rank has reached has no gradient, and is not updated.
    std::erase_if(totals[leaf],
                  [&](const Tensor& total) { return !total || is_missing(total, rounds_); });
    PassGradients::give(leaves_[leaf], totals[leaf]);
  }
}

// In the first step, no use is agreed. Later, a pass may reach a parameter for the first time, such
// as an expert.
void StepSharing::agree_on_new_uses() {
  std::vector<uint64_t> news;  // leaf and number of each
  for (size_t i = agreed_; i < uses_.size(); ++i) {
    news.push_back(uses_[i].leaf);
    news.push_back(uses_[i].number);
  }
  std::vector<Use> agreed;
  for (const std::string& bytes : ranks_.gather(bytes_of(news))) {
    const auto theirs = numbers_in<uint64_t>(bytes);
    for (size_t i = 0; i < theirs.size(); i += 2) {
      const auto is = [&](const Use& use) {
        return use.leaf == theirs[i] && use.number == theirs[i + 1];
      };
      if (std::ranges::none_of(agreed, is)) agreed.push_back(use_of(theirs[i], theirs[i + 1]));
    }
  }
  uses_.resize(agreed_);
  uses_.insert(uses_.end(), agreed.begin(), agreed.end());
  const size_t buckets = buckets_.size();
  add_buckets(std::exchange(agreed_, uses_.size()));
  for (size_t i = buckets; i < buckets_.size(); ++i) reduce(buckets_[i]);
  reduction_.finish();
}

std::vector<StepSharing::Use*> StepSharing::uses_in(const Bucket& bucket) {
  std::vector<Use*> uses;
  for (size_t use = bucket.first; use < bucket.last; ++use) uses.push_back(&uses_[use]);
  return uses;
}

void StepSharing::add_buckets(size_t first) {
  int64_t size = 0;
  for (size_t use = first; use < uses_.size(); ++use) {
    size += leaves_[uses_[use].leaf].size();
    if (size < kBucket && use + 1 < uses_.size()) continue;
    buckets_.push_back({first, use + 1, RoundedReduction(ranks_)});
    first = use + 1;
    size = 0;
  }
}

void StepSharing::run() {
  const FloatMode mode;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return sending_ || ends_; });
    if (ends_) return;
    try {
      send_buckets(lock);
    } catch (...) {
      failed_ = std::current_exception();
    }
    if (!lock.owns_lock()) lock.lock();
    sending_ = false;
    changed_.notify_all();
  }
}

// Several buckets are on their way at a time, unless the next one is not ready.
void StepSharing::send_buckets(std::unique_lock<std::mutex>& lock) {
  for (Bucket& bucket : buckets_) {
    const std::vector<Use*> uses = uses_in(bucket);
    const auto ready = [&] { return std::ranges::all_of(uses, &Use::ready); };
    if (!ready()) {
      lock.unlock();
      reduction_.finish();
      lock.lock();
      changed_.wait(lock, ready);
    }
    lock.unlock();
    reduce(bucket);
    lock.lock();
  }
  lock.unlock();
  reduction_.finish();
}

// Returns the sums of each node, one after another. Sums without elements count as -0, to which any
// number can be added without a change.
std::vector<TreeReduction::Summand> StepSharing::sums_of(const std::vector<Use*>& uses) {
  size_t largest = 0;
  for (const Use* use : uses)
    if (!std::ranges::all_of(use->own, [](const Tensor& sum) { return bool(sum); }))
      largest = std::max(largest, static_cast<size_t>(leaves_[use->leaf].size()));
  if (missing_.size() < largest) missing_.resize(largest, -0.0f);
  std::vector<TreeReduction::Summand> sums(nodes_);
  for (size_t node = 0; node < nodes_; ++node) {
    for (const Use* use : uses) {
      const auto count = static_cast<size_t>(leaves_[use->leaf].size());
      const Tensor& sum = use->own[node];
      sums[node].emplace_back(sum ? floats_of(sum) : std::span(missing_).first(count));
    }
  }
  return sums;
}

void StepSharing::reduce(Bucket& bucket) {
  const std::vector<Use*> uses = uses_in(bucket);
  const Tensor total = shards_ != nullptr ? part_of_rank(bucket) : sum_of_ranks(bucket);
  int64_t begin = 0;
  for (Use* use : uses) {
    const Shape shape = shards_ != nullptr ? shards_->trained()[use->leaf]->own_shape(rank())
                                           : leaves_[use->leaf].shape();
    const int64_t end = begin + elements(shape);
    if (begin < end) use->total = total.rows(begin, end).view(shape);
    use->own.clear();
    begin = end;
  }
}

Tensor StepSharing::sum_of_ranks(Bucket& bucket) {
  const std::vector<TreeReduction::Summand> own = sums_of(uses_in(bucket));
  int64_t size = 0;
  for (const Use* use : uses_in(bucket)) size += leaves_[use->leaf].size();
  if (rounds_) return bucket.rounded(added(own, size));
  Tensor total = empty({size});
  reduction_.begin(summands_, own, floats_of(total));
  return total;
}

// The elements of each rank follow those of the ranks before it.
Tensor StepSharing::part_of_rank(Bucket& bucket) {
  const std::vector<Use*> uses = uses_in(bucket);
  const std::vector<TreeReduction::Summand> sums = sums_of(uses);
  std::vector<TreeReduction::Summand> own(nodes_);
  std::vector<int64_t> counts;
  for (int r = 0; r < size(); ++r) {
    int64_t& count = counts.emplace_back(0);
    for (size_t i = 0; i < uses.size(); ++i) {
      const Shards::Shard& shard = *shards_->trained()[uses[i]->leaf];
      count += shard.size(r);
      for (size_t node = 0; node < nodes_; ++node)
        own[node].push_back(sums[node][i].subspan(static_cast<size_t>(shard.start(r)),
                                                  static_cast<size_t>(shard.size(r))));
    }
  }
  if (rounds_)
    return bucket.rounded.scatter(
        added(own, std::accumulate(counts.begin(), counts.end(), int64_t{0})), counts);
  Tensor part = empty({counts[static_cast<size_t>(rank())]});
  reduction_.begin_scatter(summands_, own, counts, floats_of(part));
  return part;
}

std::vector<int64_t> StepSharing::of_first(const std::vector<int64_t>& own) const {
  return numbers_in<int64_t>(ranks_.gather(rank() == 0 ? bytes_of(own) : "").front());
}

std::vector<double> StepSharing::gather(const std::vector<double>& own) const {
  std::vector<double> all;
  for (const std::string& bytes : ranks_.gather(bytes_of(own)))
    for (const double number : numbers_in<double>(bytes)) all.push_back(number);
  return all;
}

}  // namespace fovea::train
