#include "generate/prompt_cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "generate/reading.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"

namespace fovea::infer {
namespace {

using Contents = model::PrefixCache::Contents;

// Describes what a file must agree with: the model, and the sizes and types of pages.
std::string identity_of(const PromptCache& cache, const model::PagePool& pool) {
  std::string text = fmt::format("{} {}", cache.identity, name_of(pool.layout().dtype));
  for (size_t group = 0; group < pool.groups(); ++group)
    text += fmt::format(" {}", pool.page_bytes(group));
  return text;
}

std::vector<int32_t> integers_of(const SafeTensors& file, const std::string& path,
                                 const std::string& name, int64_t most) {
  const Tensor x = file.tensor(name);
  if (x.dtype() != DType::i32 || x.rank() != 1 || x.size() > most)
    fail(ErrorKind::BadFile, "{}: tensor {} has another shape or type; expected i32 [n]", path,
         name);
  const HostValues<int32_t> values(x);
  return {values.begin(), values.end()};
}

Contents read_prompt(const PromptCache& cache, const model::PagePool& pool) {
  const SafeTensors file(cache.path);
  const auto found = file.metadata().find("prompt_of");
  if (found == file.metadata().end())
    fail(ErrorKind::BadFile,
         "{}: not the keys and values of a prompt; expected a file that "
         "--prompt-cache wrote",
         cache.path);
  if (found->second != identity_of(cache, pool))
    fail(ErrorKind::BadFile,
         "{}: keys and values of another model or precision; expected those of this model (remove "
         "the file)",
         cache.path);
  Contents contents;
  constexpr int64_t kMost = 1 << 30;
  contents.tokens = integers_of(file, cache.path, "tokens", kMost);
  const int64_t count = std::ssize(contents.tokens) / kPageTokens;
  for (size_t group = 0; group < pool.groups(); ++group) {
    Contents::Group& one = contents.groups.emplace_back();
    one.present = integers_of(file, cache.path, fmt::format("present.{}", group), count);
    const auto is_flag = [](int32_t present) { return present == 0 || present == 1; };
    bool fits = std::ssize(one.present) == count && std::ranges::all_of(one.present, is_flag);
    // Only groups of limited reach may lack pages.
    if (group == 0) fits = fits && std::ranges::count(one.present, 1) == count;
    if (const int64_t bytes = pool.page_bytes(group); bytes > 0 && count > 0) {
      one.pages = file.tensor(fmt::format("pages.{}", group));
      fits = fits && one.pages.dtype() == DType::u8 && one.pages.shape() == Shape{count, bytes};
    }
    if (!fits)
      fail(ErrorKind::BadFile, "{}: group {} is damaged; expected {} pages (remove the file)",
           cache.path, group, count);
  }
  return contents;
}

int64_t common_pages(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  const auto size = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return (std::mismatch(a.begin(), a.begin() + size, b.begin()).first - a.begin()) / kPageTokens;
}

}  // namespace

void load_prompt(const PromptCache& cache, const model::Spec& spec,
                 const std::vector<int32_t>& prompt, Scheduler& scheduler) {
  if (spec.encoder || !shares_beginnings(spec))
    fail(ErrorKind::Unsupported,
         "prompt cache: the model's keys depend on the rest of the text; expected a decoder "
         "without scaled positions");
  if (!is_file(cache.path)) return;
  const Contents contents = read_prompt(cache, scheduler.pool());
  const int64_t count =
      std::min(common_pages(contents.tokens, prompt), scheduler.pool().free_pages(0));
  if (count > 0) scheduler.prefixes().restore(contents, count);
}

void save_prompt(const PromptCache& cache, const std::vector<int32_t>& prompt,
                 Scheduler& scheduler) {
  const Contents contents = scheduler.prefixes().contents(prompt);
  if (contents.tokens.empty()) return;
  if (is_file(cache.path)) {
    const Contents before = read_prompt(cache, scheduler.pool());
    if (common_pages(before.tokens, prompt) * kPageTokens >= std::ssize(contents.tokens)) return;
  }
  std::map<std::string, Tensor> tensors = {
      {"tokens", tensor_of(contents.tokens, {std::ssize(contents.tokens)})}};
  for (size_t group = 0; group < contents.groups.size(); ++group) {
    const Contents::Group& one = contents.groups[group];
    tensors[fmt::format("present.{}", group)] = tensor_of(one.present, {std::ssize(one.present)});
    if (one.pages) tensors[fmt::format("pages.{}", group)] = one.pages;
  }
  const SafeTensorsImage image(tensors, {{"prompt_of", identity_of(cache, scheduler.pool())}});
  write_file_atomically(cache.path, image.pieces());
}

}  // namespace fovea::infer
