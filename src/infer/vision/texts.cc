// Texts of a model of images and texts, and the classification of images by texts.

#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "base/math.h"
#include "embed/batching.h"
#include "fovea/core/excerpt.h"
#include "tensor/tape.h"
#include "vision/image_model_parts.h"

namespace fovea::infer {
namespace {

std::vector<std::string> texts_about(const std::vector<std::string>& labels,
                                     const ImageOptions& options) {
  check_field(!labels.empty(), "labels", "none; expected at least one label");
  const size_t at = options.hypothesis.find("{}");
  check_field(at != std::string::npos, "hypothesis",
              "\"{}\"; expected a text with {{}} in the place of the label",
              excerpt(options.hypothesis));
  std::vector<std::string> texts;
  for (const std::string& label : labels)
    texts.push_back(std::string(options.hypothesis).replace(at, 2, label));
  return texts;
}

// exp(scale) * cosine + bias for each image and text, whose vectors have length 1 -> [B, L]
Tensor logits_of(const Embeddings& images, const Embeddings& texts, const TextTower& tower) {
  const double factor = math::exp(double{tower.scale});
  const int64_t B = images.count, L = texts.count;
  Tensor logits = empty({B, L});
  for (int64_t i = 0; i < B; ++i)
    for (int64_t l = 0; l < L; ++l) {
      const auto image = images.view().row<float>(i), text = texts.view().row<float>(l);
      double dot = 0;
      for (size_t c = 0; c < image.size(); ++c) dot += double{image[c]} * double{text[c]};
      logits.data_as<float>()[i * L + l] = static_cast<float>(factor * dot + double{tower.bias});
    }
  return logits;
}

}  // namespace

Embeddings ImageModel::embed_texts(const std::vector<std::string>& texts,
                                   const ImageOptions& options) const {
  const FloatMode mode;
  check_fields(options);
  check(reads_texts(),
        "{}: the model reads no texts; expected a model of images and texts, with a "
        "tokenizer",
        parts_->folder);
  const TextTower& tower = *parts_->text;
  Embeddings result = empty_embeddings(texts.size(), width());
  const std::vector<TokenizedText> tokens =
      tokenize_all(texts.size(), [&](size_t i) { return tower.tokens(texts[i]); });
  for (size_t i = 0; i < texts.size(); ++i) {
    check(!tokens[i].ids.empty(), "text {}: has no tokens; expected a text", i + 1);
    result.tokens[i] = std::ssize(tokens[i].ids);
    result.cut[i] = tokens[i].cut;
  }
  result.values = to_floats(in_batches(
      tokens, result.width, 0, [&](const TokenBatch& batch) { return tower.vectors(batch); }));
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
  const Embeddings images = embed(count, image, unit);
  Classifications result;
  result.count = images.count;
  result.labels = labels;
  result.tokens = images.tokens;
  result.cut = images.cut;
  if (count == 0) return result;
  const NoGradient no_gradient;
  Tensor scores = logits_of(images, texts, *parts_->text);
  if (!options.raw)
    scores = parts_->text->sigmoid ? activation(scores, Activation::sigmoid) : softmax(scores);
  result.scores = to_floats(scores);
  return result;
}

}  // namespace fovea::infer
