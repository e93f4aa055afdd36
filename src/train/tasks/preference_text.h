#pragma once

#include "data/preferences.h"
#include "embed/text_format.h"
#include "loop/conversation_text.h"
#include "loop/job.h"

namespace fovea::train {

// The two texts of a record, and its value: see PreferenceTexts.
struct PreferenceText {
  TrainedText first, second;
  std::vector<int32_t> first_types, second_types;  // the type of each token
  bool first_cut = false, second_cut = false;      // whether the format of pairs truncated it
  std::vector<int32_t> source;  // of an encoder-decoder: the tokens of the prompt
  double value = 0;
};

// Converts preferences to texts, as conversations are converted.
class PreferenceTextMaker {
 public:
  struct Options {
    TrainOn train_on;
    bool rewards;      // complete texts are read; else log-probabilities of answers are computed
    int64_t longest;   // most tokens of a text
    TooLong too_long;  // what becomes of longer texts
    // Of an encoder: without a template, the prompt and the answer are a pair of texts.
    std::optional<infer::TextFormat> pairs = {};
    // Of an encoder-decoder: the prompt is its source, and the answer its target, which begins with
    // the token `start`. Else null.
    const text::TranslationTokenizers* translation = nullptr;
    int32_t start = 0;
  };
  PreferenceTextMaker(const std::optional<text::ModelChat>& chat, const text::Tokenizer& tokenizer,
                      const Options& options);

  // Return the texts; unset if one is too long or has no trained token, or if both are equal.
  std::optional<PreferenceText> pair(const Preference& record);
  // `other`: the conversation whose answer is that of the second text.
  std::optional<PreferenceText> judged(const Conversation& answer, bool desirable,
                                       const Conversation& other);
  // Returns the prompt of a conversation.
  std::vector<int32_t> prompt(const Conversation& conversation) const {
    return text_.prompt(conversation);
  }
  // Reports the texts that were truncated or skipped so far.
  void report(const Say& say) const;

 private:
  TrainedText text_of(const Conversation& conversation, std::vector<int32_t>& types,
                      bool& cut) const;
  bool fit(TrainedText& text, std::vector<int32_t>& types, bool cut);
  bool fit_both(PreferenceText& made);
  TrainedText target_of(const Conversation& conversation) const;
  // Sets the tokens of the prompt. Returns false if it cannot be used.
  bool set_source(const Conversation& conversation, PreferenceText& made);

  ConversationText text_;
  Options options_;
  int64_t long_ = 0, untrained_ = 0, equal_ = 0;
};

}  // namespace fovea::train
