#include "fovea/answer.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>

#include "base/error.h"
#include "base/fields.h"

namespace fovea {
namespace {

// What the model writes if the passages do not answer the question.
constexpr std::string_view kNoAnswer = "NO ANSWER";
// Tokens for the answer that a prompt leaves free if the options have no limit.
constexpr int64_t kUsualRoom = 256;

// One message with everything, since some chat templates have no system role.
std::string task_text(const std::string& question,
                      const std::vector<infer::FoundPassage>& passages) {
  std::string text = fmt::format(
      "Answer the question with the numbered passages, and with nothing else. After each "
      "statement, write the number of the passage that supports it in brackets, such as [1]. If "
      "the passages do not answer the question, write only {}.\n",
      kNoAnswer);
  for (size_t i = 0; i < passages.size(); ++i)
    text += fmt::format("\n[{}] {}\n", i + 1, passages[i].text);
  return text + "\nQuestion: " + question + "\n";
}

std::vector<int32_t> ids_of(const model::Model& model, const std::optional<text::ChatFormat>& chat,
                            const std::string& text) {
  if (!chat) return infer::prompt_ids(model, text + "Answer:");
  const text::Tokenizer& tokenizer = model.tokenizer();
  text::ChatRequest request;
  request.messages = text::ChatValue::list({text::chat_message("user", text)});
  request.variables =
      text::ChatValue::object({{"enable_thinking", false}});  // other templates ignore it
  return tokenizer.encode(chat->render(text::guarded(request, tokenizer)),
                          text::SpecialTokens::guarded);
}

// Returns the passages whose vectors are similar enough to the question.
std::vector<infer::FoundPassage> similar_passages(const std::vector<infer::FoundPassage>& passages,
                                                  const AnswerOptions& options) {
  std::vector<infer::FoundPassage> similar;
  std::ranges::copy_if(passages, std::back_inserter(similar), [&](const infer::FoundPassage& p) {
    return double{p.similarity} >= options.least_similarity;
  });
  return similar;
}

// Returns the text after the model's thoughts, without marks around it.
std::string_view statement_in(std::string_view text) {
  constexpr std::string_view kThought = "</think>", kAround = " \t\r\n*\".";
  if (const size_t end = text.rfind(kThought); end != text.npos)
    text.remove_prefix(end + kThought.size());
  const size_t begin = text.find_first_not_of(kAround), last = text.find_last_not_of(kAround);
  return begin == text.npos ? std::string_view() : text.substr(begin, last + 1 - begin);
}

// Returns whether the model writes that the passages do not answer the question.
bool refuses(std::string_view statement) {
  std::string capitals(statement);
  for (char& c : capitals) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return statement.starts_with(kNoAnswer) || capitals == kNoAnswer;
}

}  // namespace

void visit(AnswerOptions& o, OptionVisitor& v) {
  v.number({"least_similarity",
            "answers use only passages whose vector has at least this similarity to the question"},
           o.least_similarity, -1e9, 1e9);
}

std::vector<int64_t> cited_numbers(const std::string& text) {
  constexpr int64_t kMost = 1'000'000'000;
  std::set<int64_t> numbers;
  for (size_t at = 0; (at = text.find('[', at)) != text.npos; ++at) {
    const size_t end = text.find_first_not_of("0123456789, ", at + 1);
    if (end == text.npos || text[end] != ']') continue;
    int64_t number = -1;  // -1 = between numbers
    for (size_t i = at + 1; i <= end; ++i) {
      if (std::isdigit(static_cast<unsigned char>(text[i])) != 0) {
        number = std::min(kMost, std::max<int64_t>(number, 0) * 10 + (text[i] - '0'));
      } else if (number >= 0) {
        numbers.insert(number);
        number = -1;
      }
    }
  }
  return {numbers.begin(), numbers.end()};
}

PassageAnswer answer_from_passages(const model::Model& model,
                                   const std::optional<text::ChatFormat>& chat,
                                   const std::string& question,
                                   const std::vector<infer::FoundPassage>& passages,
                                   const infer::GenerateOptions& generation,
                                   const AnswerOptions& options, const infer::TextSink& stream) {
  check_fields(options);
  PassageAnswer answer;
  answer.sources = similar_passages(passages, options);
  if (answer.sources.empty()) return answer;
  const int64_t room = generation.max_tokens >= 0 ? generation.max_tokens : kUsualRoom;
  const int64_t context = model.spec().context;
  const int64_t most = std::max<int64_t>(context / 2, context - room);
  std::vector<int32_t> ids = ids_of(model, chat, task_text(question, answer.sources));
  while (std::ssize(ids) > most && answer.sources.size() > 1) {
    answer.sources.pop_back();
    ids = ids_of(model, chat, task_text(question, answer.sources));
  }
  check(std::ssize(ids) <= most,
        "question: has {} tokens with one passage; expected at most {}, of which {} are for the "
        "answer (an index of shorter passages, or a model with a longer context)",
        ids.size(), most, context - most);
  const infer::Generation found = infer::generate(model, ids, generation, stream).at(0);
  answer.text = found.text;
  answer.finish = found.finish;
  const std::string_view statement = statement_in(answer.text);
  answer.answered = !statement.empty() && !refuses(statement);
  for (const int64_t number : cited_numbers(std::string(statement))) {
    const bool known = number >= 1 && number <= std::ssize(answer.sources);
    (known ? answer.cited : answer.unknown).push_back(number);
  }
  answer.supported = answer.answered && !answer.cited.empty();
  return answer;
}

PassageAnswer answer_from_passages(const infer::Classifier& model, const std::string& question,
                                   const std::vector<infer::FoundPassage>& passages,
                                   const AnswerOptions& options) {
  check_fields(options);
  PassageAnswer answer;
  answer.sources = similar_passages(passages, options);
  std::vector<infer::Question> questions;
  for (const infer::FoundPassage& passage : answer.sources)
    questions.push_back({question, passage.text});
  infer::ClassifyOptions how;
  how.null_answer = true;
  how.name_of_text = [](size_t) { return "question"; };
  const auto found = model.answer(questions, how);
  for (size_t i = 0; i < found.size(); ++i) {
    const infer::ExtractedAnswer& best = found[i].at(0);  // the empty answer if it is more probable
    if (best.text.empty() || best.score <= answer.score.value_or(-1)) continue;
    answer.score = best.score;
    answer.text = fmt::format("{} [{}]", best.text, i + 1);
    answer.cited = {static_cast<int64_t>(i + 1)};
  }
  answer.answered = answer.supported = answer.score.has_value();
  return answer;
}

}  // namespace fovea
