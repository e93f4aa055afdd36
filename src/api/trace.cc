#include "fovea/trace.h"

#include "api/model_parts.h"
#include "base/fields.h"
#include "base/float_mode.h"
#include "checkpoint/safetensors.h"
#include "data/log_mel.h"
#include "inspect/trace.h"

namespace fovea {
namespace {

// Reads token ids, which PyTorch writes as int64, as int32. Returns an empty tensor if `name` is
// missing.
Tensor as_int32(const SafeTensors& file, const std::string& path, const std::string& name) {
  if (file.find(name) == nullptr) return {};
  const Tensor value = file.tensor(name);
  Tensor ids = empty(value.shape(), DType::i32);
  for (int64_t i = 0; i < value.size(); ++i) {
    int64_t id = 0;
    if (value.dtype() == DType::i64)
      id = value.data_as<int64_t>()[i];
    else if (value.dtype() == DType::i32)
      id = value.data_as<int32_t>()[i];
    else
      fail(ErrorKind::BadFile, "{}: {} is {}; expected int64 or int32", path, name,
           name_of(value.dtype()));
    if (id < INT32_MIN || id > INT32_MAX)
      fail(ErrorKind::BadFile, "{}: {} contains {}; expected a token id", path, name, id);
    ids.data_as<int32_t>()[i] = static_cast<int32_t>(id);
  }
  return ids;
}

// Converts a waveform [samples] to the encoder's input -> [1, bins, 2 * frames]
Tensor heard(const Tensor& waveform, const InputSpec& input) {
  return from(log_mel(to_floats(waveform), input.bins, 2 * input.frames),
              {1, input.bins, 2 * input.frames});
}

// Returns the ids of a text with the special tokens that the tokenizer adds, as Inspector does.
std::vector<int32_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encoding(text, {.truncate_and_pad = false}).ids;
}

Tensor row_of(const std::vector<int32_t>& ids) {
  Tensor row = empty({1, static_cast<int64_t>(ids.size())}, DType::i32);
  std::copy(ids.begin(), ids.end(), row.data_as<int32_t>());
  return row;
}

}  // namespace

void visit(TraceOptions& o, OptionVisitor& v) {
  v.text({"text", "input text"}, o.text);
  v.integers({"ids", "input token ids, such as 1,2,3"}, o.ids, 0, INT32_MAX);
  v.text({"input",
          "file with input_ids and optionally attention_mask, token_type_ids and labels; or with "
          "pixel_values, input_features or waveform"},
         o.input);
  v.boolean({"gradients", "also write the loss and the gradient of every weight"}, o.gradients);
  v.text({"out", "output file"}, o.out);
}

std::vector<std::string> trace(const Model& model, const TraceOptions& options) {
  const FloatMode mode;
  check_fields(options);
  TraceInput input;
  input.gradients = options.gradients;
  if (!options.input.empty()) {
    const SafeTensors file(options.input);
    const Spec& spec = model.spec();
    const bool text = spec.input.kind == InputKind::tokens;
    input.ids = as_int32(file, options.input, "input_ids");
    if (text && !input.ids)
      fail(ErrorKind::BadFile, "{}: input_ids is missing; expected int64 [B, T]", options.input);
    input.attention_mask = as_int32(file, options.input, "attention_mask");
    input.token_types = as_int32(file, options.input, "token_type_ids");
    const char* signal = spec.input.kind == InputKind::image ? "pixel_values" : "input_features";
    if (!text && file.find(signal) != nullptr)
      input.signal = convert(file.tensor(signal), DType::f32);
    else if (spec.input.kind == InputKind::audio && file.find("waveform") != nullptr)
      input.signal = heard(file.tensor("waveform"), spec.input);
    input.labels = as_int32(file, options.input, "labels");
  } else {
    const auto ids = options.ids.empty() ? ids_of(model.tokenizer(), options.text) : options.ids;
    check(!ids.empty(), "trace: no tokens; expected one of `text`, `ids`, `input`");
    input.ids = row_of(ids);
  }
  const Origin& origin = model.parts().origin;
  input.start = configured_id(origin, "decoder_start_token_id").value_or(0);
  input.padding = configured_id(origin, "pad_token_id").value_or(0);
  if (options.gradients && !input.labels) input.labels = input.ids;

  // Uses a copy of the model, so that the caller's weights get no gradients.
  Transformer transformer = model.parts().transformer;
  const auto found = trace_model(transformer, *origin.family, input);
  std::vector<std::string> names;
  for (const auto& [name, value] : found) names.push_back(name);
  write_safetensors(options.out, found);
  return names;
}

}  // namespace fovea
