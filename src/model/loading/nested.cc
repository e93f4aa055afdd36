#include "loading/nested.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;

class PartOfSource : public TensorSource {
 public:
  PartOfSource(std::shared_ptr<const TensorSource> whole, const std::vector<Renaming>& renamings)
      : whole_(std::move(whole)) {
    for (StoredTensor tensor : whole_->stored()) {
      const auto fits = [&](const Renaming& r) { return tensor.name.starts_with(r.theirs); };
      const auto renaming = std::find_if(renamings.begin(), renamings.end(), fits);
      if (renaming == renamings.end()) continue;
      const std::string theirs = tensor.name;
      tensor.name = renaming->ours + theirs.substr(renaming->theirs.size());
      if (theirs_.emplace(tensor.name, theirs).second) stored_.push_back(std::move(tensor));
    }
    std::sort(stored_.begin(), stored_.end(),
              [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  }
  const std::vector<StoredTensor>& stored() const override { return stored_; }
  Tensor tensor(std::string_view name) const override {
    const auto found = theirs_.find(name);
    return whole_->tensor(found == theirs_.end() ? name : found->second);
  }
  std::shared_ptr<const MappedFile> file_of(const StoredTensor& stored) const override {
    return whole_->file_of(stored);
  }

 private:
  std::shared_ptr<const TensorSource> whole_;
  std::vector<StoredTensor> stored_;
  std::map<std::string, std::string, std::less<>> theirs_;  // names in the file
};

// Settings of generation and of other classes, which transformers 4 wrote into nested configs.
constexpr const char* kOfOtherClasses[] = {"add_cross_attention",
                                           "cross_attention_hidden_size",
                                           "diversity_penalty",
                                           "do_sample",
                                           "encoder_no_repeat_ngram_size",
                                           "exponential_decay_length_penalty",
                                           "is_decoder",
                                           "num_beam_groups",
                                           "num_return_sequences",
                                           "output_scores",
                                           "prefix",
                                           "pruned_heads",
                                           "remove_invalid_values",
                                           "repetition_penalty",
                                           "return_dict_in_generate",
                                           "temperature",
                                           "tf_legacy_loss",
                                           "tie_encoder_decoder",
                                           "tie_word_embeddings",
                                           "top_k",
                                           "top_p",
                                           "torchscript",
                                           "typical_p",
                                           "use_bfloat16"};

}  // namespace

std::shared_ptr<const TensorSource> part_of(std::shared_ptr<const TensorSource> whole,
                                            const std::vector<Renaming>& renamings) {
  return std::make_shared<PartOfSource>(std::move(whole), renamings);
}

Json nested_config(const Json& whole, const char* key, const Family& family,
                   const std::string& file) {
  const auto found = whole.find(key);
  if (found == whole.end() || !found->is_object())
    fail(ErrorKind::BadFile, "{}: {} is not an object; expected the config of a model", file, key);
  Json config = *found;
  for (const char* name : kOfOtherClasses) config.erase(name);
  config["model_type"] = family.model_type;
  config["architectures"] = Json::array({family.architectures[0].name});
  return config;
}

}  // namespace fovea::model
