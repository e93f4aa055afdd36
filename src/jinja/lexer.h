#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace fovea::jinja {

enum class TokenType {
  data,  // text between tags, white space control done
  variable_begin,
  variable_end,
  block_begin,
  block_end,
  name,
  string,  // value holds it
  number,  // value holds it
  symbol,
  end,
};

struct LexedToken {
  TokenType type;
  std::string text;  // of a name, a symbol or data; the source of the others
  Value value;
  Position place;
};

// The tokens of a template, the last one `end`. With trim_blocks and lstrip_blocks: a line that
// holds only a block tag or a comment leaves no trace. BadFile for what is no token.
std::vector<LexedToken> lex(std::string_view source, const std::string& name);

[[noreturn]] void refuse_source(ErrorKind kind, std::string_view name, Position place,
                                const std::string& what);

}  // namespace fovea::jinja
