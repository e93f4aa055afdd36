#include "fovea/image_prompt.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/float_mode.h"
#include "families/model_parts.h"
#include "image/tiles.h"
#include "model/prompt_images.h"

namespace fovea {
namespace {

constexpr std::string_view kGuard = "\xEF\xB7\x90";  // U+FDD0: see Tokenizer::guarded()

const ImageEncoder& encoder_of(const Model& model) {
  if (model.parts().images == nullptr)
    fail(ErrorKind::InvalidArgument,
         "model: it reads no pictures; expected one that does, such as LLaVA or SmolVLM");
  return *model.parts().images;
}

// Returns the places of the marks that are not guarded.
std::vector<size_t> places_of(const std::string& mark, const std::string& text) {
  std::vector<size_t> places;
  for (size_t at = 0; (at = text.find(mark, at)) != text.npos; at += mark.size())
    if (!std::string_view(text).substr(0, at).ends_with(kGuard)) places.push_back(at);
  return places;
}

std::string repeated(const std::string& text, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text;
  return all;
}

// The text in the place of a mark. Idefics3's is that of Laurençon et al. 2024, 3.3.
std::string text_of(const ImageTiles& tiles, const ImageEncoder& encoder, const std::string& mark) {
  const std::string tile = repeated(mark, encoder.tokens());
  if (!encoder.names_tiles) return tile;
  const std::string frame = "<fake_token_around_image>";
  std::string text;
  for (int64_t row = 1; row <= tiles.rows; ++row) {
    for (int64_t column = 1; column <= tiles.columns; ++column)
      text += fmt::format("{}<row_{}_col_{}>{}", frame, row, column, tile);
    text += "\n";
  }
  if (tiles.rows > 0) text += "\n";
  return text + frame + "<global-img>" + tile + frame;
}

// Finds the tokens of each tile.
std::vector<PromptImages::Part> parts_of(std::vector<Image> tiles, const std::vector<int32_t>& ids,
                                         const ImageEncoder& encoder) {
  const int64_t count = encoder.tokens();
  std::vector<PromptImages::Part> parts;
  int64_t next = 0;
  for (Image& tile : tiles) {
    const auto found = std::find(ids.begin() + next, ids.end(), encoder.token);
    const int64_t first = found - ids.begin();
    const bool whole =
        std::ssize(ids) - first >= count &&
        std::all_of(found, found + count, [&](int32_t id) { return id == encoder.token; });
    if (!whole)
      fail(ErrorKind::BadFile,
           "tokenizer: the text of a picture is not {} tokens {}; expected them", count,
           encoder.token);
    parts.push_back({first, count, std::move(tile)});
    next = first + count;
  }
  return parts;
}

// Returns the ids of a text, or of its first piece if it `begins` a prompt.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, const std::string& text,
                            SpecialTokens special, bool begins) {
  if (special != SpecialTokens::parsed || !begins) return tokenizer.encode(text, special);
  EncodingOptions whole;
  whole.special = special;
  whole.truncate_and_pad = false;
  std::vector<int32_t> ids = tokenizer.encoding(text, whole).ids;
  if (ids.size() > 1 && tokenizer.eos_id() == ids.back()) ids.pop_back();
  return ids;
}

// The prompt of pieces of text with a tile after each but the last, if the vocabulary has no token
// for pictures: any token takes the place of a vector.
ImagePrompt prompt_of_pieces(const std::vector<std::string>& pieces, std::vector<Image> tiles,
                             const Model& model, SpecialTokens special,
                             std::vector<PromptImages::Part>& parts) {
  const int64_t count = model.parts().images->tokens();
  ImagePrompt prompt;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<int32_t> ids = ids_of(model.tokenizer(), pieces[i], special, i == 0);
    prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
    if (i == tiles.size()) break;
    parts.push_back({std::ssize(prompt.ids), count, std::move(tiles[i])});
    prompt.ids.insert(prompt.ids.end(), static_cast<size_t>(count), 0);
  }
  return prompt;
}

}  // namespace

bool reads_images(const Model& model) { return model.parts().images != nullptr; }

std::string image_mark(const Model& model) {
  const int32_t token = encoder_of(model).token;
  if (token < 0) return "<image>";
  const Tokenizer& tokenizer = model.tokenizer();
  if (token >= tokenizer.size())
    fail(ErrorKind::BadFile, "tokenizer: the token {} of a picture is unknown; expected 0 to {}",
         token, tokenizer.size() - 1);
  return tokenizer.decode({token});
}

int64_t image_marks(const Model& model, const std::string& text) {
  return std::ssize(places_of(image_mark(model), text));
}

ImagePrompt image_prompt(const Model& model, const std::string& text, size_t count,
                         const std::function<Image(size_t)>& image, SpecialTokens special,
                         const std::vector<std::string>& names) {
  const FloatMode mode;
  const ImageEncoder& encoder = encoder_of(model);
  const std::string mark = image_mark(model);
  const std::vector<size_t> places = places_of(mark, text);
  check(places.size() == count, "prompt: {} marks {} for {} pictures; expected one for each",
        places.size(), mark, count);
  std::string whole;
  std::vector<std::string> pieces;  // of the text, between the pictures
  std::vector<Image> tiles;
  size_t end = 0;
  for (size_t i = 0; i < count; ++i) {
    const std::string name = i < names.size() ? names[i] : fmt::format("picture {}", i + 1);
    ImageTiles divided = tiles_of(encoder.processor, image(i), name);
    pieces.push_back(text.substr(end, places[i] - end));
    whole += pieces.back() + text_of(divided, encoder, mark);
    end = places[i] + mark.size();
    std::move(divided.images.begin(), divided.images.end(), std::back_inserter(tiles));
  }
  pieces.push_back(text.substr(end));
  whole += pieces.back();
  ImagePrompt prompt;
  std::vector<PromptImages::Part> parts;
  if (encoder.token < 0 && count > 0) {
    check(!encoder.names_tiles, "tokenizer: it has no token {}; expected one", mark);
    prompt = prompt_of_pieces(pieces, std::move(tiles), model, special, parts);
  } else {
    prompt.ids = ids_of(model.tokenizer(), whole, special, true);
    parts = parts_of(std::move(tiles), prompt.ids, encoder);
  }
  if (count == 0) return prompt;
  const std::shared_ptr<const ImageEncoder> kept = model.parts().images;
  prompt.images = std::make_shared<PromptImages>(
      std::move(parts), [kept](const Image& pixels) { return (*kept)(pixels); });
  return prompt;
}

}  // namespace fovea
