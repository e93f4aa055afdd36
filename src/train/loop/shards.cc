#include "loop/shards.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "kernels/sum_block.h"
#include "tensor/in_place.h"

namespace fovea::train {
namespace {

// Parameters are sent together until they have this many elements.
constexpr int64_t kSentTogether = int64_t{1} << 18;
constexpr size_t kGathered = 64 << 20;  // bytes of a rank in one exchange

int64_t blocks_in(int64_t size) { return (size + kSumBlock - 1) / kSumBlock; }

// Whether the rule updates each element by itself, and a part of the moments is that of a part of
// the elements.
bool can_divide(const std::string& name, const model::Parameter& parameter,
                const MomentOptions& options) {
  const OptimizerKind rule = rule_for(name, parameter, options.optimizer.kind);
  return !options.packed && rule != OptimizerKind::muon && rule != OptimizerKind::adafactor;
}

// Divides a parameter into equal parts, as whole blocks of the norm, or gives all of it to the rank
// that has the fewest elements.
std::vector<int64_t> starts_of(int64_t size, bool divides, std::vector<int64_t>& loads) {
  const auto ranks = std::ssize(loads);
  std::vector<int64_t> starts(loads.size() + 1, size);
  if (divides && blocks_in(size) >= ranks) {
    for (int64_t r = 0; r < ranks; ++r)
      starts[static_cast<size_t>(r)] = blocks_in(size) * r / ranks * kSumBlock;
  } else {
    const auto least = std::ranges::min_element(loads) - loads.begin();
    std::fill(starts.begin(), starts.begin() + least + 1, 0);
  }
  for (size_t r = 0; r < loads.size(); ++r) loads[r] += starts[r + 1] - starts[r];
  return starts;
}

Tensor flat(const Tensor& x) { return x.detach().view({x.size()}); }

}  // namespace

bool is_missing(const Tensor& sum, bool rounded) {
  return std::ranges::all_of(floats_of(sum),
                             [&](float x) { return x == 0 && (rounded || std::signbit(x)); });
}

Shape Shards::Shard::own_shape(int rank) const {
  return size(rank) == starts.back() ? whole->shape : Shape{size(rank)};
}

Shards::Shards(Communicator& ranks, const std::vector<model::NamedParameter>& parameters,
               const OptimizerOptions& options, bool rounded)
    : ranks_(ranks), moments_{options.choice, options.packed_moments}, rounded_(rounded) {
  std::vector<int64_t> loads(static_cast<size_t>(ranks.size()));
  all_.reserve(parameters.size());  // trained_ refers to them
  for (const auto& [name, parameter] : parameters) {
    Shard& shard = all_.emplace_back(Shard{name, parameter, {}, {}});
    shard.own = *parameter;
    if (!parameter->trainable) continue;
    trained_.push_back(&shard);
    parameter->value.want_gradient();
    const int64_t size = elements(parameter->shape);
    shard.starts = starts_of(size, can_divide(name, *parameter, moments_), loads);
    shard.own.trainable = shard.size(ranks.rank()) > 0;
    shard.own.shape = shard.own_shape(ranks.rank());
    const int64_t begin = shard.start(ranks.rank());
    shard.own.value = flat(parameter->value)
                          .rows(begin, shard.start(ranks.rank() + 1))
                          .view(shard.own.shape)
                          .detach();
  }
}

std::vector<model::NamedParameter> Shards::own() {
  std::vector<model::NamedParameter> own;
  for (Shard& shard : all_) own.push_back({shard.name, &shard.own});
  return own;
}

// Each rank sends whether its part of a parameter has a gradient, followed by the sums of its
// blocks. They are added in the order of Optimizer::gradient_norm().
double Shards::gradient_norm(const Optimizer& optimizer) {
  std::string sent;
  const auto put = [&](double number) {
    sent.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  const std::vector<std::vector<double>> squares = optimizer.block_squares();
  auto next_own = squares.begin();
  for (const Shard* shard : trained_) {
    if (!shard->own.trainable) continue;
    std::vector<double> of_blocks = *next_own++;
    const Tensor gradient = shard->own.value.gradient();
    put(gradient && !is_missing(gradient, rounded_) ? 1 : 0);
    of_blocks.resize(static_cast<size_t>(blocks_in(shard->size(ranks_.rank()))));
    for (const double square : of_blocks) put(square);
  }
  const std::vector<std::string> parts = ranks_.gather(sent);
  std::vector<const char*> next;
  for (const std::string& part : parts) next.push_back(part.data());
  double total = 0;
  bad_gradient_.clear();
  for (Shard* shard : trained_) {
    double sum = 0;
    bool reached = false;
    for (int r = 0; r < ranks_.size(); ++r) {
      const auto take = [&] {
        double number = 0;
        std::memcpy(&number,
                    std::exchange(next[static_cast<size_t>(r)],
                                  next[static_cast<size_t>(r)] + sizeof number),
                    sizeof number);
        return number;
      };
      if (shard->size(r) == 0) continue;
      if (take() != 0) reached = true;
      for (int64_t block = 0; block < blocks_in(shard->size(r)); ++block) sum += take();
    }
    total += sum;
    if (!std::isfinite(sum) && bad_gradient_.empty()) bad_gradient_ = "gradient of " + shard->name;
    if (!reached && shard->own.trainable) shard->own.value.clear_gradient();
  }
  return std::sqrt(total);
}

void Shards::gather_weights() {
  const auto me = static_cast<size_t>(ranks_.rank());
  std::vector<float> together;
  for (size_t begin = 0; begin < trained_.size();) {
    size_t end = begin;
    for (int64_t size = 0; end < trained_.size(); ++end) {
      size += elements(trained_[end]->whole->shape);
      if (size > kSentTogether && end > begin) break;
    }
    const std::span<Shard* const> group(trained_.data() + begin, end - begin);
    begin = end;
    // f(its weights of a rank), by rank.
    const auto each = [&](const auto& f) {
      for (size_t r = 0; r < static_cast<size_t>(ranks_.size()); ++r)
        for (const Shard* shard : group)
          f(r, std::span(static_cast<float*>(shard->whole->value.data()) + shard->starts[r],
                         static_cast<size_t>(shard->size(static_cast<int>(r)))));
    };
    std::vector<int64_t> counts(static_cast<size_t>(ranks_.size()));
    each([&](size_t r, std::span<float> weights) { counts[r] += std::ssize(weights); });
    if (group.size() == 1) {  // its weights are in the order of the ranks
      const Tensor& value = group.front()->whole->value;
      ranks_.all_gather(
          {{static_cast<float*>(value.data()), static_cast<size_t>(value.size())}, counts});
      continue;
    }
    together.clear();
    each([&](size_t, std::span<float> weights) {
      together.insert(together.end(), weights.begin(), weights.end());
    });
    ranks_.all_gather({together, counts});
    const float* next = together.data();
    each([&](size_t r, std::span<float> weights) {
      if (r != me) std::copy_n(next, weights.size(), weights.data());
      next += weights.size();
    });
  }
}

std::map<std::string, Tensor> Shards::state(const Optimizer& optimizer) {
  const std::map<std::string, Tensor> own = optimizer.state();
  std::map<std::string, Tensor> all;
  for (const Shard* shard : trained_) {
    if (ranks_.rank() == 0) all["weight." + shard->name] = shard->whole->value.detach();
    for (const Moment& moment : moments_of(shard->name, *shard->whole, moments_)) {
      const std::string name = std::string(moment.name) + "." + shard->name;
      const auto found = own.find(name);
      std::string_view left;
      if (found != own.end())
        left = {static_cast<const char*>(found->second.data()),
                static_cast<size_t>(found->second.size()) * size_of(moment.dtype)};
      std::vector<std::string> parts(static_cast<size_t>(ranks_.size()));
      for (bool more = true; more;) {
        const std::string_view next = left.substr(0, kGathered);
        left.remove_prefix(next.size());
        more = false;
        const std::vector<std::string> sent = ranks_.gather(std::string(next));
        for (size_t r = 0; r < sent.size(); ++r) {
          more = more || sent[r].size() == kGathered;
          if (ranks_.rank() == 0) parts[r] += sent[r];
        }
      }
      if (ranks_.rank() != 0) continue;
      const Tensor tensor = empty(moment.shape, moment.dtype);
      auto* to = static_cast<char*>(tensor.data());
      for (const std::string& part : parts) to = std::ranges::copy(part, to).out;
      all[name] = tensor;
    }
  }
  return all;
}

Shards::Part Shards::part_of(const std::string& name, const Tensor& own) const {
  const std::string parameter = name.substr(name.find('.') + 1);
  const auto shard = std::ranges::find(trained_, parameter, &Shard::name);
  if (shard == trained_.end() || (*shard)->own.shape == (*shard)->whole->shape)
    return {0, own.shape()};
  return {(*shard)->start(ranks_.rank()), (*shard)->whole->shape};
}

}  // namespace fovea::train
