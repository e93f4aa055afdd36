#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/text/json_grammar.h"

namespace fovea::text {

// Constraints that restrict generation to the texts of a grammar, followed by the end of the text.
// They have the limits of json_constraint(), and are for one request each. All throw
// InvalidArgument if the description is invalid, too large, or requires text that the vocabulary
// cannot represent.

// `text`: a grammar in llama.cpp's notation, GBNF, whose first rule is root. Left recursion is
// refused.
Constraint gbnf_constraint(std::shared_ptr<const JsonVocabulary> vocabulary, std::string_view text,
                           int64_t most_tokens = -1);
// `regex`: an expression that matches the whole text, in the notation of Python's re. Groups,
// alternatives, sets, quantifiers, \d, \w, \s and escapes of characters are supported; look-around,
// references and anchors within the expression are refused.
Constraint regex_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                            std::string_view regex, int64_t most_tokens = -1);
Constraint choice_constraint(std::shared_ptr<const JsonVocabulary> vocabulary,
                             const std::vector<std::string>& texts, int64_t most_tokens = -1);

}  // namespace fovea::text
