#include "cli/reports/alternatives.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/math.h"
#include "base/ordered_json.h"
#include "fovea/core/error.h"

namespace fovea::cli {
namespace {

std::string token_text(const model::Model& model, int32_t id) {
  return model.has_tokenizer() ? model.tokenizer().decode({id}) : fmt::format("{}", id);
}

}  // namespace

std::vector<Alternative> alternatives(const model::Model& model, const std::vector<int32_t>& prompt,
                                      const infer::GenerateOptions& options, int64_t count,
                                      int64_t at, const infer::TextSink& sink) {
  infer::GenerateOptions first = options;
  first.logprobs = std::min(count, model.spec().vocabulary);
  first.max_tokens = at;
  const infer::Generation begun = infer::generate(model, prompt, first, sink).front();
  if (std::ssize(begun.ids) < at)
    throw FieldError(ErrorKind::InvalidArgument, "at",
                     fmt::format("{}; expected at most {}, the length of the text in tokens", at,
                                 begun.ids.size()));
  std::vector<Alternative> all;
  for (const auto& [id, logprob] : begun.logprobs.back().top) {
    infer::GenerateOptions other = options;
    other.forced.assign(begun.ids.begin(), begun.ids.end() - 1);
    other.forced.push_back(id);
    all.push_back({id, logprob, infer::generate(model, prompt, other, sink).front()});
  }
  return all;
}

std::string alternatives_text(const model::Model& model, const std::vector<Alternative>& all) {
  std::string out;
  for (const Alternative& each : all)
    out += fmt::format("{:5.1f}% {}: {}\n", 100 * math::exp(double{each.logprob}),
                       json_line(token_text(model, each.id)), each.generation.text);
  return out;
}

std::string alternatives_json(const model::Model& model, const std::vector<Alternative>& all,
                              int64_t at) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Alternative& each : all)
    list.push_back({{"token", token_text(model, each.id)},
                    {"id", each.id},
                    {"logprob", each.logprob},
                    {"text", each.generation.text},
                    {"ids", each.generation.ids},
                    {"finish", infer::name_of(each.generation.finish)}});
  return json_line({{"at", at}, {"alternatives", list}}) + "\n";
}

}  // namespace fovea::cli
