#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "cache/prefix_cache.h"
#include "transformer/transformer.h"

namespace fovea::infer {

// A smaller model with the same vocabulary that proposes the next tokens, so that the
// larger model reads several tokens in one pass (Leviathan et al. 2023). Each of them is compared
// with the token that the larger model draws, so the smaller model does not affect the generated
// tokens.
class Drafter {
 public:
  // Returns the size of a pool with `pages` pages for `texts` texts.
  static model::PagePool::Size pool_size(int64_t pages, int64_t texts);

  // Proposes no tokens for texts that do not fit into a pool of this size.
  Drafter(const model::Transformer& model, DType compute, DType cache,
          const model::PagePool::Size& size);

  // The draft's state for one text. Must not outlive the Drafter.
  struct Text {
    explicit Text(model::PagePool& its_pool) : pool(its_pool) {}
    ~Text() { model::shorten(pool, cached, 0); }
    Text(const Text&) = delete;
    Text& operator=(const Text&) = delete;

    model::PagePool& pool;
    model::CachedText cached;
    std::vector<int32_t> ids;  // the first cached.length of them are in the cache
  };

  // Draws a token from the logits [V] of the token after the text and its previous speculative
  // tokens.
  using Draw = std::function<int32_t(const std::vector<float>& logits)>;

  struct DraftRequest {
    const std::vector<int32_t>& ids;     // the tokens that are final
    const std::vector<int32_t>& source;  // input of an encoder
    std::shared_ptr<Text>& text;         // created by propose(), kept for the next call
    int64_t most = 0;                    // maximum number of speculative tokens
    int64_t horizon = 0;                 // see KvCache::Member
    Draw draw = {};
    std::vector<int32_t> proposed = {};  // result; may be empty, for example if the cache is full
  };
  // Sets `proposed` of each request.
  void propose(std::vector<DraftRequest>& requests);

 private:
  struct Row {  // one text of a pass
    DraftRequest* request;
    int64_t tokens;
  };
  // Returns the number of tokens to read before the first speculative token.
  int64_t begin(DraftRequest& request);
  bool reserve(Text& text, int64_t tokens);
  std::vector<Row> pass(const std::vector<Row>& rows);

  const model::Transformer& model_;
  DType compute_;
  model::PagePool pool_;
  model::PrefixCache prefixes_;
};

}  // namespace fovea::infer
