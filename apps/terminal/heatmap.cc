#include "terminal/heatmap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

constexpr int kLabel = 14;  // width of row labels

size_t letters_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// The viridis colours, dark violet to yellow, in the 256-colour palette.
constexpr int kColours[] = {53, 54, 60, 61, 25, 31, 30, 36, 35, 71, 77, 113, 149, 185, 220, 226};

std::string cell(float weight, Shades shades) {
  // The square root makes weights of 0.01 visible next to 1.
  const float share = std::sqrt(std::clamp(weight, 0.0f, 1.0f));
  const auto of = [&](int count) {
    return std::min(count - 1, static_cast<int>(share * static_cast<float>(count)));
  };
  switch (shades) {
    case Shades::colours: return fmt::format("\x1b[48;5;{}m  \x1b[0m", kColours[of(16)]);
    case Shades::blocks: {
      constexpr const char* kBlocks[] = {"\u00B7\u00B7", "\u2591\u2591", "\u2592\u2592",
                                         "\u2593\u2593", "\u2588\u2588"};
      return kBlocks[weight <= 0 ? 0 : std::max(1, of(5))];
    }
    case Shades::digits: return weight <= 0 ? ". " : fmt::format("{} ", of(10));
  }
  return "";
}

// Returns the names of the keys, written vertically, so that each fits into its column.
std::string key_names(const std::vector<std::string>& keys, size_t step, size_t count) {
  constexpr size_t kLongest = 8;
  size_t most = 1;  // longest name, up to the limit
  for (size_t k = 0; k < count; ++k)
    most = std::max(most, std::min(kLongest, letters_of(keys[k * step])));
  std::vector<std::vector<std::string>> letters;
  for (size_t k = 0; k < count; ++k) {
    const std::string text = token_label(keys[k * step], most);
    std::vector<std::string>& column = letters.emplace_back();
    for (size_t i = 0; i < text.size();) {
      size_t size = 1;
      while (i + size < text.size() && (static_cast<unsigned char>(text[i + size]) & 0xC0) == 0x80)
        ++size;
      column.push_back(text.substr(i, size));
      i += size;
    }
  }
  std::string out;
  for (size_t line = 0; line < most; ++line) {
    std::string row(kLabel + 1, ' ');
    for (const auto& column : letters) row += column[line] + " ";
    while (row.ends_with(' ')) row.pop_back();
    out += row + "\n";
  }
  return out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (byte < 0x20)
      out += ' ';
    else
      out += c;
  }
  return out;
}

// Interpolates between eight colours of viridis (Smith and van der Walt).
std::string svg_colour(float weight) {
  constexpr int kScale[][3] = {{68, 1, 84},    {70, 51, 127},  {54, 92, 141},  {39, 127, 142},
                               {31, 161, 135}, {74, 194, 109}, {159, 218, 58}, {253, 231, 37}};
  const float at = std::sqrt(std::clamp(weight, 0.0f, 1.0f)) * 7;
  const auto low = static_cast<size_t>(std::min(at, 6.0f));
  const float share = at - static_cast<float>(low);
  int mixed[3];
  for (size_t i = 0; i < 3; ++i)
    mixed[i] = static_cast<int>(std::lround(static_cast<float>(kScale[low][i]) * (1 - share) +
                                            static_cast<float>(kScale[low + 1][i]) * share));
  return fmt::format("#{:02x}{:02x}{:02x}", mixed[0], mixed[1], mixed[2]);
}

}  // namespace

std::string token_label(const std::string& token, size_t most) {
  std::string text;
  size_t letters = 0;
  for (size_t i = 0; i < token.size();) {
    size_t size = 1;
    while (i + size < token.size() && (static_cast<unsigned char>(token[i + size]) & 0xC0) == 0x80)
      ++size;
    if (++letters > most) break;
    const std::string letter = token.substr(i, size);
    const auto byte = static_cast<unsigned char>(letter[0]);
    text += letter == " "                 ? "_"
            : letter == "\n"              ? "\\"
            : byte < 0x20 || byte == 0x7F ? "?"
                                          : letter;
    i += size;
  }
  return text + std::string(most - std::min(most, letters), ' ');
}

std::string draw_heatmap(const ArrayView& map, const std::vector<std::string>& rows,
                         const std::vector<std::string>& keys, int width, Shades shades) {
  const auto columns = static_cast<size_t>(std::max(1, (width - kLabel - 1) / 2));
  const size_t K = keys.size(), step = (K + columns - 1) / columns;
  const size_t shown = (K + step - 1) / step;
  const std::span<const float> weights = map.elements<float>();
  std::string out = key_names(keys, step, shown);
  for (size_t r = 0; r < rows.size(); r += step) {
    out += token_label(rows[r], kLabel) + " ";
    for (size_t k = 0; k < shown; ++k) {
      float most = 0;
      for (size_t i = r; i < std::min(r + step, rows.size()); ++i)
        for (size_t j = k * step; j < std::min((k + 1) * step, K); ++j)
          most = std::max(most, weights[i * K + j]);
      out += cell(most, shades);
    }
    out += "\n";
  }
  return out;
}

std::string draw_svg(const ArrayView& map, const std::vector<std::string>& rows,
                     const std::vector<std::string>& keys, const std::string& title) {
  const int size = rows.size() > 60 ? 8 : 20, left = 110, top = 100;
  const size_t K = keys.size();
  const size_t every = size < 12 ? 2 : 1;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"serif\" "
      "font-size=\"{}\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n",
      left + size * static_cast<int>(K) + 60, top + size * static_cast<int>(rows.size()) + 10,
      std::min(13, size + 4), escaped(title));
  for (size_t k = 0; k < K; k += every)
    out += fmt::format("<text transform=\"translate({},{}) rotate(-55)\">{}</text>\n",
                       left + size * static_cast<int>(k) + size / 2, top - 6,
                       escaped(token_label(keys[k], 12)));
  for (size_t r = 0; r < rows.size(); ++r) {
    const int y = top + size * static_cast<int>(r);
    if (r % every == 0)
      out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n", left - 6,
                         y + size - 5, escaped(token_label(rows[r], 12)));
    const std::span<const float> weights = map.row<float>(static_cast<int64_t>(r));
    for (size_t k = 0; k < K; ++k) {
      const float weight = weights[k];
      if (weight <= 0) continue;  // masked keys stay blank
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
          "fill=\"{}\"><title>{}</title></rect>\n",
          left + size * static_cast<int>(k), y, size, size, svg_colour(weight), weight);
    }
  }
  return out + "</svg>\n";
}

}  // namespace fovea::cli
