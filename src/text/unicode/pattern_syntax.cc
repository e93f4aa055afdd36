#include "unicode/pattern_syntax.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "unicode/pattern_classes.h"
#include "unicode/unicode.h"

namespace fovea::text {
namespace {

// Oniguruma's meaning of \s, \w and \h, in the syntax of a set.
constexpr std::string_view space_set = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a})"
                                       R"(\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view word_set =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9})"
    R"(\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
constexpr int set_nesting_limit = 16;  // nesting of sets; known expressions have two levels
constexpr std::string_view hexadecimal = "0-9a-fA-F";

// Oniguruma's names of properties that PCRE2 lacks or defines in another way, in lower case without
// spaces, "-" and "_", and their meaning in the syntax of a set. The classes of POSIX have the same
// names, but [:punct:] includes symbols, which \p{Punct} does not.
constexpr std::pair<std::string_view, std::string_view> properties[] = {
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"ascii", R"(\x{0}-\x{7f})"},
    {"blank", R"(\p{Zs}\t)"},
    {"cntrl", R"(\p{Cc})"},
    {"digit", R"(\p{Nd})"},
    {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
    {"lower", R"(\p{Lowercase})"},
    {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
    {"punct", R"(\p{P})"},
    {"space", space_set},
    {"upper", R"(\p{Uppercase})"},
    {"word", word_set},
    {"xdigit", hexadecimal},
    {"letter", R"(\p{L})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"modifierletter", R"(\p{Lm})"},
    {"otherletter", R"(\p{Lo})"},
    {"mark", R"(\p{M})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"spacingmark", R"(\p{Mc})"},
    {"enclosingmark", R"(\p{Me})"},
    {"number", R"(\p{N})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"letternumber", R"(\p{Nl})"},
    {"othernumber", R"(\p{No})"},
    {"punctuation", R"(\p{P})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"initialpunctuation", R"(\p{Pi})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"symbol", R"(\p{S})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"othersymbol", R"(\p{So})"},
    {"separator", R"(\p{Z})"},
    {"spaceseparator", R"(\p{Zs})"},
    {"lineseparator", R"(\p{Zl})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"other", R"(\p{C})"},
    {"control", R"(\p{Cc})"},
    {"format", R"(\p{Cf})"},
    {"privateuse", R"(\p{Co})"},
};

std::string_view set_named(std::string_view given) {
  std::string name;
  for (const char c : given)
    if (c != ' ' && c != '-' && c != '_')
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  for (const auto& [known, set] : properties)
    if (known == name) return set;
  return {};
}

// Returns the characters of a property that are unassigned in PCRE2.
std::string younger_of(std::string_view property) {
  constexpr std::pair<std::string_view, uint16_t> classes[] = {
      {"L", unicode::letter},  {"Lu", unicode::upper},          {"Ll", unicode::lower},
      {"N", unicode::number},  {"Nd", unicode::number},         {"M", unicode::mark},
      {"Mn", unicode::mark},   {"P", unicode::punctuation},     {"S", unicode::symbol},
      {"Lo", unicode::letter}, {"Alphabetic", unicode::letter},
  };
  for (const auto& [name, any] : classes) {
    if (name == property) return younger_than_pcre2(any);
  }
  return {};
}

std::string set_of(char letter) {
  switch (letter) {
    case 's':
    case 'S': return std::string(space_set);
    case 'w':
    case 'W': return std::string(word_set) + younger_than_pcre2(unicode::word);
    case 'h':
    case 'H': return std::string(hexadecimal);
    default: return {};
  }
}

class Translator {
 public:
  Translator(std::string_view in, const std::string& where) : in_(in), where_(where) {}

  std::string translate() {
    while (at_ < in_.size()) {
      switch (in_[at_]) {
        case '\\':
          begin_atom();
          escape(false);
          break;
        case '[':
          begin_atom();
          out_ += set();
          break;
        case '(':
          begin_atom();
          open_.push_back(atom_);
          group();
          break;
        case ')':
          take(1);
          if (!open_.empty()) {
            atom_ = open_.back();
            open_.pop_back();
          }
          break;
        case '{': interval(); break;
        case '?':
        case '*':
        case '+': take(1); break;
        default: begin_atom(); take(1);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const char* what) const {
    fail(ErrorKind::Unsupported,
         "{}: {} is not supported (byte {} of the regular expression); "
         "expected a plain set",
         where_, what, at_);
  }

  // Begins an atom, except at a continuation byte, which belongs to the atom of its first byte.
  void begin_atom() {
    if ((static_cast<unsigned char>(in_[at_]) & 0xC0) != 0x80) atom_ = out_.size();
  }
  void take(size_t bytes) {
    out_ += in_.substr(at_, bytes);
    at_ += bytes;
  }

  void escape(bool within_set) {
    const char letter = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    if (letter == 'p' || letter == 'P') return property(letter == 'P', within_set);
    if (letter == 'u') return code_point();
    const std::string set = set_of(letter);
    if (set.empty()) {
      take(2);
      return take_braces();
    }
    const bool negated = letter < 'a';
    if (within_set && negated) {
      if (letter != 'S' && letter != 'W') refuse("a negated class within a set");
      return take(2);
    }
    if (!within_set) out_ += negated ? "[^" : "[";
    out_ += set;
    if (!within_set) out_ += ']';
    at_ += 2;
  }

  void take_braces() {  // copies the braces of \x{41}
    if (at_ < in_.size() && in_[at_] == '{')
      take(std::min(in_.find('}', at_), in_.size() - 1) + 1 - at_);
  }

  // Translates \u and four hexadecimal digits.
  void code_point() {
    const std::string_view digits = in_.substr(at_).substr(2, 4);
    if (digits.size() < 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("\\u without four hexadecimal digits");
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ += 6;
  }

  // Translates \p{L}, \p{^L} or \P{L}.
  void property(bool negated, bool within_set) {
    const size_t begin = out_.size();
    take(2);
    take_braces();
    std::string name = out_.substr(begin);
    name = name.size() > 4 ? name.substr(3, name.size() - 4) : "";
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.erase(0, 1);
    }
    const std::string_view set = set_named(name);
    const std::string younger = younger_of(name);
    if (set.empty() && (younger.empty() || (within_set && negated))) return;
    out_.resize(begin);
    add_set(set.empty() ? fmt::format("\\p{{{}}}{}", name, younger) : with_younger(set), negated,
            within_set);
  }

  // Adds the characters of a class that are unassigned in PCRE2 to a set that is one property.
  static std::string with_younger(std::string_view set) {
    if (set == word_set) return set_of('w');
    const bool single = set.starts_with("\\p{") && set.find('}') == set.size() - 1;
    return std::string(set) + (single ? younger_of(set.substr(3, set.size() - 4)) : "");
  }

  // Adds a set, as a part of the set around it or as a set of its own. A negated part becomes an
  // alternative of the set around it.
  void add_set(const std::string& set, bool negated, bool within_set) {
    if (within_set && negated) return others_.push_back("[^" + set + "]");
    if (!within_set) out_ += negated ? "[^" : "[";
    out_ += set;
    if (!within_set) out_ += ']';
  }

  // Translates [:alpha:] or [:^alpha:] within a set. Returns false if there is no such class.
  bool posix_class() {
    const size_t end = in_.find(":]", at_);
    if (end == in_.npos) return false;
    std::string_view name = in_.substr(at_ + 2, end - at_ - 2);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    std::string set = with_younger(set_named(name));
    if (set.empty()) return false;
    if (name == "punct") set += with_younger(R"(\p{S})");
    add_set(set, negated, true);
    at_ = end + 2;
    return true;
  }

  // Translates a set to an expression for one character. PCRE2 lacks nested sets and intersections:
  // a set within a set becomes an alternative, an intersection ("&&", each side of which is a
  // union) becomes a lookahead.
  std::string set() {
    if (++depth_ > set_nesting_limit) refuse("nesting sets this deeply");
    const std::string outer = std::exchange(out_, "");
    ++at_;
    const bool negated = at_ < in_.size() && in_[at_] == '^';
    if (negated) ++at_;
    if (at_ < in_.size() && in_[at_] == ']') take(1);
    std::vector<std::string> within, sides;
    const std::vector<std::string> outer_others = std::exchange(others_, {});
    const auto end_of_side = [&] {
      within.insert(within.end(), others_.begin(), others_.end());
      others_.clear();
      if (!out_.empty()) within.insert(within.begin(), "[" + std::exchange(out_, "") + "]");
      if (within.empty()) refuse("an empty set");
      sides.push_back(within.size() == 1 ? within[0]
                                         : fmt::format("(?:{})", fmt::join(within, "|")));
      within.clear();
    };
    while (at_ < in_.size() && in_[at_] != ']') {
      if (in_[at_] == '\\') {
        escape(true);
      } else if (in_.substr(at_, 2) == "[:" && posix_class()) {
        continue;
      } else if (in_.substr(at_, 2) == "[:" && in_.find(":]", at_) != in_.npos) {
        take(in_.find(":]", at_) + 2 - at_);
      } else if (in_[at_] == '[') {
        within.push_back(set());
      } else if (in_.substr(at_, 2) == "&&") {
        at_ += 2;
        end_of_side();
      } else {
        take(1);
      }
    }
    if (at_ >= in_.size()) refuse("an unterminated set");
    ++at_;
    --depth_;
    if (within.empty() && sides.empty() && others_.empty() && !out_.empty()) {
      others_ = outer_others;
      return fmt::format("[{}{}]", negated ? "^" : "", std::exchange(out_, outer));
    }
    end_of_side();
    out_ = outer;
    others_ = outer_others;
    return joined(sides, negated);
  }

  static std::string joined(const std::vector<std::string>& sides, bool negated) {
    std::string all;
    for (size_t i = 0; i + 1 < sides.size(); ++i) all += fmt::format("(?={})", sides[i]);
    all = fmt::format("(?:{}{})", all, sides.back());
    return negated ? fmt::format("(?:(?!{})(?s:.))", all) : all;
  }

  // In Oniguruma, (?m) lets the dot match newlines; in PCRE2, (?s) does.
  void group() {
    take(1);
    if (at_ >= in_.size() || in_[at_] != '?') return;
    size_t end = at_ + 1;
    while (end < in_.size() &&
           (in_[end] == 'i' || in_[end] == 'm' || in_[end] == 'x' || in_[end] == '-'))
      ++end;
    if (end >= in_.size() || (in_[end] != ':' && in_[end] != ')')) return take(1);
    for (; at_ < end; ++at_) out_.push_back(in_[at_] == 'm' ? 's' : in_[at_]);
  }

  // Translates an interval; in Oniguruma, X{n,m}+ repeats X{n,m}.
  void interval() {
    size_t end = at_ + 1;
    while (end < in_.size() && ((in_[end] >= '0' && in_[end] <= '9') || in_[end] == ',')) ++end;
    if (end >= in_.size() || in_[end] != '}' || end == at_ + 1) {
      begin_atom();
      return take(1);
    }
    if (in_[at_ + 1] == ',') {  // {,n} is {0,n}
      out_ += "{0";
      ++at_;
    }
    take(end + 1 - at_);
    if (at_ >= in_.size() || in_[at_] != '+') return;
    out_.insert(atom_, "(?:");
    out_ += ")+";
    ++at_;
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0, atom_ = 0;
  std::vector<size_t> open_;         // positions of the open groups in out_
  std::vector<std::string> others_;  // negated classes of the set that is being read
  int depth_ = 0;                    // nesting of sets
};

}  // namespace

std::string from_oniguruma(std::string_view expression, const std::string& where) {
  return Translator(expression, where).translate();
}

}  // namespace fovea::text
