#include "data/token_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "base/fields.h"
#include "data/token_cache.h"

namespace fovea::train {
namespace {

using Count = TokenCounts::Part;

// A position in the corpus: the number of pieces before it, and of a part the tokens and the bytes.
struct Mark {
  size_t part = 0;
  int64_t pieces = 0, tokens = 0, bytes = 0;
};

// Marks are distant enough that a corpus of a terabyte has a few MB of marks, and close enough that
// encoding the text after a mark again is fast.
constexpr int64_t bytes_between_marks = 4 << 20;

int64_t training_part(int64_t tokens, double validation) {
  return static_cast<int64_t>(static_cast<double>(tokens) * (1 - validation));
}

// Encodes a corpus once, and records marks with which count_training_bytes() finds the bytes that
// the training part of each part covers.
class Encoder {
 public:
  Encoder(Corpus& corpus, const text::Tokenizer& tokenizer, uint64_t width)
      : corpus_(corpus), tokenizer_(tokenizer), width_(width), parts_(corpus.weights().size()) {
    if (corpus.separates_documents()) separator_ = tokenizer.eos_id();
  }

  // Calls sink(packed ids) for each piece.
  template <class Sink>
  void run(SpecialNames* names, Sink&& sink) {
    std::vector<int32_t> ids;
    std::string packed;
    int64_t pieces = 0;
    corpus_.read([&](const Corpus::Piece& piece) {
      const size_t number = part_of(piece);
      Count& part = parts_[number];
      if (marks_.empty() || marks_.back().part != number ||
          part.bytes >= marks_.back().bytes + bytes_between_marks)
        marks_.push_back({number, pieces, part.tokens, part.bytes});
      ids.clear();
      if (follows_separator(piece, pieces)) ids.push_back(*separator_);
      tokenizer_.encode(piece.text, ids);
      if (names != nullptr) names->add(piece.text, piece.starts_document);
      pack(ids, packed);
      sink(std::string_view(packed));
      part.tokens += std::ssize(ids);
      part.bytes += std::ssize(piece.text);
      ++pieces;
    });
  }

  // Returns the counts of each part. Encodes the text after a mark again, since the ids alone do
  // not determine the length of the text of unknown tokens.
  std::vector<Count> count(double validation) {
    std::vector<Mark> at;  // where each part is encoded again
    bool again = false;
    for (size_t part = 0; part < parts_.size(); ++part) {
      Count& count = parts_[part];
      count.training_tokens = training_part(count.tokens, validation);
      at.push_back(mark_before(part, count.training_tokens));
      again |= count.training_tokens < count.tokens;
    }
    if (again) count_training_bytes(at);
    for (size_t part = 0; part < parts_.size(); ++part) {
      Count& count = parts_[part];
      count.training_bytes = count.training_tokens == count.tokens ? count.bytes : at[part].bytes;
    }
    return parts_;
  }

 private:
  size_t part_of(const Corpus::Piece& piece) const { return corpus_.files()[piece.file].part; }

  // Returns the last mark of a part at which it has at most n tokens.
  Mark mark_before(size_t part, int64_t n) const {
    Mark last;
    for (const Mark& mark : marks_)
      if (mark.part == part && mark.tokens <= n) last = mark;
    return last;
  }

  // Moves the mark of each part to the end of its training part.
  void count_training_bytes(std::vector<Mark>& at) {
    int64_t pieces = 0;
    corpus_.read([&](const Corpus::Piece& piece) {
      const size_t number = part_of(piece);
      Mark& here = at[number];
      const int64_t wanted = parts_[number].training_tokens;
      if (pieces >= here.pieces && here.tokens < wanted) {
        if (follows_separator(piece, pieces)) ++here.tokens;
        const int64_t begin = here.bytes;
        if (here.tokens < wanted) here.bytes += std::ssize(piece.text);
        for (const text::Token& token : tokenizer_.tokens(piece.text)) {
          if (here.tokens == wanted) break;
          if (++here.tokens == wanted)
            here.bytes = begin + (token.text.data() + token.text.size() - piece.text.data());
        }
      }
      ++pieces;
    });
  }

  bool follows_separator(const Corpus::Piece& piece, int64_t pieces) const {
    return separator_ && piece.starts_document && pieces > 0;
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
  std::vector<Count> parts_;
  std::vector<Mark> marks_;
};

// Passes the ids of the corpus to `sink`. Returns `counts` with the numbers of tokens and bytes.
template <class Sink>
TokenCounts encode_all(Corpus& corpus, const text::Tokenizer& tokenizer,
                       const TokenStoreOptions& options, TokenCounts counts, Sink&& sink) {
  Encoder encoder(corpus, tokenizer, counts.width);
  encoder.run(options.names, sink);
  counts.parts = encoder.count(options.validation);
  counts.corpus = corpus.hash();
  return counts;
}

// Whether the contents of a cache file are those of the corpus and the tokenizer of `wanted`.
bool fits(const TokenCounts& found, const TokenCounts& wanted, size_t parts, double validation) {
  return found.corpus == wanted.corpus && found.tokenizer == wanted.tokenizer &&
         found.width == wanted.width && found.parts.size() == parts &&
         std::all_of(found.parts.begin(), found.parts.end(), [&](const Count& part) {
           return part.training_tokens == training_part(part.tokens, validation);
         });
}

}  // namespace

void TokenSpan::copy(int64_t first, int64_t length, int32_t* out) const {
  const char* const from = static_cast<const char*>(ids) + first * width;
  const auto size = static_cast<size_t>(length * width);
  if (width == sizeof(int32_t)) {
    std::memcpy(out, from, size);
  } else {
    const auto* const narrow = reinterpret_cast<const uint16_t*>(from);
    for (int64_t i = 0; i < length; ++i) out[i] = narrow[i];
  }
  if (file == nullptr) return;
  constexpr size_t kAround = 64 << 10;  // that a page fault maps as well
  const auto rest = static_cast<size_t>(file->data() + file->size() - from);
  file->release(from, std::min(size + kAround, rest));
}

TokenStore::TokenStore(Corpus& corpus, const text::Tokenizer& tokenizer,
                       const TokenStoreOptions& options) {
  check_field(options.validation >= 0 && options.validation < 1, "validation",
              "is {}; expected at least 0 and below 1", options.validation);
  TokenCounts counts{.tokenizer = tokenizer.hash(),
                     .width = tokenizer.size() <= 65536 ? uint64_t{2} : uint64_t{4},
                     .parts = {}};
  const bool large = corpus.text_bytes() > options.in_memory_bytes;
  if (!large) {
    auto ids = std::make_shared<std::vector<char>>();
    counts = encode_all(corpus, tokenizer, options, counts, [&](std::string_view packed) {
      ids->insert(ids->end(), packed.begin(), packed.end());
    });
    use(std::move(ids), counts);
    return;
  }
  const std::string path = (options.cache / "tokens.bin").string();
  std::optional<TokenCache> cache;
  if (!options.cache.empty()) {
    counts.corpus = corpus.hash();
    cache = open_token_cache(path);
  }
  reused_ = cache && fits(cache->counts, counts, corpus.weights().size(), options.validation);
  if (reused_) {
    use(cache->file, cache->counts);
    return;
  }
  cache.reset();
  if (options.cache.empty() || !options.writes) {
    TemporaryTokens written;
    counts = encode_all(corpus, tokenizer, options, counts,
                        [&](std::string_view packed) { written.append(packed); });
    use(written.mapped(), counts);
    return;
  }
  make_directories(options.cache.string());
  TokenCacheWriter writer(path);
  counts = encode_all(corpus, tokenizer, options, counts,
                      [&](std::string_view packed) { writer.append(packed); });
  writer.commit(counts);
  cache = open_token_cache(path);
  if (!cache || cache->counts != counts)
    fail(ErrorKind::Failed, "{}: is not the file that was written; expected no other writer", path);
  use(cache->file, cache->counts);
}

void TokenStore::use(std::shared_ptr<const std::vector<char>> ids, const TokenCounts& counts) {
  divide(ids->data(), nullptr, counts);
  storage_ = std::move(ids);
}

void TokenStore::use(std::shared_ptr<const MappedFile> file, const TokenCounts& counts) {
  divide(file->data(), file.get(), counts);
  storage_ = std::move(file);
}

void TokenStore::divide(const char* ids, const MappedFile* file, const TokenCounts& counts) {
  corpus_hash_ = counts.corpus;
  const auto width = static_cast<int>(counts.width);
  for (const Count& part : counts.parts) {
    const int64_t held_out = part.tokens - part.training_tokens;
    parts_.push_back({{ids, width, part.training_tokens, part.training_bytes, file},
                      {ids + part.training_tokens * width, width, held_out,
                       part.bytes - part.training_bytes, file}});
    ids += part.tokens * width;
  }
}

}  // namespace fovea::train
