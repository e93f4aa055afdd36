#include <algorithm>

#include "base/fields.h"
#include "base/hash.h"
#include "families/directory.h"
#include "fovea/doctor.h"
#include "model/pack.h"
#include "tensor/tape.h"
#include "train/rewards.h"
#include "train/tasks/conversation_text.h"

namespace fovea {
namespace {

constexpr size_t kTextsAtOnce = 8;

// A sequence classifier with one label, which reads the prompt with the answer as its own chat
// template renders them.
class RewardModel : public Reward {
 public:
  RewardModel(const std::string& folder, DType compute)
      : compute_(compute),
        model_(opened(folder)),
        text_(
            ModelChat::has_template(folder) ? std::optional(ModelChat::open(folder)) : std::nullopt,
            Tokenizer::open(folder), TrainOn::last),
        hash_(model_fingerprint(folder)) {}

  std::vector<double> operator()(const std::vector<WrittenAnswer>& answers) override {
    const NoGradient off;
    std::vector<std::vector<int32_t>> texts;
    for (const WrittenAnswer& answer : answers) texts.push_back(ids_of(answer));
    std::vector<double> rewards;
    for (size_t begin = 0; begin < texts.size(); begin += kTextsAtOnce)
      for (const float score :
           scores({texts.data() + begin, std::min(kTextsAtOnce, texts.size() - begin)}))
        rewards.push_back(score);
    return rewards;
  }

  uint64_t hash() const override { return hash_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  Transformer opened(const std::string& folder) {
    check_field(!folder.empty(), "rewards", "model: no directory; expected model:DIR");
    ModelFiles files = open_model_files(folder, Weights::packed);
    const HeadSpec& head = files.model.spec.head;
    check_field(head.kind == HeadKind::sequence && head.labels == 1, "rewards",
                "{} is not a sequence classifier with one label; expected a reward model", folder);
    bytes_ = weight_bytes(files.model);
    return std::move(files.model);
  }

  // The end of the text, as much as the context holds.
  std::vector<int32_t> ids_of(const WrittenAnswer& answer) const {
    Conversation whole = answer.prompt->conversation;
    nlohmann::ordered_json message = {{"role", "assistant"}, {"content", answer.text}};
    whole.messages.back().json =
        message.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (whole.plain) whole.plain->completion = answer.text;
    std::vector<int32_t> ids = text_.texts(whole).back().ids;
    const auto context = static_cast<size_t>(model_.spec.context);
    if (ids.size() > context) ids.erase(ids.begin(), ids.end() - static_cast<int64_t>(context));
    if (ids.empty()) ids.push_back(0);
    return ids;
  }

  std::vector<float> scores(std::span<const std::vector<int32_t>> texts) const {
    size_t longest = 0;
    for (const auto& ids : texts) longest = std::max(longest, ids.size());
    const auto T = static_cast<int64_t>(longest);
    Sequence sequence;
    const auto padding = static_cast<double>(std::max<int64_t>(0, model_.spec.padding));
    const auto B = static_cast<int64_t>(texts.size());
    sequence.ids = full({B, T}, padding, DType::i32);
    if (model_.spec.token_types > 1) sequence.types = zeros({B, T}, DType::i32);
    Pass pass;
    pass.compute = compute_;
    for (size_t i = 0; i < texts.size(); ++i) {
      std::copy(texts[i].begin(), texts[i].end(),
                sequence.ids.data_as<int32_t>() + static_cast<int64_t>(i) * T);
      pass.mask.valid.push_back({0, std::ssize(texts[i])});
    }
    const Tensor hidden =
        model_.spec.encoder ? model_.encode(sequence, pass) : model_.decode(sequence, pass);
    return to_floats(model_.logits(hidden, pass.mask.valid));
  }

  DType compute_;
  uint64_t bytes_ = 0;
  Transformer model_;
  ConversationText text_;
  uint64_t hash_;
};

}  // namespace

std::unique_ptr<Reward> make_reward_model(const std::string& folder, DType compute) {
  return std::make_unique<RewardModel>(folder, compute);
}

}  // namespace fovea
