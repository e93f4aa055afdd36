#include "fovea/tokenizer.h"

#include <algorithm>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "text/tokenizer_state.h"
#include "text/utf8.h"

namespace fovea {
namespace {

// Cuts a text at its added tokens: calls on_text(stretch) and on_token(stretch, id) in turn. The
// leftmost token wins, of those that start together the longest.
template <class OnText, class OnToken>
void cut(const TokenizerState& state, std::string_view text, SpecialTokens special,
         OnText&& on_text, OnToken&& on_token) {
  struct Next {
    const AddedToken* token;
    size_t at;
  };
  std::vector<Next> next;
  for (const AddedToken& token : state.added) {
    if (!token.special || special == SpecialTokens::parsed)
      next.push_back({&token, text.find(token.text)});
  }
  size_t done = 0;
  while (true) {
    const Next* best = nullptr;
    for (Next& candidate : next) {
      if (candidate.at < done) candidate.at = text.find(candidate.token->text, done);
      if (candidate.at == std::string_view::npos) continue;
      if (!best || candidate.at < best->at ||
          (candidate.at == best->at && candidate.token->text.size() > best->token->text.size())) {
        best = &candidate;
      }
    }
    const size_t end = best ? best->at : text.size();
    if (end > done) on_text(text.substr(done, end - done));
    if (!best) return;
    done = end + best->token->text.size();
    on_token(text.substr(end, done - end), best->token->id);
  }
}

}  // namespace

Tokenizer Tokenizer::open(const std::filesystem::path& path) {
  const bool folder = is_folder(path.string());
  const std::string file = (folder ? path / "tokenizer.json" : path).string();
  const std::string config =
      (std::filesystem::path(parent_of(file)) / "tokenizer_config.json").string();
  TokenizerFiles files{read_file(file, kJsonLimit),
                       is_file(config) ? read_file(config, kJsonLimit) : ""};
  return Tokenizer(parse_tokenizer(std::move(files), file, config));
}

void Tokenizer::save(const std::filesystem::path& folder) const {
  const TokenizerFiles& files = state_->files;
  write_file_atomically((folder / "tokenizer.json").string(), files.tokenizer);
  if (!files.config.empty())
    write_file_atomically((folder / "tokenizer_config.json").string(), files.config);
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<int32_t> ids;
  encode(text, ids, special);
  return ids;
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& ids,
                       SpecialTokens special) const {
  const int32_t unknown = state_->unknown.value_or(CharacterModel::absent);
  cut(
      *state_, text, special,
      [&](std::string_view stretch) { state_->model.encode(stretch, unknown, ids); },
      [&](std::string_view, int32_t id) { ids.push_back(id); });
}

std::vector<Token> Tokenizer::tokens(std::string_view text, SpecialTokens special) const {
  std::vector<Token> tokens;
  const int32_t unknown = state_->unknown.value_or(CharacterModel::absent);
  cut(
      *state_, text, special,
      [&](std::string_view stretch) { state_->model.tokens(stretch, unknown, tokens); },
      [&](std::string_view stretch, int32_t id) {
        tokens.push_back({id, stretch});
      });
  return tokens;
}

std::string Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) text += text_of(id);
  return text;
}

std::vector<std::string> Tokenizer::unknown(std::string_view text) const {
  std::vector<std::string> missing;
  std::unordered_set<char32_t> seen;
  const auto look = [&](std::string_view stretch) {
    while (!stretch.empty()) {
      const utf8::Character character = utf8::first(stretch);
      stretch.remove_prefix(character.bytes);
      if (state_->model.id_of(character.code_point) != CharacterModel::absent) continue;
      if (seen.insert(character.code_point).second)
        utf8::append(missing.emplace_back(), character.code_point);
    }
  };
  cut(*state_, text, SpecialTokens::as_text, look, [](std::string_view, int32_t) {});
  return missing;
}

int32_t Tokenizer::size() const { return static_cast<int32_t>(state_->texts.size()); }

std::string_view Tokenizer::text_of(int32_t id) const {
  check(id >= 0 && id < size(), "token id: {} is not in the vocabulary; expected 0 to {}", id,
        size() - 1);
  return state_->texts[static_cast<size_t>(id)];
}

bool Tokenizer::is_special(int32_t id) const {
  return std::any_of(state_->added.begin(), state_->added.end(),
                     [&](const AddedToken& token) { return token.special && token.id == id; });
}

std::optional<int32_t> Tokenizer::unknown_id() const { return state_->unknown; }
std::optional<int32_t> Tokenizer::bos_id() const { return state_->bos; }
std::optional<int32_t> Tokenizer::eos_id() const { return state_->eos; }
uint64_t Tokenizer::hash() const { return hash_bytes(state_->files.tokenizer); }

std::string StreamingDecoder::add(int32_t id) {
  pending_ += tokenizer_.text_of(id);
  const size_t complete = pending_.size() - utf8::incomplete_suffix(pending_);
  std::string text = utf8::repaired(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string StreamingDecoder::finish() { return utf8::repaired(std::exchange(pending_, {})); }

}  // namespace fovea
