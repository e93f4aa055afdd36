#include "fovea/study/inspect.h"
#include "fovea/study/trace.h"

namespace fovea::study {

void visit(TraceOptions& o, OptionVisitor& v) {
  v.text({"text", "input text"}, o.text);
  v.integers({"ids", "input token ids, such as 1,2,3"}, o.ids, 0, INT32_MAX);
  v.text({"input",
          "file with input_ids and optionally attention_mask, token_type_ids and labels; or with "
          "pixel_values, input_features or waveform"},
         o.input);
  v.text({"image",
          "image: the input of an encoder of images, or the one that a mark such as <image> in "
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

}  // namespace fovea::study
