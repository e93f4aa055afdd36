#include "vision/image_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace fovea::infer {
namespace {

std::string repeated(const std::string& text, int64_t count) {
  std::string all;
  for (int64_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

// Idefics3's is that of Laurençon et al. 2024, 3.3.
std::string image_text(int64_t rows, int64_t columns, const model::ImageEncoder& encoder,
                       const std::string& mark) {
  const std::string tile = repeated(mark, encoder.tokens());
  if (!encoder.names_tiles) return tile;
  const std::string frame = "<fake_token_around_image>";
  std::string text;
  for (int64_t row = 1; row <= rows; ++row) {
    for (int64_t column = 1; column <= columns; ++column)
      text += fmt::format("{}<row_{}_col_{}>{}", frame, row, column, tile);
    text += "\n";
  }
  if (rows > 0) text += "\n";
  return text + frame + "<global-img>" + tile + frame;
}

std::optional<int64_t> next_tile(const std::vector<int32_t>& ids, int64_t begin,
                                 const model::ImageEncoder& encoder) {
  const int64_t count = encoder.tokens();
  const auto found = std::find(ids.begin() + begin, ids.end(), encoder.token);
  if (found == ids.end()) return std::nullopt;
  const bool whole =
      ids.end() - found >= count &&
      std::all_of(found, found + count, [&](int32_t id) { return id == encoder.token; });
  if (!whole)
    fail(ErrorKind::BadFile, "tokenizer: the text of an image is not {} tokens {}; expected them",
         count, encoder.token);
  return found - ids.begin();
}

}  // namespace fovea::infer
