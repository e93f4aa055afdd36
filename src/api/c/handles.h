#pragma once

#include <optional>

#include "c/arguments.h"
#include "c/guard.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/generate.h"
#include "fovea/text/chat.h"
#include "fovea/text/tokenizer.h"

namespace fovea::c {

// A Generation in arrays, to which a fovea_generation points.
struct GenerationStore {
  infer::Generation generation;
  std::vector<float> logprobs, top_logprobs;
  std::vector<int32_t> top_ids;
};

}  // namespace fovea::c

struct fovea_tokenizer : fovea::c::Handle {
  explicit fovea_tokenizer(fovea::text::Tokenizer t) : tokenizer(std::move(t)) {}
  fovea::text::Tokenizer tokenizer;
  std::vector<int32_t> ids;  // results of the last calls
  std::string text;
};

struct fovea_model : fovea::c::Handle {
  fovea_model(fovea::model::Model m, std::string p) : model(std::move(m)), path(std::move(p)) {}
  fovea::model::Model model;
  std::string path;
  fovea::c::GenerationStore generated;
  std::vector<int32_t> ids;
  std::string spec;
};

struct fovea_chat : fovea::c::Handle {
  fovea_chat(fovea::model::Model m, fovea::text::ChatFormat f)
      : model(std::move(m)), format(std::move(f)) {}
  fovea::model::Model model;
  fovea::text::ChatFormat format;
  fovea::c::GenerationStore generated;
  std::string text;
};

struct fovea_embedder : fovea::c::Handle {
  explicit fovea_embedder(fovea::infer::Embedder e) : embedder(std::move(e)) {}
  fovea::infer::Embedder embedder;
};

namespace fovea::c {

// Returns the string at an index, or NULL past the end.
inline const char* at(const std::vector<std::string>& texts, size_t index) {
  return index < texts.size() ? texts[index].c_str() : nullptr;
}

// Implements fovea_xxx_share(): writes the handle that `make` creates to `other`.
template <class T, class Make>
fovea_status share(T* handle, const char* name, T** other, const Make& make) {
  if (other != nullptr) *other = nullptr;
  return guard(handle, name, [&] { *required(other, "other") = make(); });
}

model::WeightPrecision weight_precision(int32_t value);

// Returns the default options of a generation: those of the model or, if it is null, of the
// library.
fovea_generate_options generate_defaults(const model::Model* model);

// Generates with the caller's options (NULL = the model's defaults) and fills `result` unless it is
// NULL. `room`: the maximum number of tokens; -1 = as many as the options allow.
void generate_into(GenerationStore& store, const model::Model& model,
                   const std::vector<int32_t>& prompt, const fovea_generate_options* options,
                   int64_t room, fovea_generation* result);

}  // namespace fovea::c
