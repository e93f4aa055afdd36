// Texts of a model of images and texts, and the classification of pictures by texts.

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "embed/batching.h"
#include "fovea/excerpt.h"
#include "tensor/tape.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"
#include "vision/image_model_parts.h"

namespace fovea {
namespace {

std::vector<std::string> texts_about(const std::vector<std::string>& labels,
                                     const ImageOptions& options) {
  check_field(!labels.empty(), "labels", "none; expected at least one label");
  const size_t place = options.hypothesis.find("{}");
  check_field(place != std::string::npos, "hypothesis",
              "\"{}\"; expected a text with {{}} in the place of the label",
              excerpt(options.hypothesis));
  std::vector<std::string> texts;
  for (const std::string& label : labels)
    texts.push_back(std::string(options.hypothesis).replace(place, 2, label));
  return texts;
}

// Returns a text in lower case, without ASCII punctuation, and with one space in the place of
// blanks.
std::string canonical_text(std::string_view text) {
  std::string result;
  bool blank = false;
  while (!text.empty()) {
    const utf8::Character c = utf8::first(text);
    text.remove_prefix(c.bytes);
    if (c.code_point == ' ' || (c.code_point >= '\t' && c.code_point <= '\r')) {
      blank = !result.empty();
      continue;
    }
    const bool ascii = c.code_point > ' ' && c.code_point < 127;
    const bool word = (c.code_point >= '0' && c.code_point <= '9') ||
                      (c.code_point >= 'A' && c.code_point <= 'Z') ||
                      (c.code_point >= 'a' && c.code_point <= 'z');
    if (ascii && !word) continue;
    if (blank) result += ' ';
    blank = false;
    for (const char32_t character : unicode::lowercase(c.code_point))
      if (character != 0) utf8::append(result, character);
  }
  return result;
}

// exp(scale) * cosine + bias for each picture and text, whose vectors have length 1 -> [B, L]
Tensor logits_of(const Embeddings& pictures, const Embeddings& texts, const TextTower& tower) {
  const double factor = math::exp(double{tower.scale});
  const int64_t B = pictures.count, L = texts.count;
  Tensor logits = empty({B, L});
  for (int64_t i = 0; i < B; ++i)
    for (int64_t l = 0; l < L; ++l) {
      const auto picture = pictures.view().row<float>(i), text = texts.view().row<float>(l);
      double dot = 0;
      for (size_t c = 0; c < picture.size(); ++c) dot += double{picture[c]} * double{text[c]};
      logits.data_as<float>()[i * L + l] = static_cast<float>(factor * dot + double{tower.bias});
    }
  return logits;
}

}  // namespace

Embeddings ImageModel::embed_texts(const std::vector<std::string>& texts,
                                   const ImageOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  check(reads_texts(), "{}: the model reads no texts; expected a model of images and texts",
        parts_->folder);
  const TextTower& tower = *parts_->text;
  Embeddings result = empty_embeddings(texts.size(), width());
  const std::vector<TokenizedText> tokens = tokenize_all(texts.size(), [&](size_t i) {
    TokenizedText text = tower.format.text(tower.canonical ? canonical_text(texts[i]) : texts[i]);
    const auto context = static_cast<size_t>(tower.transformer.spec.context);
    if (tower.padding) text.ids.resize(context, *tower.padding);
    return text;
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    check(!tokens[i].ids.empty(), "text {}: has no tokens; expected a text", i + 1);
    result.tokens[i] = std::ssize(tokens[i].ids);
    result.cut[i] = tokens[i].cut;
  }
  const Transformer& model = tower.transformer;
  result.values = to_floats(in_batches(tokens, result.width, 0, [&](const TokenBatch& batch) {
    Pass pass;
    pass.mask.valid = batch.valid;
    const Tensor states = model.spec.decoder ? model.decode(batch.sequence, pass)
                                             : model.encode(batch.sequence, pass);
    return model.logits(states, batch.valid);
  }));
  if (options.normalise) scale_to_unit(result.values, result.width);
  return result;
}

Classifications ImageModel::classify_by(size_t count, const Source& image,
                                        const std::vector<std::string>& labels,
                                        const ImageOptions& options) const {
  const FloatMode mode;
  ImageOptions unit = options;
  unit.normalise = true;
  const Embeddings texts = embed_texts(texts_about(labels, options), unit);
  const Embeddings pictures = embed(count, image, unit);
  Classifications result;
  result.count = pictures.count;
  result.labels = labels;
  result.tokens = pictures.tokens;
  result.cut = pictures.cut;
  if (count == 0) return result;
  const NoGradient no_gradient;
  Tensor scores = logits_of(pictures, texts, *parts_->text);
  if (!options.raw)
    scores = parts_->text->sigmoid ? activation(scores, Activation::sigmoid) : softmax(scores);
  result.scores = to_floats(scores);
  return result;
}

}  // namespace fovea
