#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cache/prefix_cache.h"
#include "model/transformer.h"

namespace fovea {

// A smaller model that guesses what a larger one with the same vocabulary will write, so that the
// larger one reads several tokens in one pass (Leviathan et al. 2023). Each guess is compared with
// the token that the larger one draws, hence no answer depends on a draft.
class Drafter {
 public:
  // Keeps what it read of texts in at most so many pages; where they are full it guesses nothing.
  Drafter(const Transformer& model, DType compute, DType cache, int64_t pages);

  // What it holds of one text. Not to outlive the Drafter.
  struct Text {
    explicit Text(PagePool& its_pool) : pool(its_pool) {}
    ~Text() { shorten(pool, cached, 0); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    PagePool& pool;
    CachedText cached;
    std::vector<int32_t> ids;  // of which the first cached.length are in the cache
  };

  // Draws a token from logits [V] behind the text and what was guessed so far.
  using Draw = std::function<int32_t(const std::vector<float>& logits)>;

  struct Wish {
    const std::vector<int32_t>& ids;     // what stands there for sure
    const std::vector<int32_t>& source;  // of an encoder
    std::shared_ptr<Text>& text;         // made here, for the next time
    int64_t most = 0;                    // guesses
    int64_t horizon = 0;                 // as in KvCache::Member
    Draw draw = {};
    std::vector<int32_t> guessed = {};  // the result: none where there is no room for the text
  };
  void guess(std::vector<Wish>& wishes);

 private:
  struct Row {  // of a pass
    Wish* wish;
    int64_t tokens;
  };
  int64_t begin(Wish& wish);  // how many tokens are to be read before the first guess
  bool reserve(Text& text, int64_t tokens);
  std::vector<Row> pass(const std::vector<Row>& rows);

  const Transformer& model_;
  DType compute_;
  PagePool pool_;
  PrefixCache prefixes_;
};

}  // namespace fovea
