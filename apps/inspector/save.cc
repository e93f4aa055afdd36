#include "inspector/save.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/fields.h"
#include "inspector/page.h"
#include "inspector/routes.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

// Maximum weights of all layers that the file contains entirely: 11 MB in base64.
constexpr int64_t kWholeWeights = int64_t{2} << 20;
constexpr int64_t kThumbnail = 32;  // as in thumbnails.js

const char* name_of(model::AttentionKind kind) {
  return kind == model::AttentionKind::encoder ? "encoder"
         : kind == model::AttentionKind::cross ? "cross"
                                               : "self";
}

std::string encoded(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// Writes the request exactly as the page does: compact, with keys in the page's order.
std::string run_request(const study::InspectInput& input) {
  return Json({{"model", "0"},
               {"text", input.text},
               {"target", input.target},
               {"muted", Json::array()}})
      .dump();
}

class Saving {
 public:
  Saving(Routes& routes, const std::string& request) : routes_(routes) {
    const Response run = ask("api/run " + request, {"POST", "api/run", {}, request});
    const Json facts = Json::parse(run.body);
    run_ = facts.at("run");
    tokens_ = std::ssize(facts.at("tokens"));
    source_ = std::ssize(facts.at("source"));
  }

  void add(const std::string& path) { ask(path, {"GET", path, {}, ""}); }
  void add_spec() { ask("api/spec?model=0", {"GET", "api/spec", {{"model", "0"}}, ""}); }

  // Captures the maps of all heads of a layer, under the path that a saved page requests.
  void add_map(model::AttentionKind kind, int64_t layer, const std::string& heads, int64_t step) {
    std::string name = fmt::format("api/map?look={}&layer={}", name_of(kind), layer);
    if (step > 1) name += fmt::format("&step={}", step);
    ask(name, {"GET",
               "api/map",
               {{"run", run_},
                {"look", name_of(kind)},
                {"layer", std::to_string(layer)},
                {"heads", heads},
                {"step", std::to_string(step)}},
               ""});
  }

  int64_t rows(model::AttentionKind kind) const {
    return kind == model::AttentionKind::encoder ? source_ : tokens_;
  }
  int64_t keys(model::AttentionKind kind) const {
    return kind == model::AttentionKind::self ? tokens_ : source_;
  }
  const std::map<std::string, Response>& responses() const { return responses_; }

 private:
  Response ask(const std::string& name, const Request& request) {
    const Response response = routes_.respond(request);
    if (response.status != 200)
      throw Error(ErrorKind::InvalidArgument,
                  Json::parse(response.body).at("error").at("message").get<std::string>());
    return responses_[name] = response;
  }

  Routes& routes_;
  std::map<std::string, Response> responses_;
  std::string run_;
  int64_t tokens_ = 0, source_ = 0;
};

// Returns the stack of a head. Throws InvalidArgument if the head does not exist.
const model::StackSpec& stack_of(const model::Spec& spec, const model::HeadIndex& head) {
  check_field(head.kind == model::AttentionKind::self || (spec.encoder && spec.decoder), "look",
              "encoder and cross need a model with an encoder and a decoder; expected self");
  const model::StackSpec& stack =
      head.kind == model::AttentionKind::encoder || !spec.decoder ? *spec.encoder : *spec.decoder;
  check_field(head.layer >= 0 && head.layer < stack.layers, "layer", "{}; expected 0 to {}",
              head.layer, stack.layers - 1);
  check_field(head.head >= 0 && head.head < stack.attention.heads, "head", "{}; expected 0 to {}",
              head.head, stack.attention.heads - 1);
  return stack;
}

}  // namespace

std::string saved_view(const std::string& name, const model::Model& model,
                       const study::InspectInput& input, const model::HeadIndex& head) {
  const model::AttentionKind kind = head.kind;
  const model::StackSpec& stack = stack_of(model.spec(), head);
  Routes routes(name, model);
  Saving saving(routes, run_request(input));
  saving.add("api/models");
  saving.add_spec();
  std::string heads = "0";
  for (int64_t h = 1; h < stack.attention.heads; ++h) heads += "," + std::to_string(h);
  const int64_t rows = saving.rows(kind), keys = saving.keys(kind);
  const bool small = stack.layers * stack.attention.heads * rows * keys <= kWholeWeights;
  const int64_t step = (std::max(rows, keys) + kThumbnail - 1) / kThumbnail;
  for (int64_t l = 0; l < stack.layers; ++l) {
    const model::MixerKind mixer =
        stack.mixers.empty() ? model::MixerKind::attention : stack.mixers[static_cast<size_t>(l)];
    const bool attends = mixer == model::MixerKind::attention || mixer == model::MixerKind::latent;
    if (kind != model::AttentionKind::cross && !attends) continue;
    if (small || l == head.layer) saving.add_map(kind, l, heads, 1);
    if (step > 1) saving.add_map(kind, l, heads, step);
  }
  const std::string hash =
      fmt::format("#text={}&target={}&look={}&layer={}&heads={}", encoded(input.text),
                  encoded(input.target), name_of(kind), head.layer, head.head);
  return saved_page(saving.responses(), hash);
}

}  // namespace fovea::inspector
