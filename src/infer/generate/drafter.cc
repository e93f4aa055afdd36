#include "generate/drafter.h"

#include <algorithm>

#include "generate/reading.h"
#include "tensor/host_values.h"
#include "tensor/tape.h"

namespace fovea::infer {
namespace {

// Maximum number of unread tokens that the draft model reads per step, over all texts, before its
// first speculative tokens. While it reads a long prompt, the larger model runs without speculative
// tokens instead of waiting.
constexpr int64_t kStepTokens = 512;

// Returns the index of the first token that the draft model reads. If a text exceeds the draft
// model's context, the draft model reads only the last part of it. The start of this part moves by
// half a context at a time, so that most steps continue from the cache.
int64_t first_read(int64_t context, int64_t length) {
  if (length <= context) return 0;
  const int64_t half = std::max<int64_t>(1, context / 2);
  return (length - context + half - 1) / half * half;
}

using Ids = std::vector<int32_t>;

// Returns whether all ids are in the vocabulary. A draft model's vocabulary may lack the padding
// tokens of the larger model.
bool all_below(int64_t vocabulary, Ids::const_iterator begin, Ids::const_iterator end) {
  return std::all_of(begin, end, [&](const int32_t id) { return id < vocabulary; });
}

bool reads(const model::Spec& spec, const Ids& source) {
  const int64_t known = spec.source_vocabulary > 0 ? spec.source_vocabulary : spec.vocabulary;
  return std::ssize(source) <= spec.context && all_below(known, source.begin(), source.end());
}

}  // namespace

model::PagePool::Size Drafter::pool_size(int64_t pages, int64_t texts) {
  return {pages, texts, kStepTokens};
}

Drafter::Drafter(const model::Transformer& model, DType compute, DType cache,
                 const model::PagePool::Size& size)
    : model_(model),
      compute_(compute),
      pool_(model::page_layout(*model.spec.decoder, cache), size, model.token_embedding.device()),
      prefixes_(pool_) {}

bool Drafter::reserve(Text& text, int64_t tokens) {
  return prefixes_.make_room(text.cached, text.cached.length + tokens);
}

// Keeps the part of the cache that matches the text; removes rejected speculative tokens.
int64_t Drafter::begin(DraftRequest& request) {
  const model::Spec& spec = model_.spec;
  request.most = std::min({request.most, spec.context / 2, pool_.layout().most_rejected()});
  if (request.most == 0 || (spec.encoder && !reads(spec, request.source))) return 0;
  if (!request.text) request.text = std::make_shared<Text>(pool_);
  Text& text = *request.text;
  if (spec.encoder && !text.cached.memory) {
    encode_sources(model_, pool_, {{&request.source, &text.cached}}, compute_, kStepTokens);
  }
  const auto first =
      request.ids.begin() + first_read(spec.context, std::ssize(request.ids) + request.most);
  const auto same = std::mismatch(text.ids.begin(), text.ids.end(), first, request.ids.end()).first;
  const int64_t certain = request.ids.end() - first;
  model::shorten(pool_, text.cached, std::min<int64_t>(same - text.ids.begin(), certain - 1));
  text.ids.assign(first, request.ids.end());
  if (text.cached.length == 0 && shares_beginnings(spec)) prefixes_.begin(text.cached, text.ids);
  const auto unread = text.ids.begin() + text.cached.length;
  return all_below(spec.vocabulary, unread, text.ids.end()) ? text.ids.end() - unread : 0;
}

// Reads the rows. Proposes the next token of each row whose text is then completely read, and
// returns the rows that need one more token.
std::vector<Drafter::Row> Drafter::pass(const std::vector<Row>& rows) {
  std::vector<model::KvCache::Member> members;
  std::vector<int32_t> tokens, last;
  for (const auto& [request, count] : rows) {
    Text& text = *request->text;
    members.push_back({&text.cached, count, request->horizon});
    const auto begin = text.ids.begin() + text.cached.length;
    tokens.insert(tokens.end(), begin, begin + count);
    last.push_back(static_cast<int32_t>(std::ssize(tokens) - 1));
  }
  const HostValues<float> logits(logits_of(
      model_, read_batch(model_, pool_, std::move(members), tokens, compute_), last));  // [rows, V]
  int64_t next = 0;
  std::vector<Row> again;
  for (const auto& [request, count] : rows) {
    Text& text = *request->text;
    const std::span<const float> values = logits.row(next++);
    const std::vector<float> row(values.begin(), values.end());
    if (count > 1 && shares_beginnings(model_.spec))
      prefixes_.keep(text.cached, text.ids, text.cached.length);
    model::release_unread(pool_, text.cached);
    if (text.cached.length < std::ssize(text.ids)) continue;
    request->proposed.push_back(request->draw(row));
    text.ids.push_back(request->proposed.back());
    const bool more = std::ssize(request->proposed) < request->most &&
                      request->proposed.back() < model_.spec.vocabulary && reserve(text, 1);
    if (more) again.push_back({request, 1});
  }
  return again;
}

void Drafter::propose(std::vector<DraftRequest>& requests) {
  const NoGradient off;
  std::vector<Row> rows;
  int64_t left = kStepTokens;
  for (DraftRequest& request : requests) {
    const int64_t tokens = std::min(begin(request), left);
    if (tokens == 0 || !reserve(*request.text, tokens)) continue;
    rows.push_back({&request, tokens});
    left -= tokens;
  }
  while (!rows.empty()) rows = pass(rows);
}

}  // namespace fovea::infer
