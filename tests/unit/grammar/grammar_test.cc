// Compares the automaton with a naive recogniser.

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <tuple>

#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "support/expect_error.h"

namespace fovea::text {
namespace {

using Symbol = Grammar::Symbol;
using Sequence = Grammar::Sequence;
using Rules = std::vector<std::vector<Sequence>>;  // the alternatives of each rule

Grammar::Bytes all_bytes() {
  Grammar::Bytes all;
  all.set();
  return all;
}

// Returns random rules of a few alternatives over the letters a and b, including nullable,
// ambiguous, empty and mutually recursive ones.
Rules random_rules(std::mt19937_64& random, Grammar& grammar) {
  Rules rules(2 + random() % 4);
  for (std::vector<Sequence>& alternatives : rules) {
    for (size_t count = 1 + random() % 3; count > 0; --count) {
      Sequence& sequence = alternatives.emplace_back();
      for (size_t length = random() % 4; length > 0; --length) {
        const uint64_t kind = random() % 8;
        if (kind < 3)
          sequence.push_back(grammar.range('a', 'a' + static_cast<int>(kind == 1)));
        else if (kind == 3)
          sequence.push_back(grammar.range('b', 'b'));
        else
          sequence.push_back(Grammar::call(static_cast<int32_t>(random() % rules.size())));
      }
    }
  }
  return rules;
}

// A recogniser that decides whether rule 0 derives a word: it adds the derivations of each rule for
// each substring until there are no new ones.
class Naive {
 public:
  Naive(const Rules& rules, std::string word) : rules_(rules), word_(std::move(word)) {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t rule = 0; rule < rules_.size(); ++rule) {
        for (size_t from = 0; from <= word_.size(); ++from) {
          for (const Sequence& sequence : rules_[rule])
            for (const size_t to : ends(sequence, from))
              changed |= derived_.insert({rule, from, to}).second;
        }
      }
    }
  }
  bool accepts() const { return derived_.contains({0, 0, word_.size()}); }

 private:
  std::set<size_t> ends(const Sequence& sequence, size_t from) const {
    std::set<size_t> places = {from};
    for (const Symbol& symbol : sequence) {
      std::set<size_t> next;
      for (const size_t at : places) {
        if (symbol.kind == Symbol::rule) {
          for (size_t to = at; to <= word_.size(); ++to)
            if (derived_.contains({static_cast<size_t>(symbol.index), at, to})) next.insert(to);
        } else if (at < word_.size() && letters(symbol).find(word_[at]) != std::string::npos) {
          next.insert(at + 1);
        }
      }
      places = std::move(next);
    }
    return places;
  }
  // Sets of bytes are numbered in the order of their creation.
  static std::string letters(const Symbol& symbol) {
    return symbol.index == 0 ? "a" : symbol.index == 1 ? "b" : "ab";
  }

  const Rules& rules_;
  std::string word_;
  std::set<std::tuple<size_t, size_t, size_t>> derived_;
};

std::vector<std::string> words_up_to(size_t length) {
  std::vector<std::string> words = {""};
  for (size_t i = 0; i < words.size() && words[i].size() < length; ++i) {
    words.push_back(words[i] + "a");
    words.push_back(words[i] + "b");
  }
  return words;
}

// Returns the state after `word`, or kDead if no accepted word begins with it.
int32_t read(GrammarAutomaton& automaton, std::string_view word) {
  int32_t state = automaton.start();
  for (const char c : word) {
    if (state != GrammarAutomaton::kDead) state = automaton.step(state, static_cast<uint8_t>(c));
  }
  return state;
}

// Compares the state after each short word: whether it accepts, and how many bytes the shortest
// accepted word still needs. `heir`, another automaton of the same grammar, adopts every state and
// must continue in the same way.
void compare(const Rules& rules, GrammarAutomaton& automaton, GrammarAutomaton& heir, int seed) {
  constexpr size_t kLongest = 7, kCompared = 4;
  std::set<std::string> accepted;
  for (const std::string& word : words_up_to(kLongest))
    if (Naive(rules, word).accepts()) accepted.insert(word);
  for (const std::string& word : words_up_to(kLongest)) {
    const int32_t state = read(automaton, word);
    const bool dead = state == GrammarAutomaton::kDead;
    ASSERT_EQ(!dead && automaton.accepts(state), accepted.contains(word)) << seed << ": " << word;
    if (!dead) {
      const int32_t adopted = heir.adopt(automaton, state);
      ASSERT_EQ(heir.adopt(automaton, state), adopted);
      ASSERT_EQ(heir.need(adopted), automaton.need(state)) << seed << ": " << word;
      for (const uint8_t c : {'a', 'b'}) {
        const int32_t next = automaton.step(state, c), theirs = heir.step(adopted, c);
        ASSERT_EQ(theirs == GrammarAutomaton::kDead, next == GrammarAutomaton::kDead);
      }
    }
    if (word.size() > kCompared) continue;
    auto shortest = static_cast<int64_t>(kLongest - word.size() + 1);
    const int64_t beyond = shortest;
    for (const std::string& other : accepted) {
      if (other.starts_with(word))
        shortest = std::min(shortest, std::ssize(other) - std::ssize(word));
    }
    const int64_t need = dead ? Grammar::kNever : automaton.need(state);
    ASSERT_EQ(std::min(need, beyond), shortest) << seed << ": " << word;
    ASSERT_TRUE(dead || need < Grammar::kNever || word.empty()) << "no accepted word";
  }
}

TEST(GrammarAutomaton, AgreesWithANaiveRecogniser) {
  int compared = 0;
  for (int seed = 0; compared < 150; ++seed) {
    std::mt19937_64 random(static_cast<uint64_t>(seed));
    auto grammar = std::make_shared<Grammar>(all_bytes());
    grammar->range('a', 'a'), grammar->range('b', 'b'), grammar->range('a', 'b');
    const Rules rules = random_rules(random, *grammar);
    for (size_t rule = 0; rule < rules.size(); ++rule) grammar->add_rule();
    for (size_t rule = 0; rule < rules.size(); ++rule)
      for (const Sequence& sequence : rules[rule])
        grammar->add(static_cast<int32_t>(rule), sequence);
    try {
      grammar->finish();
    } catch (const Error&) {
      continue;  // left recursion
    }
    GrammarAutomaton automaton(grammar, 0), heir(grammar, 0);
    compare(rules, automaton, heir, seed);
    if (HasFatalFailure()) return;
    ++compared;
  }
}

TEST(GrammarAutomaton, RefusesLeftRecursion) {
  Grammar grammar(all_bytes());
  const int32_t a = grammar.add_rule(), b = grammar.add_rule();
  grammar.add(a, {Grammar::call(b), grammar.range('x', 'x')});
  grammar.add(a, {});
  grammar.add(b, {Grammar::call(a)});
  expect_error(ErrorKind::InvalidArgument, {"begins with itself"}, [&] { grammar.finish(); });
}

}  // namespace
}  // namespace fovea::text
