#include "cli/reports/score.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "fovea/infer/generate.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Scored {
  std::string text;
  int64_t tokens = 0;
  double logprob = 0;      // sum of the log-probabilities of the candidate's tokens
  double probability = 0;  // normalised over the candidates
};

Scored score_after(const model::Model& model, std::vector<int32_t> ids,
                   const std::string& candidate) {
  const size_t before = ids.size();
  model.tokenizer().encode(candidate, ids);
  Scored scored{candidate, static_cast<int64_t>(ids.size() - before)};
  const std::vector<infer::TokenLogprob> scores = infer::score(model, ids);
  for (size_t i = before; i < scores.size(); ++i)
    scored.logprob += static_cast<double>(scores[i].logprob);
  return scored;
}

void share_probability(std::vector<Scored>& all) {
  std::vector<double> logprobs;
  for (const Scored& each : all) logprobs.push_back(each.logprob);
  const std::vector<double> shares = infer::probabilities(logprobs);
  for (size_t i = 0; i < all.size(); ++i) all[i].probability = shares[i];
}

std::string print_candidates(const model::Model& model, const std::string& text,
                             const std::vector<std::string>& candidates, bool json) {
  std::vector<Scored> all;
  for (const std::string& candidate : candidates)
    all.push_back(score_after(model, infer::prompt_ids(model, text), candidate));
  share_probability(all);
  if (json) {
    Json list = Json::array();
    for (const Scored& each : all) {
      list.push_back({{"text", each.text},
                      {"logprob", each.logprob},
                      {"tokens", each.tokens},
                      {"perplexity", infer::perplexity(each.logprob, each.tokens)},
                      {"probability", each.probability}});
    }
    return json_line({{"prompt", text}, {"candidates", list}}) + "\n";
  }
  std::string out = fmt::format("{:>12}  {:>6}  {:>10}  {:>11}  candidate\n", "logprob", "tokens",
                                "perplexity", "probability");
  for (const Scored& each : all) {
    out += fmt::format("{:12.4f}  {:6}  {:10.4g}  {:10.2f}%  {}\n", each.logprob, each.tokens,
                       infer::perplexity(each.logprob, each.tokens), 100 * each.probability,
                       printable(json_line(each.text)));
  }
  return out;
}

std::string print_tokens(const model::Model& model, const std::string& text, bool json) {
  const std::vector<int32_t> ids = infer::prompt_ids(model, text);
  const std::vector<infer::TokenLogprob> scores = infer::score(model, ids);
  double sum = 0;
  for (const infer::TokenLogprob& each : scores) sum += static_cast<double>(each.logprob);
  const auto predicted = std::ssize(ids) - 1;  // the first token has no prediction
  if (json) {
    Json tokens = Json::array();
    for (size_t i = 0; i < ids.size(); ++i) {
      tokens.push_back({{"id", ids[i]},
                        {"text", model.tokenizer().bytes_of(ids[i])},
                        {"logprob", i == 0 ? Json() : Json(scores[i].logprob)}});
    }
    return json_line({{"tokens", tokens},
                      {"logprob", sum},
                      {"perplexity", infer::perplexity(sum, predicted)}}) +
           "\n";
  }
  std::string out = fmt::format("{:>12}  {:>7}  token\n", "logprob", "id");
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string shown = printable(json_line(model.tokenizer().bytes_of(ids[i])));
    out += i == 0 ? fmt::format("{:>12}  {:7}  {}\n", "-", ids[i], shown)
                  : fmt::format("{:12.4f}  {:7}  {}\n", scores[i].logprob, ids[i], shown);
  }
  return out + fmt::format("{:12.4f}  total, perplexity {:.4g} over {} tokens\n", sum,
                           infer::perplexity(sum, predicted), predicted);
}

}  // namespace

void print_scores(const model::Model& model, const std::string& text,
                  const std::vector<std::string>& candidates, bool json) {
  print(candidates.empty() ? print_tokens(model, text, json)
                           : print_candidates(model, text, candidates, json));
}

}  // namespace fovea::cli
