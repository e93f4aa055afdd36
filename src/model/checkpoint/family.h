#pragma once

#include "checkpoint/config.h"
#include "checkpoint/names.h"

namespace fovea::model {

// A class of the transformers library and the head that it has.
struct Architecture {
  std::string name;
  HeadSpec head;
};

// A two-way table between a kind of Hugging Face directory and a Spec.
struct Family {
  const char* model_type;
  // The first is the language model, or the class for the family's main use. The head of the class
  // that the file names is set before `config` runs; `config` may change it.
  std::vector<Architecture> architectures;
  void (*config)(Config& io, Spec& spec);
  Names names;
  const char* prefix = "";  // prefix of tensor names that some files omit
  // Suffixes of the names of tensors that are ignored: buffers, copies of tied weights, and parts
  // of heads that fovea does not use.
  std::vector<std::string> buffers = {};
  // Other names of some tensors, such as those in memory in transformers 5 and later; files may use
  // these names too.
  Names names_in_memory = {};
  // True if transformers reports the last hidden state before the final norm.
  bool reports_unnormed = false;
  // If not null, `names` are without the prefix; the classes for labels of texts and of tokens have
  // it before all names but those that begin with this.
  const char* unprefixed_head = nullptr;
  // True if a pass with labels lets the decoder read the last label first, which is the language of
  // the text, instead of one start token.
  bool starts_with_last_label = false;
  // True if files may have tensors that predict further tokens, which are ignored: those of layers
  // after the last one, and those whose names begin with "mtp.".
  bool predicts_further = false;
};

// Returns the file's tensors for a model of this family, named by `names`; with `in_memory`, the
// rules of names_in_memory take precedence. A model with a pooled head is stored without the
// prefix.
inline std::vector<FileTensor> file_tensors(const Family& family, Transformer& model,
                                            bool in_memory = false) {
  Names names = in_memory ? family.names_in_memory : Names();
  names.insert(names.end(), family.names.begin(), family.names.end());
  std::vector<FileTensor> tensors = file_tensors(names, model);
  const std::string prefix = family.prefix;
  const HeadKind head = model.spec.head.kind;
  if (family.unprefixed_head != nullptr &&
      (head == HeadKind::sequence || head == HeadKind::token)) {
    for (FileTensor& tensor : tensors)
      if (!tensor.name.starts_with(family.unprefixed_head)) tensor.name.insert(0, prefix);
    return tensors;
  }
  if (model.spec.head.kind != HeadKind::pooled) return tensors;
  for (FileTensor& tensor : tensors)
    if (tensor.name.starts_with(prefix)) tensor.name.erase(0, prefix.size());
  return tensors;
}

}  // namespace fovea::model
