#include "serve/embeddings.h"

#include <cstring>
#include <numeric>

namespace fovea::serve {
namespace {

// Ids become the text that they stand for: the model adds its own special tokens.
std::vector<std::string> texts_of(const ApiRequest& request, const Embedder& embedder) {
  std::vector<std::string> texts;
  for (const Prompt& input : request.inputs) {
    const auto* text = std::get_if<std::string>(&input);
    texts.push_back(
        text ? *text : embedder.tokenizer().decode(std::get<std::vector<int32_t>>(input), true));
    if (texts.back().empty()) {
      throw ApiError{400, "input: expected at least one character in each text", "input",
                     "invalid_value"};
    }
  }
  return texts;
}

Json vector_json(const float* values, size_t width, bool as_base64) {
  if (!as_base64) return std::vector<float>(values, values + width);
  std::string bytes(width * sizeof(float), '\0');
  std::memcpy(bytes.data(), values, bytes.size());  // x86-64 is little-endian
  return base64(bytes);
}

}  // namespace

std::string base64(const std::string& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j) {
      three = three << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j) {
      const bool padding = i + j > bytes.size();
      out += padding ? '=' : kLetters[three >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

Json embeddings_json(const ApiRequest& request, const Embedder& embedder, const std::string& name) {
  if (request.dimensions > embedder.width()) {
    throw ApiError{400, "dimensions: expected at most " + std::to_string(embedder.width()),
                   "dimensions", "out_of_range"};
  }
  EmbedOptions options;
  options.dimensions = request.dimensions;
  const Embeddings embeddings = embedder.embed(texts_of(request, embedder), options);
  Json data = Json::array();
  const auto width = static_cast<size_t>(embeddings.width);
  for (size_t i = 0; i < static_cast<size_t>(embeddings.count); ++i) {
    const float* const values = embeddings.values.data() + i * width;
    data.push_back({{"object", "embedding"},
                    {"index", i},
                    {"embedding", vector_json(values, width, request.base64)}});
  }
  const int64_t tokens =
      std::accumulate(embeddings.tokens.begin(), embeddings.tokens.end(), int64_t{0});
  return {{"object", "list"},
          {"data", std::move(data)},
          {"model", name},
          {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}};
}

}  // namespace fovea::serve
