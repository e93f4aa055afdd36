#include "hub/name.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace fovea::model {
namespace {

constexpr size_t kLongest = 96;  // characters of a user or of a repository

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_segment(std::string_view text) {
  if (text.empty() || text.size() > kLongest || text.front() == '.' || text.back() == '.' ||
      text.front() == '-' || text.back() == '-' || text.find("..") != text.npos ||
      text.find("--") != text.npos)  // -- separates USER and NAME in the cache
    return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  });
}

// Removes the text up to and including `separator` from the front of `rest`, and returns what is
// before the separator; all of it without a separator.
std::string_view take_until(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return taken;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Reads REPOSITORY[@REVISION][:QUANTISATION or FILE.gguf].
bool take_short(std::string_view text, HubName& name) {
  std::string_view before = take_until(text, ':');
  const std::string_view wanted = text;
  name.repository = take_until(before, '@');
  if (!before.empty()) name.revision = before;
  (wanted.ends_with(".gguf") ? name.file : name.quantisation) = wanted;
  return true;
}

// Reads REPOSITORY[/tree/REVISION], REPOSITORY/blob/REVISION/FILE or REPOSITORY/resolve/....
bool take_address(std::string_view text, HubName& name) {
  text = text.substr(0, std::min(text.find_first_of("?#"), text.size()));
  while (text.ends_with('/')) text.remove_suffix(1);
  if (take_prefix(text, "datasets/")) name.dataset = true;
  const std::string user(take_until(text, '/'));
  std::string_view repository = take_until(text, '/');
  if (repository.find_first_of("@:") != repository.npos) {  // hf.co/USER/NAME:Q4_K_M
    if (!text.empty()) return false;
    take_short(repository, name);
    name.repository = user + "/" + name.repository;
    return true;
  }
  name.repository = repository.empty() ? user : user + "/" + std::string(repository);
  if (text.empty()) return true;
  const std::string_view view = take_until(text, '/');
  if (view != "tree" && view != "blob" && view != "resolve") return false;
  name.revision = take_until(text, '/');
  if (name.revision == "refs") {  // refs/pr/1 and refs/convert/parquet
    name.revision += "/" + std::string(take_until(text, '/'));
    name.revision += "/" + std::string(take_until(text, '/'));
  }
  name.file = text;
  return view == "tree" ? text.empty() : !text.empty();
}

bool is_valid(const HubName& name) {
  return is_repository(name.repository) && is_inner_path(name.revision) &&
         (name.file.empty() || is_inner_path(name.file)) &&
         std::all_of(name.quantisation.begin(), name.quantisation.end(),
                     [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-'; });
}

}  // namespace

bool is_repository(std::string_view text) {
  const size_t slash = text.find('/');
  return is_segment(text.substr(0, slash)) &&
         (slash == text.npos || is_segment(text.substr(slash + 1)));
}

bool is_inner_path(std::string_view text) {
  constexpr size_t kLongestPath = 1024;
  if (text.empty() || text.size() > kLongestPath || text.ends_with('/')) return false;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = take_until(rest, '/');
    if (part.empty() || part == "." || part == "..") return false;
  }
  return std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\';
  });
}

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::optional<ParsedHubName> parse_name(std::string_view text, const HubSettings& settings) {
  ParsedHubName parsed;
  std::string_view rest = text;
  bool valid = false;
  if (take_prefix(rest, "hf://") || take_prefix(rest, "hf:")) {
    parsed.certain = true;
    if (take_prefix(rest, "datasets/")) parsed.name.dataset = true;
    valid = take_short(rest, parsed.name);
  } else if (take_prefix(rest, settings.endpoint + "/") ||
             take_prefix(rest, "https://huggingface.co/") || take_prefix(rest, "https://hf.co/") ||
             take_prefix(rest, "huggingface.co/") || take_prefix(rest, "hf.co/")) {
    parsed.certain = true;
    valid = take_address(rest, parsed.name);
  } else {
    valid = take_short(rest, parsed.name) && !parsed.name.repository.ends_with(".gguf") &&
            parsed.name.repository.find('/') != std::string::npos;
  }
  if (valid && is_valid(parsed.name)) return parsed;
  if (!parsed.certain) return {};
  fail(ErrorKind::InvalidArgument,
       "{}: not a name of the Hugging Face Hub; expected hf:USER/NAME, hf:USER/NAME:Q4_K_M, "
       "hf:USER/NAME@REVISION, or the address of a repository or of a file in it",
       text);
}

std::optional<HubName> parse_hub_name(std::string_view text, const HubSettings& settings) {
  const auto parsed = parse_name(text, settings);
  return parsed ? std::optional(parsed->name) : std::nullopt;
}

std::string text_of(const HubName& name) {
  std::string text = name.dataset ? "datasets/" + name.repository : name.repository;
  if (name.repository.find('/') == std::string::npos || name.dataset) text = "hf:" + text;
  if (name.revision != "main") text += "@" + name.revision;
  const std::string& wanted = name.file.empty() ? name.quantisation : name.file;
  return wanted.empty() ? text : text + ":" + wanted;
}

}  // namespace fovea::model
