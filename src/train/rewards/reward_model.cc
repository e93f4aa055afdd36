#include <algorithm>
#include <numeric>

#include "base/fields.h"
#include "base/hash.h"
#include "embed/head_states.h"
#include "fovea/model/model_path.h"
#include "loop/conversation_text.h"
#include "open/directory.h"
#include "rewards/rewards.h"
#include "tensor/tape.h"
#include "transformer/pack.h"

namespace fovea::train {
namespace {

constexpr size_t kTextsAtOnce = 8;

// A sequence classifier with one label, which reads the prompt with the answer as its own chat
// template renders them.
class RewardModel : public Reward {
 public:
  RewardModel(const std::string& folder, DType compute)
      : compute_(compute),
        model_(opened(folder)),
        text_(text::ModelChat::has_template(folder) ? std::optional(text::ModelChat::open(folder))
                                                    : std::nullopt,
              text::Tokenizer::open(folder), TrainOn::last),
        pairs_(model_.spec.encoder && !text::ModelChat::has_template(folder)
                   ? std::optional(infer::TextFormat::open(folder, model_.spec))
                   : std::nullopt),
        hash_(model::model_fingerprint(folder)) {}

  std::vector<double> operator()(const std::vector<GeneratedAnswer>& answers) override {
    const NoGradient off;
    std::vector<double> rewards;
    for (size_t begin = 0; begin < answers.size(); begin += kTextsAtOnce) {
      std::vector<infer::TokenizedText> texts;
      for (size_t i = begin; i < std::min(begin + kTextsAtOnce, answers.size()); ++i)
        texts.push_back(tokens_of(answers[i]));
      std::vector<size_t> all(texts.size());
      std::iota(all.begin(), all.end(), size_t{0});
      const infer::TokenBatch batch = infer::token_batch(texts, all);
      const Tensor states = infer::head_states(model_, batch, std::nullopt, compute_);
      for (const float score : to_floats(infer::head_logits(model_, batch, states)))
        rewards.push_back(score);
    }
    return rewards;
  }

  uint64_t hash() const override { return hash_; }
  uint64_t bytes() const override { return bytes_; }

 private:
  model::Transformer opened(const std::string& folder) {
    check_field(!folder.empty(), "rewards", "model: no directory; expected model:DIR");
    model::ModelFiles files = model::open_model_files(folder, model::Weights::packed);
    const model::HeadSpec& head = files.model.spec.head;
    check_field(head.kind == model::HeadKind::sequence && head.labels == 1, "rewards",
                "{} is not a sequence classifier with one label; expected a reward model", folder);
    bytes_ = model::weight_bytes(files.model);
    return std::move(files.model);
  }

  // As in training, an encoder without a template reads the prompt and the answer as a pair of
  // texts. Of a longer text of a decoder, it reads the end, as much as the context holds.
  infer::TokenizedText tokens_of(const GeneratedAnswer& answer) const {
    Conversation whole = answer.prompt->conversation;
    if (pairs_ && whole.plain)
      return pairs_->pair(pairs_->own_ids(whole.plain->prompt), answer.text);
    nlohmann::ordered_json message = {{"role", "assistant"}, {"content", answer.text}};
    whole.messages.back().json =
        message.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    if (whole.plain) whole.plain->completion = answer.text;
    std::vector<int32_t> ids = text_.texts(whole).back().ids;
    const auto context = static_cast<size_t>(model_.spec.context);
    if (ids.size() > context) ids.erase(ids.begin(), ids.end() - static_cast<int64_t>(context));
    if (ids.empty()) ids.push_back(0);
    return {std::move(ids), {}, 0};
  }

  DType compute_;
  uint64_t bytes_ = 0;
  model::Transformer model_;
  ConversationText text_;
  std::optional<infer::TextFormat> pairs_;
  uint64_t hash_;
};

}  // namespace

std::unique_ptr<Reward> make_reward_model(const std::string& folder, DType compute) {
  return std::make_unique<RewardModel>(folder, compute);
}

}  // namespace fovea::train
