#include "data/token_store.h"

#include <cstring>
#include <optional>
#include <string>

#include "base/fields.h"
#include "data/token_cache.h"

namespace fovea::train {
namespace {

// The position of a piece in the corpus, in three units.
struct Mark {
  int64_t pieces = 0, tokens = 0, bytes = 0;
};

// Marks are distant enough that a corpus of a terabyte has a few MB of marks, and close enough that
// encoding the text after a mark again is fast.
constexpr int64_t bytes_between_marks = 4 << 20;

// Encodes a corpus once, and records marks with which bytes_of_first(n) computes the number of
// bytes that the first n tokens cover.
class Encoder {
 public:
  Encoder(Corpus& corpus, const text::Tokenizer& tokenizer, uint64_t width)
      : corpus_(corpus), tokenizer_(tokenizer), width_(width) {
    if (corpus.separates_documents()) separator_ = tokenizer.eos_id();
  }

  // Calls sink(packed ids) for each piece.
  template <class Sink>
  void run(SpecialNames* names, Sink&& sink) {
    std::vector<int32_t> ids;
    std::string packed;
    corpus_.read([&](const Corpus::Piece& piece) {
      if (end_.bytes >= marks_.back().bytes + bytes_between_marks) marks_.push_back(end_);
      ids.clear();
      if (follows_separator(piece, end_)) ids.push_back(*separator_);
      tokenizer_.encode(piece.text, ids);
      if (names != nullptr) names->add(piece.text, piece.starts_document);
      pack(ids, packed);
      sink(std::string_view(packed));
      end_.tokens += static_cast<int64_t>(ids.size());
      end_.bytes += static_cast<int64_t>(piece.text.size());
      ++end_.pieces;
    });
  }

  int64_t tokens() const { return end_.tokens; }
  int64_t bytes() const { return end_.bytes; }

  // Returns the number of bytes of the first `tokens`. Encodes the text after a mark again, since
  // the ids alone do not determine the length of the text of unknown tokens.
  int64_t bytes_of_first(int64_t tokens) {
    if (tokens == end_.tokens) return end_.bytes;
    Mark from;
    for (const Mark& mark : marks_) {
      if (mark.tokens <= tokens) from = mark;
    }
    Mark at{0, from.tokens, from.bytes};
    corpus_.read([&](const Corpus::Piece& piece) {
      if (at.pieces >= from.pieces && at.tokens < tokens) {
        if (follows_separator(piece, at)) ++at.tokens;
        const int64_t begin = at.bytes;
        if (at.tokens < tokens) at.bytes += static_cast<int64_t>(piece.text.size());
        for (const text::Token& token : tokenizer_.tokens(piece.text)) {
          if (at.tokens == tokens) break;
          if (++at.tokens == tokens)
            at.bytes = begin + (token.text.data() + token.text.size() - piece.text.data());
        }
      }
      ++at.pieces;
    });
    return at.bytes;
  }

 private:
  bool follows_separator(const Corpus::Piece& piece, const Mark& at) const {
    return separator_ && piece.starts_document && at.pieces > 0;
  }

  void pack(const std::vector<int32_t>& ids, std::string& packed) const {
    packed.resize(ids.size() * width_);
    if (width_ == sizeof(int32_t)) {
      std::memcpy(packed.data(), ids.data(), packed.size());
      return;
    }
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto id = static_cast<uint16_t>(ids[i]);
      std::memcpy(packed.data() + i * sizeof id, &id, sizeof id);
    }
  }

  Corpus& corpus_;
  const text::Tokenizer& tokenizer_;
  uint64_t width_;
  std::optional<int32_t> separator_;
  Mark end_;
  std::vector<Mark> marks_ = {Mark{}};
};

int64_t training_part(int64_t tokens, double validation) {
  return static_cast<int64_t>(static_cast<double>(tokens) * (1 - validation));
}

// Passes the ids of the corpus to `sink`. Returns `counts` with the numbers of tokens and bytes.
template <class Sink>
TokenCacheContents encode_all(Corpus& corpus, const text::Tokenizer& tokenizer,
                              const TokenStoreOptions& options, TokenCacheContents counts,
                              Sink&& sink) {
  Encoder encoder(corpus, tokenizer, counts.width);
  encoder.run(options.names, sink);
  counts.tokens = encoder.tokens();
  counts.bytes = encoder.bytes();
  counts.training_tokens = training_part(counts.tokens, options.validation);
  counts.training_bytes = encoder.bytes_of_first(counts.training_tokens);
  counts.corpus = corpus.hash();
  return counts;
}

}  // namespace

void TokenSpan::copy(int64_t first, int64_t length, int32_t* out) const {
  if (width == sizeof(int32_t)) {
    std::memcpy(out, static_cast<const int32_t*>(ids) + first,
                static_cast<size_t>(length) * sizeof(int32_t));
    return;
  }
  const uint16_t* from = static_cast<const uint16_t*>(ids) + first;
  for (int64_t i = 0; i < length; ++i) out[i] = from[i];
}

TokenStore::TokenStore(Corpus& corpus, const text::Tokenizer& tokenizer,
                       const TokenStoreOptions& options) {
  check_field(options.validation >= 0 && options.validation < 1, "validation",
              "is {}; expected at least 0 and below 1", options.validation);
  TokenCacheContents counts{.tokenizer = tokenizer.hash(),
                            .width = tokenizer.size() <= 65536 ? uint64_t{2} : uint64_t{4}};
  const bool large = !options.cache.empty() && corpus.bytes() > options.in_memory_bytes;
  const std::string path = large ? (options.cache / "tokens.bin").string() : "";
  const auto fits = [&](const TokenCacheContents& found) {
    return found.corpus == counts.corpus && found.tokenizer == counts.tokenizer &&
           found.width == counts.width &&
           found.training_tokens == training_part(found.tokens, options.validation);
  };
  std::optional<TokenCache> cache;
  if (large) {
    counts.corpus = corpus.hash();
    cache = open_token_cache(path);
  }
  reused_ = cache && fits(cache->counts);
  if (!reused_ && (!large || !options.writes)) {
    auto ids = std::make_shared<std::vector<char>>();
    counts = encode_all(corpus, tokenizer, options, counts, [&](std::string_view packed) {
      ids->insert(ids->end(), packed.begin(), packed.end());
    });
    use(ids, ids->data(), counts);
    return;
  }
  if (!reused_) {
    cache.reset();
    make_directories(options.cache.string());
    TokenCacheWriter writer(path);
    counts = encode_all(corpus, tokenizer, options, counts,
                        [&](std::string_view packed) { writer.append(packed); });
    writer.commit(counts);
    cache = open_token_cache(path);
    if (!cache || cache->counts != counts) {
      fail(ErrorKind::Failed, "{}: is not the file that was written; expected no other writer",
           path);
    }
  }
  use(cache->file, cache->file->data(), cache->counts);
}

void TokenStore::use(std::shared_ptr<const void> storage, const char* ids,
                     const TokenCacheContents& counts) {
  storage_ = std::move(storage);
  corpus_hash_ = counts.corpus;
  const auto width = static_cast<int>(counts.width);
  training_ = {ids, width, counts.training_tokens, counts.training_bytes};
  validation_ = {ids + counts.training_tokens * width, width,
                 counts.tokens - counts.training_tokens, counts.bytes - counts.training_bytes};
}

}  // namespace fovea::train
