#include "tasks/episodes.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/append.h"
#include "base/fields.h"
#include "base/ordered_json.h"
#include "fovea/core/random.h"
#include "loop/leader.h"

namespace fovea::train {
namespace {

using Value = nlohmann::ordered_json;

// The seed of an answer after the first one.
uint64_t seed_of_turn(uint64_t seed, size_t episode, int64_t turn) {
  constexpr uint32_t kSubstream = 1u << 30;  // of no first answer
  const auto words =
      philox(seed, Stream::sampling, kSubstream + static_cast<uint32_t>(turn), episode);
  return static_cast<uint64_t>(words[0]) << 32 | words[1];
}

Value value_of_reply(const std::string& text) {
  try {
    return parse_ordered_json(text, "environment");
  } catch (const Error& error) {
    throw FieldError(ErrorKind::InvalidArgument, "environment", error.what());
  }
}

void check_message(const Value& message) {
  check_field(message.is_object() && message.contains("role") && message["role"].is_string(),
              "environment", "replied {}; expected messages, objects with \"role\"",
              message.dump());
}

// Returns the messages of a reply that continues an episode.
std::vector<Conversation::Message> messages_of(const EnvironmentReply& reply) {
  std::vector<Conversation::Message> messages;
  const Value list = value_of_reply(reply.messages.empty() ? "[]" : reply.messages);
  check_field(list.is_array() && !list.empty(), "environment",
              "replied with no message; expected a list of messages, or the end of the episode");
  for (const Value& each : list) {
    check_message(each);
    messages.push_back({.json = each.dump()});
  }
  return messages;
}

}  // namespace

// The episodes of a batch that have not ended.
class EpisodePlayer::Table {
 public:
  Table(const EpisodePlayer& player, const Start& start, std::vector<PlayedEpisode>& all)
      : player_(player), start_(start), all_(all), each_(all.size() / start.prompts.size()) {
    for (size_t i = 0; i < all.size(); ++i) {
      open_.push_back(i);
      conversations_.push_back(start.prompts[i / each_]->prompt.conversation);
      sequences_.push_back(start.prompts[i / each_]->ids);
      append(sequences_.back(), all[i].ids);
    }
  }
  bool empty() const { return open_.empty(); }

  // Lets the environment reply to the last answers. Those episodes that go on remain.
  void reply() {
    set_answers();
    const std::vector<EnvironmentReply> replies = replies_of_leader();
    std::vector<size_t> going_on;
    for (size_t k = 0; k < open_.size(); ++k) {
      all_[open_[k]].reward += replies[k].reward;
      if (!replies[k].done && continues(open_[k], replies[k])) going_on.push_back(open_[k]);
    }
    open_ = going_on;
  }

  // Returns the prompts of the next answers.
  std::vector<AnswerPrompt> prompts() const {
    std::vector<AnswerPrompt> prompts;
    for (const size_t i : open_) {
      const uint64_t seed = start_.seeds[i / each_];
      prompts.push_back({.ids = &sequences_[i],
                         .seed = seed_of_turn(seed, i % each_, all_[i].answers),
                         .tokens = room(i)});
    }
    return prompts;
  }

  void add(std::vector<infer::Generation> answers) {
    for (size_t k = 0; k < open_.size(); ++k) {
      const size_t i = open_[k];
      PlayedEpisode& episode = all_[i];
      episode.answer = std::move(answers[k]);
      ++episode.answers;
      add_tokens(i, episode.answer.ids);
      if (episode.answer.end_id >= 0) add_tokens(i, {episode.answer.end_id});
    }
  }

 private:
  // The last messages are answers that are not yet written: now they are.
  void set_answers() {
    for (const size_t i : open_) {
      const Value message = {{"role", "assistant"}, {"content", all_[i].answer.text}};
      conversations_[i].messages.back() = {.json = message.dump(), .answer = true};
    }
  }

  std::vector<EnvironmentReply> replies_of_environment() const {
    std::vector<Episode> given;
    for (const size_t i : open_) {
      std::string messages;
      for (const Conversation::Message& message : conversations_[i].messages)
        messages += (messages.empty() ? "[" : ", ") + message.json;
      given.push_back({.number = start_.number + static_cast<int64_t>(i),
                       .evaluation = start_.evaluation,
                       .turn = all_[i].answers - 1,
                       .record = start_.prompts[i / each_]->prompt.record,
                       .messages = messages + "]"});
    }
    std::vector<EnvironmentReply> replies = player_.options_.environment(given);
    check_field(replies.size() == given.size(), "environment",
                "{} replies to {} answers; expected one to each", replies.size(), given.size());
    for (const EnvironmentReply& reply : replies)
      check_field(std::isfinite(reply.reward), "environment",
                  "the reward {}; expected finite numbers", reply.reward);
    return replies;
  }

  std::vector<EnvironmentReply> replies_of_leader() const {
    Communicator* const ranks = player_.ranks_;
    if (ranks == nullptr) return replies_of_environment();
    nlohmann::json told = nlohmann::json::array();
    if (leads(ranks))
      for (const EnvironmentReply& each : replies_of_environment())
        told.push_back({each.reward, each.done, each.messages, each.answer});
    std::vector<EnvironmentReply> replies;
    for (const nlohmann::json& each : of_leader(*ranks, told))
      replies.push_back({each[0], each[1], each[2], each[3]});
    return replies;
  }

  // Appends the messages of a reply. Returns false, without them, if the episode ends, since its
  // answer was cut or because it has no room for them and another token.
  bool continues(size_t i, const EnvironmentReply& reply) {
    const std::vector<Conversation::Message> added = messages_of(reply);
    if (all_[i].answer.end_id < 0) return false;
    Conversation& conversation = conversations_[i];
    const size_t answer = conversation.messages.size() - 1;
    if (!reply.answer.empty()) {
      const Value message = value_of_reply(reply.answer);
      check_message(message);
      conversation.messages.back().json = message.dump();
    }
    append(conversation.messages, added);
    conversation.messages.push_back({.json = "{}", .answer = true});
    const std::vector<int32_t> ids =
        player_.text_.tokens_after(conversation, answer, player_.ends_);
    if (std::ssize(ids) >= room(i)) return false;
    const auto begin = static_cast<int32_t>(all_[i].ids.size());
    add_tokens(i, ids);
    all_[i].replies.insert(all_[i].replies.end(),
                           {begin, begin + static_cast<int32_t>(ids.size())});
    return true;
  }

  // Returns the most tokens that may follow.
  int64_t room(size_t i) const {
    return std::min(player_.options_.answer_tokens - std::ssize(all_[i].ids),
                    player_.context_ - std::ssize(sequences_[i]));
  }
  void add_tokens(size_t i, const std::vector<int32_t>& ids) {
    append(all_[i].ids, ids);
    append(sequences_[i], ids);
  }

  const EpisodePlayer& player_;
  const Start& start_;
  std::vector<PlayedEpisode>& all_;
  size_t each_;  // episodes of a prompt
  std::vector<size_t> open_;
  std::vector<Conversation> conversations_;      // by episode; ends with the answer
  std::vector<std::vector<int32_t>> sequences_;  // by episode: the prompt and the tokens after it
};

void EpisodePlayer::play(const Start& start, std::vector<PlayedEpisode>& episodes,
                         const Answer& answer) const {
  Table table(*this, start, episodes);
  for (table.reply(); !table.empty(); table.reply()) table.add(answer(table.prompts()));
}

}  // namespace fovea::train
