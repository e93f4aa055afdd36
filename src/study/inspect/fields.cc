#include "fovea/inspect.h"
#include "fovea/trace.h"

namespace fovea {

void visit(TraceOptions& o, OptionVisitor& v) {
  v.text({"text", "input text"}, o.text);
  v.integers({"ids", "input token ids, such as 1,2,3"}, o.ids, 0, INT32_MAX);
  v.text({"input",
          "file with input_ids and optionally attention_mask, token_type_ids and labels; or with "
          "pixel_values, input_features or waveform"},
         o.input);
  v.text({"image",
          "picture: the input of an encoder of images, or the one that a mark such as <image> in "
          "the text stands for"},
         o.image);
  v.texts({"what",
           "names of the values to write, such as \"hidden.*,*query*\" or "
           "\"blocks.*.attn.hook_pattern\"; unset: hidden.*, attention.* and logits"},
          o.what);
  v.text({"layers", "write only values of these layers: 3 or 0-5"}, o.layers);
  v.text({"patch", "file with values that replace those of the same names in this run"}, o.patch);
  v.boolean({"gradients", "also write the loss and the gradient of every weight"}, o.gradients);
  v.text({"out", "output file: .safetensors, or .npz of NumPy"}, o.out);
}

void visit(InspectInput& i, OptionVisitor& v) {
  v.text({"text", "input text of the model"}, i.text);
  v.text({"target", "decoder text of an encoder-decoder; unset: the model's own output"}, i.target);
}

void visit(HeadPlace& p, OptionVisitor& v) {
  constexpr int64_t kMost = 1'000'000;  // the model limits both further
  v.choice({"look",
            "self-attention, self-attention of the encoder, or cross-attention from the decoder to "
            "the encoder"},
           p.kind, {"self", "encoder", "cross"});
  v.integer({"layer", "layer, counted from 0"}, p.layer, 0, kMost);
  v.integer({"head", "head, counted from 0"}, p.head, 0, kMost);
}

}  // namespace fovea
