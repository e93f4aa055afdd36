#include "fovea/infer/mine_negatives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/fields.h"
#include "base/float_mode.h"
#include "base/threads.h"
#include "embed/example_files.h"
#include "fovea/core/random.h"
#include "fovea/infer/retrieval.h"
#include "ops/ops.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

constexpr size_t kTextsAtOnce = 512;  // whose vectors are in memory at once, besides the anchors'
constexpr float kOut = -std::numeric_limits<float>::infinity();

// Texts without repetitions.
struct TextSet {
  std::vector<std::string> texts;
  std::unordered_map<std::string, size_t> numbers;

  size_t add(const std::string& text) {
    const auto [at, added] = numbers.emplace(text, texts.size());
    if (added) texts.push_back(text);
    return at->second;
  }
};

struct Candidate {
  size_t text;
  float score;
};
bool scores_higher(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.text < b.text;
}

// Finds the candidates of all anchors and chooses the negatives among them.
class NegativeMiner {
 public:
  NegativeMiner(const Embedder& model, const MiningOptions& options,
                const std::function<bool(double)>& progress)
      : model_(model), options_(options), progress_(progress) {
    read();
    range_ = range_max();
    check_field(range_ - options.range_min >= options.negatives, "negatives",
                "{}, but the range has {} ranks; expected at most as many", options.negatives,
                std::max<int64_t>(0, range_ - options.range_min));
  }

  MinedNegatives mine() {
    search();
    MinedNegatives mined;
    for (size_t anchor = 0; anchor < anchors_.texts.size(); ++anchor) {
      if (options_.reranker) {
        rescore(anchor);
        reach(corpus_.texts.size() + anchor + 1);
      }
      leave_out(anchor, mined);
      add_pairs(anchor, chosen(anchor), mined);
    }
    return mined;
  }

 private:
  void read() {
    const TextExamples examples = read_text_examples(options_.pairs);
    if (examples.kind == ExampleKind::scored)
      fail(ErrorKind::BadFile,
           "{}: has scored pairs; expected pairs of related texts (anchor, "
           "positive)",
           options_.pairs);
    for (const std::string& text : options_.corpus) corpus_.add(text);
    for (size_t i = 0; i < examples.texts[0].size(); ++i) {
      const size_t anchor = anchors_.add(examples.texts[0][i]),
                   positive = corpus_.add(examples.texts[1][i]);
      positives_.resize(anchors_.texts.size());
      std::vector<Candidate>& own = positives_[anchor];
      if (!is_positive(anchor, positive)) own.push_back({positive, kOut});
    }
    found_.resize(positives_.size());
  }

  bool is_positive(size_t anchor, size_t text) const {
    return std::any_of(positives_[anchor].begin(), positives_[anchor].end(),
                       [&](const Candidate& each) { return each.text == text; });
  }

  int64_t range_max() const {
    if (options_.range_max > 0) return options_.range_max;
    const bool limited = options_.margin || options_.relative_margin || options_.max_score;
    return options_.range_min + options_.negatives * (limited ? 10 : 1) + most_positives();
  }
  int64_t most_positives() const {
    size_t most = 0;
    for (const auto& own : positives_) most = std::max(most, own.size());
    return static_cast<int64_t>(most);
  }

  // The steps are the texts and, with a reranker, the anchors.
  void reach(size_t steps) const {
    const size_t all =
        corpus_.texts.size() + (options_.reranker ? anchors_.texts.size() : size_t{0});
    if (progress_ && !progress_(static_cast<double>(steps) / static_cast<double>(all)))
      fail(ErrorKind::Failed, "mining: stopped by the caller");
  }

  // Returns the vectors of texts, of unit length: [texts, C]
  Tensor vectors(const std::vector<std::string>& texts, TextRole role) const {
    EmbedOptions options;
    options.prompt_name = prompt_name_for(model_.prompts(), role);
    options.normalise = true;
    const Embeddings found = model_.embed(texts, options);
    return tensor_of(found.values, {found.count, found.width});
  }

  void search() {
    const NoGradient off;
    const Tensor queries = vectors(anchors_.texts, TextRole::query);
    const auto kept = static_cast<size_t>(range_ + most_positives());
    for (size_t begin = 0; begin < corpus_.texts.size(); begin += kTextsAtOnce) {
      reach(begin);
      const size_t end = std::min(begin + kTextsAtOnce, corpus_.texts.size());
      const std::vector<std::string> texts(corpus_.texts.begin() + static_cast<int64_t>(begin),
                                           corpus_.texts.begin() + static_cast<int64_t>(end));
      const HostValues<float> cosines(
          linear(queries, vectors(texts, TextRole::document)));  // [anchors, texts]
      parallel_tasks(std::ssize(found_), [&](int64_t i) {
        add_block(static_cast<size_t>(i), cosines.row(i), begin, kept);
      });
    }
    reach(corpus_.texts.size());
  }

  void add_block(size_t anchor, std::span<const float> cosines, size_t begin, size_t kept) {
    std::vector<Candidate> all = std::move(found_[anchor]);
    for (size_t i = 0; i < cosines.size(); ++i) all.push_back({begin + i, cosines[i]});
    for (Candidate& positive : positives_[anchor])
      if (positive.text >= begin && positive.text < begin + cosines.size())
        positive.score = cosines[positive.text - begin];
    const auto end = all.begin() + static_cast<int64_t>(std::min(kept, all.size()));
    std::partial_sort(all.begin(), end, all.end(), scores_higher);
    found_[anchor].assign(all.begin(), end);
  }

  void rescore(size_t anchor) {
    for (std::vector<Candidate>* each : {&found_[anchor], &positives_[anchor]}) {
      std::vector<std::string> texts;
      for (const Candidate& candidate : *each) texts.push_back(corpus_.texts[candidate.text]);
      const std::vector<float> scores = options_.reranker(anchors_.texts[anchor], texts);
      check(scores.size() == texts.size(), "reranker: {} scores of {} texts", scores.size(),
            texts.size());
      for (size_t i = 0; i < scores.size(); ++i) (*each)[i].score = scores[i];
    }
  }

  // Leaves the positives out, and what is too similar; sorts the rest.
  void leave_out(size_t anchor, MinedNegatives& mined) {
    std::vector<Candidate>& found = found_[anchor];
    std::erase_if(found, [&](const Candidate& each) { return is_positive(anchor, each.text); });
    float lowest = positives_[anchor].front().score;
    for (const Candidate& each : positives_[anchor]) lowest = std::min(lowest, each.score);
    const auto remove = [&](const std::optional<double>& limit, int64_t& count, auto is_out) {
      if (limit)
        count += static_cast<int64_t>(std::erase_if(found, [&](const Candidate& each) {
          return is_out(each.score, static_cast<float>(*limit));
        }));
    };
    remove(options_.margin, mined.by_margin,
           [&](float score, float margin) { return score + margin > lowest; });
    remove(options_.relative_margin, mined.by_relative_margin,
           [&](float score, float share) { return score > lowest - std::abs(lowest) * share; });
    remove(options_.max_score, mined.by_max_score,
           [&](float score, float most) { return score > most; });
    std::sort(found.begin(), found.end(), scores_higher);
  }

  // Returns the negatives by descending score; too few if there are not enough.
  std::vector<Candidate> chosen(size_t anchor) const {
    const std::vector<Candidate>& found = found_[anchor];
    const auto first = std::min(found.size(), static_cast<size_t>(options_.range_min)),
               last = std::min(found.size(), static_cast<size_t>(range_));
    std::vector<Candidate> ranked(found.begin() + static_cast<int64_t>(first),
                                  found.begin() + static_cast<int64_t>(last));
    const size_t count = std::min(ranked.size(), static_cast<size_t>(options_.negatives));
    if (options_.sampling == NegativeSampling::random) {
      Random random(options_.seed, Stream::sampling, static_cast<uint32_t>(anchor));
      for (size_t i = 0; i < count; ++i) {
        const auto rest = static_cast<double>(ranked.size() - i);
        std::swap(ranked[i], ranked[i + static_cast<size_t>(random.uniform_double() * rest)]);
      }
      std::sort(ranked.begin(), ranked.begin() + static_cast<int64_t>(count), scores_higher);
    }
    ranked.resize(count);
    return ranked;
  }

  void add_pairs(size_t anchor, const std::vector<Candidate>& negatives,
                 MinedNegatives& mined) const {
    for (const Candidate& positive : positives_[anchor]) {
      if (std::ssize(negatives) < options_.negatives) {
        ++mined.incomplete;
        continue;
      }
      MinedPair pair{anchors_.texts[anchor], corpus_.texts[positive.text], {}, {positive.score}};
      for (const Candidate& each : negatives) {
        pair.negatives.push_back(corpus_.texts[each.text]);
        pair.scores.push_back(each.score);
      }
      mined.pairs.push_back(std::move(pair));
    }
  }

  const Embedder& model_;
  const MiningOptions& options_;
  const std::function<bool(double)>& progress_;
  TextSet anchors_, corpus_;
  std::vector<std::vector<Candidate>> positives_, found_;  // of each anchor
  int64_t range_ = 0;                                      // ranks of candidates
};

}  // namespace

void visit(MiningOptions& o, OptionVisitor& v) {
  constexpr int64_t kMostRank = 1'000'000;
  v.text({"pairs", "file of pairs of related texts (CSV, TSV, JSON lines or Parquet)"}, o.pairs);
  v.integer({"negatives", "hard negatives of each pair"}, o.negatives, 1, 1000);
  v.integer({"range_min", "skip the N candidates with the highest scores"}, o.range_min, 0,
            kMostRank);
  v.integer({"range_max", "choose among the N candidates with the highest scores; 0 = automatic"},
            o.range_max, 0, kMostRank);
  const Field
      margin = {"margin", "leave out candidates that score higher than the positive less X"},
      relative = {"relative_margin",
                  "leave out candidates that score higher than the positive less this share "
                  "of its score"},
      most = {"max_score", "leave out candidates that score higher"};
  v.optional(margin, o.margin, [&](double& value) { v.number(margin, value, -1000, 1000); });
  v.optional(relative, o.relative_margin, [&](double& value) { v.number(relative, value, 0, 1); });
  v.optional(most, o.max_score, [&](double& value) { v.number(most, value, -1000, 1000); });
  v.choice({"sampling", "top = the candidates with the highest scores, random = any in the range"},
           o.sampling, {"top", "random"});
  v.seed({"seed", "random seed of the choice of candidates"}, o.seed);
}

MinedNegatives mine_negatives(const Embedder& model, const MiningOptions& options,
                              const std::function<bool(double fraction)>& progress) {
  const FloatMode mode;
  check_fields(options);
  return NegativeMiner(model, options, progress).mine();
}

}  // namespace fovea::infer
