#include "fovea/study/trace.h"

#include <nlohmann/json.hpp>
#include <tuple>

#include "audio/log_mel.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "fovea/infer/image_prompt.h"
#include "inspect/npz.h"
#include "inspect/trace.h"
#include "open/model_parts.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"
#include "transformer/prompt_images.h"
#include "vision/image_model_parts.h"

namespace fovea::study {
namespace {

// Reads token ids, which PyTorch writes as int64, as int32. Returns an empty tensor if `name` is
// missing.
Tensor as_int32(const SafeTensors& file, const std::string& path, const std::string& name) {
  if (file.find(name) == nullptr) return {};
  const Tensor value = file.tensor(name);
  if (value.dtype() == DType::i32) return value;
  if (value.dtype() != DType::i64)
    fail(ErrorKind::BadFile, "{}: {} is {}; expected int64 or int32", path, name,
         name_of(value.dtype()));
  const HostValues<int64_t> ids(value);
  return tensor_from<int32_t>(value.shape(), [&](int64_t i) {
    if (ids[i] < INT32_MIN || ids[i] > INT32_MAX)
      fail(ErrorKind::BadFile, "{}: {} contains {}; expected a token id", path, name, ids[i]);
    return ids[i];
  });
}

// Converts a waveform [samples] to the encoder's input -> [1, bins, 2 * frames]
Tensor heard(const Tensor& waveform, const model::InputSpec& input) {
  return tensor_of(media::log_mel(to_floats(waveform), input.bins, 2 * input.frames),
                   {1, input.bins, 2 * input.frames});
}

// Returns the ids of a text with the special tokens that the tokenizer adds, as Inspection does.
std::vector<int32_t> ids_of(const text::Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encoding(text, {.truncate_and_pad = false}).ids;
}

// Reads the values that replace those of a run. Ignores what a trace contains besides values.
TraceTensors patches_in(const std::string& path) {
  TraceTensors patches;
  if (path.empty()) return patches;
  const SafeTensors file(path);
  for (const StoredTensor& stored : file.stored()) {
    const std::string& name = stored.name;
    if (name == "input_ids" || name == "decoder_input_ids" || name == "loss" ||
        name.starts_with("grad."))
      continue;
    const Tensor value = file.tensor(name);
    if (value.dtype() == DType::i32 || value.dtype() == DType::i64)
      fail(ErrorKind::BadFile, "{}: {} is {}; expected fp32, bf16 or fp16", path, name,
           name_of(value.dtype()));
    patches[name] = value;
  }
  return patches;
}

// Returns the texts of the tokens as a JSON list for each row of ids [B, T].
std::string token_lists(const text::Tokenizer& tokenizer, const Tensor& ids) {
  nlohmann::json rows = nlohmann::json::array();
  const HostValues<int32_t> all(ids);
  for (int64_t b = 0; b < ids.dim(0); ++b) {
    nlohmann::json& row = rows.emplace_back(nlohmann::json::array());
    for (const int32_t id : all.row(b)) {
      row.push_back(id < tokenizer.size() ? tokenizer.text_of(id) : std::to_string(id));
    }
  }
  return rows.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

using Metadata = SafeTensorsImage::Metadata;

Metadata texts_of_tokens(const model::ModelParts& parts, const TraceTensors& found) {
  Metadata metadata;
  for (const auto& [ids, tokens, tokenizer] :
       {std::tuple("input_ids", "tokens", &parts.tokenizer),
        {"decoder_input_ids", "decoder_tokens", &parts.target_tokenizer}})
    if (found.contains(ids) && tokenizer->has_value())
      metadata[tokens] = token_lists(**tokenizer, found.find(ids)->second);
  return metadata;
}

// Writes a trace, if a path is given. Returns the names and shapes.
std::vector<TracedTensor> written(const std::string& path, const TraceTensors& found,
                                  Metadata metadata) {
  if (path.ends_with(".npz")) {
    write_npz(path, found);
  } else if (!path.empty()) {
    metadata["format"] = "pt";
    const SafeTensorsImage image(SafeTensorsImage::Named(found.begin(), found.end()), metadata);
    write_file_atomically(path, image.pieces());
  }
  std::vector<TracedTensor> tensors;
  for (const auto& [name, value] : found)
    tensors.push_back({name, {value.shape().begin(), value.shape().end()}});
  return tensors;
}

// The name of the file must not promise a format that it does not have.
void check_out(const std::string& out) {
  for (const char* other : {".npy", ".pt", ".pth", ".bin", ".json", ".gguf", ".h5"})
    check_field(!out.ends_with(other), "out",
                "{}: traces have the format of safetensors or of NumPy's archives; expected a name "
                "that ends in .safetensors or .npz",
                out);
}

// Returns what the options select, without the input.
TraceInput selected(const TraceOptions& options) {
  check_out(options.out);
  check_fields(options);
  TraceInput input;
  input.gradients = options.gradients;
  input.what = options.what;
  input.layers = options.layers;
  input.patches = patches_in(options.patch);
  input.patch_file = options.patch;
  return input;
}

void read_file(const std::string& path, const model::Spec& spec, TraceInput& input) {
  const SafeTensors file(path);
  const bool text = spec.input.kind == model::InputKind::tokens;
  input.ids = as_int32(file, path, "input_ids");
  if (text && !input.ids)
    fail(ErrorKind::BadFile, "{}: input_ids is missing; expected int64 [B, T]", path);
  input.attention_mask = as_int32(file, path, "attention_mask");
  input.token_types = as_int32(file, path, "token_type_ids");
  const char* signal =
      spec.input.kind == model::InputKind::image ? "pixel_values" : "input_features";
  if (!text && file.find(signal) != nullptr)
    input.signal = convert(file.tensor(signal), DType::f32);
  else if (spec.input.kind == model::InputKind::audio && file.find("waveform") != nullptr)
    input.signal = heard(file.tensor("waveform"), spec.input);
  input.labels = as_int32(file, path, "labels");
}

// Reads a text, or ids, with an image.
void read_prompt(const model::Model& model, const TraceOptions& options, TraceInput& input) {
  const media::Image image = media::read_image(options.image);
  const bool marked = infer::reads_images(model) && infer::image_marks(model, options.text) > 0;
  const infer::ImagePrompt prompt =
      options.ids.empty()
          ? infer::image_prompt(
                model, marked ? options.text : infer::image_mark(model) + "\n" + options.text, 1,
                [&](size_t) { return image; }, text::SpecialTokens::parsed, {options.image})
          : infer::image_prompt(model, options.ids, image, options.image);
  input.ids = tensor_of(prompt.ids, {1, std::ssize(prompt.ids)});
  model::TokenVectors vectors;
  prompt.images->add_vectors(0, std::ssize(prompt.ids), 0, vectors);
  const int64_t N = std::ssize(vectors.rows);
  input.vectors = tensor_of(vectors.values, {N, std::ssize(vectors.values) / N});
  input.vector_rows = tensor_of(vectors.rows, {N});
}

// Returns the values of a run, and those of the file if there is one.
TraceTensors run(const model::Model& model, const TraceOptions& options, const TraceHook& hook) {
  const FloatMode mode;
  TraceInput input = selected(options);
  input.hook = hook;
  if (!options.input.empty()) {
    check_field(options.image.empty(), "image", "cannot be combined with `input`");
    read_file(options.input, model.spec(), input);
  } else if (!options.image.empty()) {
    read_prompt(model, options, input);
  } else {
    const auto ids = options.ids.empty() ? ids_of(model.tokenizer(), options.text) : options.ids;
    check(!ids.empty(), "trace: no tokens; expected one of `text`, `ids`, `input`");
    input.ids = tensor_of(ids, {1, std::ssize(ids)});
  }
  const model::Origin& origin = model::parts_of(model).origin;
  input.start = model::configured_id(origin, "decoder_start_token_id").value_or(0);
  input.padding = model::configured_id(origin, "pad_token_id").value_or(0);
  input.starts_with_last_label = origin.family != nullptr && origin.family->starts_with_last_label;
  if (options.gradients && !input.labels) {
    check_field(
        model.spec().head.kind == model::HeadKind::language_model, "gradients",
        "the model's head needs labels for a loss; expected labels in a file with input_ids");
    input.labels = input.ids;
  }

  // Uses a copy of the model, so that the caller's weights get no gradients.
  model::Transformer transformer = model::parts_of(model).transformer;
  return trace_model(transformer, *origin.family, input);
}

TraceTensors run(const infer::ImageModel& model, const TraceOptions& options,
                 const TraceHook& hook) {
  const FloatMode mode;
  TraceInput input = selected(options);
  input.hook = hook;
  const infer::ImageModel::Parts& parts = model.parts();
  check_field(!options.image.empty(), "image", "not given; expected an image");
  check_field(options.text.empty() && options.ids.empty() && options.input.empty(), "image",
              "cannot be combined with `text`, `ids` or `input`, since the model reads no texts");
  check_field(!options.gradients, "gradients", "an encoder of images has no loss; expected labels");
  const int64_t S = parts.transformer.spec.input.size;
  input.signal = empty({1, 3, S, S});
  parts.processor.normalise(parts.processor.fitted(media::read_image(options.image), options.image),
                            input.signal.data_as<float>());
  model::Transformer transformer = parts.transformer;
  return trace_model(transformer, *parts.family, input);
}

}  // namespace

std::vector<TracedTensor> trace(const model::Model& model, const TraceOptions& options) {
  const TraceTensors found = run(model, options, {});
  return written(options.out, found, texts_of_tokens(model::parts_of(model), found));
}

std::vector<TracedTensor> trace(const infer::ImageModel& model, const TraceOptions& options) {
  return written(options.out, run(model, options, {}), {});
}

TracedValues traced_values(const model::Model& model, const TraceOptions& options,
                           const TraceHook& hook) {
  const TraceTensors found = run(model, options, hook);
  return {found.begin(), found.end()};
}

TracedValues traced_values(const infer::ImageModel& model, const TraceOptions& options,
                           const TraceHook& hook) {
  const TraceTensors found = run(model, options, hook);
  return {found.begin(), found.end()};
}

}  // namespace fovea::study
