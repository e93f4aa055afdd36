#include "fovea/infer/image_prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "chat/image_messages.h"
#include "image/tiles.h"
#include "open/model_parts.h"
#include "transformer/prompt_images.h"
#include "vision/expanded_prompt.h"
#include "vision/image_tokens.h"

namespace fovea::infer {
namespace {

const model::ImageEncoder& encoder_of(const model::Model& model) {
  if (model::parts_of(model).images == nullptr)
    fail(ErrorKind::InvalidArgument,
         "model: it reads no images; expected one that does, such as LLaVA or SmolVLM");
  return *model::parts_of(model).images;
}

// Finds the tokens of each tile.
void find_tiles(std::vector<model::PromptImages::Part>& tiles, const std::vector<int32_t>& ids,
                const model::ImageEncoder& encoder) {
  int64_t next = 0;
  for (model::PromptImages::Part& tile : tiles) {
    const auto first = next_tile(ids, next, encoder);
    if (!first)
      fail(ErrorKind::BadFile,
           "tokenizer: the text of an image has no token {}; expected {} tokens", encoder.token,
           encoder.tokens());
    tile.first = *first, tile.count = encoder.tokens();
    next = tile.first + tile.count;
  }
}

// Returns the ids of a text, or of its first piece if it `begins` a prompt.
std::vector<int32_t> ids_of(const text::Tokenizer& tokenizer, const std::string& text,
                            text::SpecialTokens special, bool begins) {
  if (special != text::SpecialTokens::parsed || !begins) return tokenizer.encode(text, special);
  text::EncodingOptions whole;
  whole.special = special;
  whole.truncate_and_pad = false;
  std::vector<int32_t> ids = tokenizer.encoding(text, whole).ids;
  if (ids.size() > 1 && tokenizer.eos_id() == ids.back()) ids.pop_back();
  return ids;
}

}  // namespace

bool reads_images(const model::Model& model) { return model::parts_of(model).images != nullptr; }

std::string image_mark(const model::Model& model) {
  const int32_t token = encoder_of(model).token;
  if (token < 0) return "<image>";
  const text::Tokenizer& tokenizer = model.tokenizer();
  if (token >= tokenizer.size())
    fail(ErrorKind::BadFile, "tokenizer: the token {} of an image is unknown; expected 0 to {}",
         token, tokenizer.size() - 1);
  return tokenizer.decode({token});
}

int64_t image_marks(const model::Model& model, const std::string& text) {
  return std::ssize(text::marks_in(text, image_mark(model)));
}

ExpandedPrompt::ExpandedPrompt(const model::Model& model, const std::string& text, size_t count,
                               const std::function<media::Image(size_t)>& image,
                               text::SpecialTokens special, const std::vector<std::string>& names)
    : model_(model), special_(special) {
  const model::ImageEncoder& encoder = encoder_of(model);
  const std::string mark = image_mark(model);
  const std::vector<size_t> offsets = text::marks_in(text, mark);
  check(offsets.size() == count, "prompt: {} marks {} for {} images; expected one for each",
        offsets.size(), mark, count);
  has_token_ = encoder.token >= 0 || count == 0;
  check(has_token_ || !encoder.names_tiles, "tokenizer: it has no token {}; expected one", mark);
  pieces_.emplace_back();
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = i < names.size() ? names[i] : fmt::format("image {}", i + 1);
    media::ImageTiles divided = media::tiles_of(encoder.processor, image(i), name);
    pieces_.back() += text.substr(end, offsets[i] - end);
    if (has_token_)
      pieces_.back() += image_text(divided.rows, divided.columns, encoder, mark);
    else
      pieces_.emplace_back();
    end = offsets[i] + mark.size();
    const int64_t tiles = divided.rows * divided.columns;
    for (int64_t n = 0; n <= tiles; ++n) {
      model::PromptImages::Part& tile = tiles_.emplace_back();
      tile.pixels = std::move(divided.images[static_cast<size_t>(n)]);
      if (n < tiles) tile.row = n / divided.columns, tile.column = n % divided.columns;
    }
  }
  pieces_.back() += text.substr(end);
}

std::vector<int32_t> ExpandedPrompt::ids(const std::string& more) const {
  const int64_t count = encoder_of(model_).tokens();
  std::vector<int32_t> all;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const bool last = i + 1 == pieces_.size();
    const std::vector<int32_t> ids =
        ids_of(model_.tokenizer(), last ? pieces_[i] + more : pieces_[i], special_, i == 0);
    all.insert(all.end(), ids.begin(), ids.end());
    if (!last) all.insert(all.end(), static_cast<size_t>(count), 0);
  }
  return all;
}

ImagePrompt ExpandedPrompt::with_tiles(std::vector<int32_t> ids) {
  ImagePrompt prompt{std::move(ids)};
  if (tiles_.empty()) return prompt;
  const std::shared_ptr<const model::ImageEncoder> kept = model::parts_of(model_).images;
  prompt.images = std::make_shared<model::PromptImages>(
      std::move(tiles_), [kept](const media::Image& pixels) { return (*kept)(pixels); });
  return prompt;
}

ImagePrompt ExpandedPrompt::prompt() {
  if (has_token_) return prompt_of(ids(""));
  int64_t next = 0;
  for (size_t i = 0; i < tiles_.size(); ++i) {
    next += std::ssize(ids_of(model_.tokenizer(), pieces_[i], special_, i == 0));
    tiles_[i].first = next, tiles_[i].count = encoder_of(model_).tokens();
    next += tiles_[i].count;
  }
  return with_tiles(ids(""));
}

ImagePrompt ExpandedPrompt::prompt_of(std::vector<int32_t> ids) {
  check(has_token_, "tokenizer: it has no token for images; expected a text instead of ids");
  find_tiles(tiles_, ids, encoder_of(model_));
  return with_tiles(std::move(ids));
}

ImagePrompt image_prompt(const model::Model& model, const std::string& text, size_t count,
                         const std::function<media::Image(size_t)>& image,
                         text::SpecialTokens special, const std::vector<std::string>& names) {
  const FloatMode mode;
  return ExpandedPrompt(model, text, count, image, special, names).prompt();
}

ImagePrompt image_prompt(const model::Model& model, const std::vector<int32_t>& ids,
                         const media::Image& image, const std::string& name) {
  const FloatMode mode;
  return ExpandedPrompt(model, image_mark(model), 1, [&](size_t) { return image; },
                        text::SpecialTokens::parsed, {name})
      .prompt_of(ids);
}

}  // namespace fovea::infer
