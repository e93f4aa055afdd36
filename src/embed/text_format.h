#pragma once

// How a text, or a pair of texts, becomes the tokens that an encoder reads: its own ones, cut to
// the most that fit, within the special tokens that the tokenizer puts around them.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/spec.h"
#include "fovea/tokenizer.h"

namespace fovea {

struct TokenizedText {
  std::vector<int32_t> ids, types;  // types: empty where all are 0
  int64_t cut = 0;                  // own tokens that did not fit
};

class TextFormat {
 public:
  // InvalidArgument where `most` tokens leave no room beside the special ones.
  TextFormat(Tokenizer tokenizer, int64_t most, bool lower_case, bool types);
  // As the files beside a model's config.json say.
  static TextFormat open(const std::string& folder, const Spec& spec);

  TokenizedText text(std::string_view text) const;
  // The bytes of the text that each of its tokens stands for; none for special ones.
  std::vector<Offsets> places(std::string_view text) const;
  std::vector<int32_t> own_ids(std::string_view text) const;  // without special tokens, uncut
  // Of two texts that do not fit together, the longer one is cut first. The first one comes as its
  // own ids, since it may stand beside thousands of others.
  TokenizedText pair(std::span<const int32_t> first, std::string_view second) const;

  int64_t most() const { return most_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  // The number of special tokens before a text.
  int64_t leading() const { return static_cast<int64_t>(single_.added[0].size()); }
  int64_t trailing() const { return static_cast<int64_t>(single_.added[1].size()); }

 private:
  struct Special {
    int32_t id, type;
  };
  // What the tokenizer adds before, between and after the texts, and which types these have.
  struct Frame {
    std::vector<Special> added[3];
    int32_t types[2] = {0, 0};
    int64_t size() const;
    bool typed() const;
  };
  Frame frame_of(int texts) const;
  TokenizedText framed(const Frame& frame,
                       std::initializer_list<std::span<const int32_t>> texts) const;

  Tokenizer tokenizer_;
  int64_t most_;
  bool lower_case_, types_;
  Frame single_, pair_;
};

}  // namespace fovea
