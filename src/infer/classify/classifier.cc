#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/float_mode.h"
#include "base/gguf.h"
#include "base/math.h"
#include "checkpoint/module_files.h"
#include "classify/classifier_parts.h"
#include "embed/embedder_parts.h"
#include "embed/head_states.h"
#include "embed/modules.h"
#include "fovea/core/excerpt.h"
#include "open/directory.h"
#include "open/model_parts.h"

namespace fovea::infer {
namespace {

[[noreturn]] void refuse_head(const std::string& path, const char* what) {
  fail(ErrorKind::Unsupported, "{}: the model has no classification head; {}", path, what);
}

ClassifierTask task_of(const model::Spec& spec, bool has_mask, const std::string& path) {
  if (spec.input.kind != model::InputKind::tokens)
    fail(ErrorKind::Unsupported, "{}: the model does not read text; expected a text model", path);
  switch (spec.head.kind) {
    case model::HeadKind::sequence: return ClassifierTask::texts;
    case model::HeadKind::token: return ClassifierTask::words;
    case model::HeadKind::span:
      if (spec.head.labels == 2) return ClassifierTask::answers;
      fail(ErrorKind::Unsupported, "{}: the head for answers has {} outputs; expected 2", path,
           spec.head.labels);
    case model::HeadKind::pooled: refuse_head(path, "it computes vectors: fovea embed");
    case model::HeadKind::language_model: break;
  }
  if (spec.encoder && has_mask) return ClassifierTask::masks;
  if (!spec.decoder)
    fail(ErrorKind::Unsupported,
         "{}: the tokenizer has no mask token; expected one for a masked "
         "language model",
         path);
  refuse_head(path, spec.encoder ? "it writes text from text: fovea translate or fovea generate"
                                 : "it writes text: fovea generate");
}

ScoreFunction function_of(const model::Origin& origin, int64_t labels) {
  if (origin.problem == model::ProblemType::regression) return ScoreFunction::none;
  if (origin.problem == model::ProblemType::multi_label) return ScoreFunction::sigmoid;
  return labels == 1 ? ScoreFunction::sigmoid : ScoreFunction::softmax;
}

std::vector<std::string> label_names_of(const model::Origin& origin, int64_t count) {
  if (std::ssize(origin.labels) == count) return origin.labels;
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i) names.push_back(fmt::format("LABEL_{}", i));
  return names;
}

TextFormat format_of(const std::string& inner, const std::string& base, const model::Spec& spec) {
  const std::string& path = model::comes_with_tokenizer(inner) || base.empty() ? inner : base;
  if (!is_gguf(path)) return TextFormat::open(path, spec);
  return TextFormat::of(text::Tokenizer::open(path), spec);
}

// Refuses models whose heads need no tokenizer to be recognised.
void refuse_writers(const model::Spec& spec, const std::string& path) {
  const bool writes = spec.head.kind == model::HeadKind::language_model && !spec.encoder;
  if (writes || spec.head.kind == model::HeadKind::pooled) task_of(spec, false, path);
}

std::shared_ptr<const Classifier::Parts> parts_of(const std::string& path, model::Transformer model,
                                                  const model::Origin& origin, TextFormat format,
                                                  std::vector<std::string> warnings) {
  const model::Spec& spec = model.spec;
  const text::Tokenizer& tokenizer = format.tokenizer();
  const auto cls = special_token(tokenizer, "cls_token", {"[CLS]"});
  const auto mask = special_token(tokenizer, "mask_token", {"[MASK]", "<mask>"});
  const ClassifierTask task = task_of(spec, mask.has_value(), path);
  const auto start = decoder_start_of(spec, origin, path);
  const ScoreFunction function = function_of(origin, spec.head.labels);
  std::vector<std::string> labels = label_names_of(origin, spec.head.labels);
  return std::make_shared<Classifier::Parts>(
      Classifier::Parts{path, std::move(model), std::move(format), task, function,
                        std::move(labels), start, cls, mask, std::move(warnings)});
}

// The format of the texts of an opened model.
TextFormat format_of(const model::Model& model) {
  const std::string& path = model::parts_of(model).path;
  if (path.empty() || is_gguf(path) || !model::comes_with_tokenizer(path))
    return TextFormat::of(model.tokenizer(), model.spec());
  return TextFormat::open(path, model.spec());
}

}  // namespace

Classifier Classifier::open(const std::string& path, model::WeightPrecision precision,
                            const std::vector<model::AdapterUse>& adapters) {
  const FloatMode mode;
  const std::string inner =
      std::filesystem::is_directory(path) ? model::transformer_folder(path) : path;
  model::ModelFiles files = model::open_model_files(inner, model::weights_of(precision),
                                                    model::packing_by_output(precision), adapters);
  const model::Spec& spec = files.model.spec;
  refuse_writers(spec, path);
  move_to(default_device(), files.model);
  TextFormat format = format_of(inner, files.base, spec);
  return Classifier(parts_of(path, std::move(files.model), files.origin, std::move(format),
                             std::move(files.warnings)));
}

Classifier Classifier::of(const model::Model& model) {
  const FloatMode mode;
  const model::ModelParts& parts = model::parts_of(model);
  refuse_writers(model.spec(), parts.path);
  return Classifier(
      parts_of(parts.path, parts.transformer, parts.origin, format_of(model), parts.warnings));
}

Classifier Classifier::of(const Reranker& reranker) {
  const CrossEncoder& model = reranker.parts().model;
  return Classifier(std::make_shared<Parts>(
      Parts{model.path, model.transformer, model.format, ClassifierTask::texts,
            function_of(model.origin, 1), label_names_of(model.origin, 1), model.start,
            std::nullopt, std::nullopt, model.warnings}));
}

Classifier Classifier::of(const Embedder& embedder) {
  const SentenceModel& model = embedder.parts().model;
  refuse_writers(model.transformer.spec, embedder.parts().folder);
  return Classifier(parts_of(embedder.parts().folder, model.transformer, model.origin, model.format,
                             model.warnings));
}

ClassifierTask Classifier::task() const { return parts_->task; }
const std::vector<std::string>& Classifier::labels() const { return parts_->labels; }
ScoreFunction Classifier::score_function() const { return parts_->function; }
int64_t Classifier::max_tokens() const { return parts_->format.most(); }
const text::Tokenizer& Classifier::tokenizer() const { return parts_->format.tokenizer(); }
const std::vector<std::string>& Classifier::warnings() const { return parts_->warnings; }
const model::Spec& Classifier::spec() const { return parts_->transformer.spec; }

std::string Classifier::mask_token() const {
  parts_->needs(ClassifierTask::masks, "tokens of a mask");
  return std::string(tokenizer().text_of(parts_->mask.value()));
}

void Classifier::Parts::needs(ClassifierTask wanted, const char* results) const {
  static const char* const kHeads[] = {"labels of texts", "labels of words", "answers",
                                       "tokens of a mask"};
  check(task == wanted, "{}: the model predicts {}, not {}; expected a model with such a head",
        path, kHeads[static_cast<size_t>(task)], results);
}

Tensor Classifier::Parts::logits(const TokenBatch& batch) const {
  return head_logits(transformer, batch, head_states(transformer, batch, start, DType::f32));
}

std::string name_of_text(const ClassifyOptions& options, size_t text) {
  return options.name_of_text ? options.name_of_text(text) : fmt::format("text {}", text + 1);
}

void check_not_stopped(const ClassifyOptions& options) {
  if (options.stop && options.stop()) fail(ErrorKind::Failed, "texts: cancelled by the caller");
}

void check_lengths(const std::vector<TokenizedText>& texts, int64_t most,
                   const ClassifyOptions& options) {
  for (size_t i = 0; i < texts.size(); ++i) {
    check(!texts[i].ids.empty(), "{}: has no tokens; expected a text", name_of_text(options, i));
    check(options.truncate || texts[i].cut == 0, "{}: has {} tokens; expected at most {}",
          name_of_text(options, i), std::ssize(texts[i].ids) + texts[i].cut, most);
  }
}

void check_finite_scores(const float* scores, int64_t width, size_t text,
                         const ClassifyOptions& options) {
  for (int64_t i = 0; i < width; ++i)
    if (!std::isfinite(scores[i]))
      fail(ErrorKind::Failed, "{}: its score is not finite; expected a model with finite weights",
           name_of_text(options, text));
}

TokenSpans token_spans(const text::Tokenizer& tokenizer, std::string_view text) {
  const text::Encoding found =
      tokenizer.encoding(text, {.add_special_tokens = false, .truncate_and_pad = false});
  TokenSpans tokens;
  for (size_t i = 0; i < found.ids.size(); ++i) {
    if (found.special_mask[i] != 0) continue;
    tokens.ids.push_back(found.ids[i]);
    tokens.spans.push_back({found.offsets[i].begin, found.offsets[i].end,
                            found.byte_offsets[i].begin, found.byte_offsets[i].end});
    const std::string_view written = found.tokens[i];
    tokens.characters.push_back(std::count_if(written.begin(), written.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;  // not a continuation byte
    }));
  }
  return tokens;
}

std::vector<Interval> windows_over(int64_t count, int64_t room, int64_t overlap) {
  std::vector<Interval> windows;
  for (int64_t begin = 0;; begin += room - overlap) {
    windows.push_back({begin, std::min(begin + room, count)});
    if (begin + room >= count) return windows;
  }
}

std::string text_at(const std::string& text, const TextSpan& span) {
  return text.substr(span.first_byte, span.end_byte - span.first_byte);
}

std::vector<double> softmax_of(const float* x, int64_t count) {
  const double most = *std::max_element(x, x + count);
  std::vector<double> y(static_cast<size_t>(count));
  double sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += y[static_cast<size_t>(i)] = math::exp(static_cast<double>(x[i]) - most);
  for (double& value : y) value /= sum;
  return y;
}

}  // namespace fovea::infer
