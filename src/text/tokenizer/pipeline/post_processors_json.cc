#include "tokenizer/pipeline/json_part.h"
#include "tokenizer/pipeline/post_processors.h"

namespace fovea::text {
namespace {

constexpr int64_t longest_sequence = int64_t{1} << 31;  // in tokens

TrimOffsets read_trim(const JsonPart& json) {
  return {json.flag("trim_offsets", true), json.flag("add_prefix_space", true)};
}

// Reads a token and its id, such as ["[SEP]", 3].
AddedId read_token(const JsonPart& json, const char* key) {
  const auto& list = json.list(key);
  if (list.size() != 2 || !list[0].is_string() || !list[1].is_number_unsigned() ||
      list[1].get<uint64_t>() > INT32_MAX) {
    json.bad(fmt::format("{} is {}", key, list.dump()), "the text of a token and its id");
  }
  return {list[1].get<int32_t>(), list[0].get<std::string>()};
}

PostProcessor read_bert_processing(const JsonPart& json) {
  return BertProcessing{read_token(json, "sep"), read_token(json, "cls")};
}

PostProcessor read_roberta(const JsonPart& json) {
  return RobertaProcessing{read_token(json, "sep"), read_token(json, "cls"), read_trim(json)};
}

// Returns the tokens to which a template refers by `name`.
std::vector<AddedId> read_special(const JsonPart& json, const std::string& name) {
  const JsonPart special = json.child("special_tokens").child(name);
  const auto &ids = special.list("ids"), &tokens = special.list("tokens");
  if (ids.size() != tokens.size()) special.bad("ids and tokens differ in number", "equal numbers");
  std::vector<AddedId> added;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!tokens[i].is_string() || !ids[i].is_number_unsigned() ||
        ids[i].get<uint64_t>() > INT32_MAX) {
      special.bad(fmt::format("token {} has id {}", brief(tokens[i]), brief(ids[i])),
                  "a string and an id");
    }
    added.push_back({ids[i].get<int32_t>(), tokens[i].get<std::string>()});
  }
  return added;
}

std::vector<TemplateProcessing::Part> read_template(const JsonPart& json, const char* key) {
  constexpr std::array<std::string_view, 2> sequences = {"A", "B"};
  constexpr size_t kMostAdded = 4096;  // real templates add at most a dozen
  size_t count = 0;
  std::vector<TemplateProcessing::Part> parts;
  for (size_t i = 0; i < json.list(key).size(); ++i) {
    const JsonPart part = json.element(key, i);
    const bool special = part.json().contains("SpecialToken");
    const JsonPart inner = part.child(special ? "SpecialToken" : "Sequence");
    const auto type_id = static_cast<int32_t>(inner.count("type_id", 0, INT32_MAX));
    if (special) {
      parts.push_back({-1, type_id, read_special(json, inner.text("id"))});
      count += parts.back().added.size();
      if (count > kMostAdded) {
        json.unsupported(fmt::format("a template that adds more than {} tokens", kMostAdded),
                         fmt::format("at most {}", kMostAdded));
      }
    } else {
      const auto sequence = static_cast<int>(inner.choice("id", sequences));
      if (sequence == 1 && std::string_view(key) == "single")
        inner.bad("id is \"B\", but there is only one text", "\"A\"");
      parts.push_back({sequence, type_id, {}});
    }
  }
  return parts;
}

PostProcessor read_templates(const JsonPart& json) {
  return TemplateProcessing{read_template(json, "single"), read_template(json, "pair")};
}

constexpr std::array<PartReader<PostProcessor>, 4> processor_readers = {{
    {"TemplateProcessing", read_templates},
    {"BertProcessing", read_bert_processing},
    {"RobertaProcessing", read_roberta},
    {"ByteLevel", [](const JsonPart& json) -> PostProcessor { return read_trim(json); }},
}};

struct AllIds {
  std::vector<int32_t> operator()(const TrimOffsets&) const { return {}; }
  std::vector<int32_t> operator()(const BertProcessing& p) const { return {p.sep.id, p.cls.id}; }
  std::vector<int32_t> operator()(const RobertaProcessing& p) const { return {p.sep.id, p.cls.id}; }
  std::vector<int32_t> operator()(const TemplateProcessing& p) const {
    std::vector<int32_t> ids;
    for (const auto* parts : {&p.single, &p.pair}) {
      for (const auto& part : *parts) {
        for (const AddedId& added : part.added) ids.push_back(added.id);
      }
    }
    return ids;
  }
};

}  // namespace

PostProcessors parse_post_processors(const nlohmann::json& json, const std::string& path,
                                     size_t size) {
  PostProcessors parts;
  if (json.is_null()) return parts;
  const JsonPart all(json, path, "post_processor");
  read_parts(all, processor_readers, "processors", parts);
  for (const PostProcessor& part : parts) {
    for (const int32_t id : std::visit(AllIds{}, part)) {
      if (static_cast<size_t>(id) >= size)
        all.bad(fmt::format("adds a token of id {}", id), fmt::format("an id below {}", size));
    }
  }
  return parts;
}

std::optional<Truncation> parse_truncation(const nlohmann::json& json, const std::string& path) {
  constexpr std::array<std::string_view, 3> strategies = {"LongestFirst", "OnlyFirst",
                                                          "OnlySecond"};
  constexpr std::array<std::string_view, 2> directions = {"Left", "Right"};
  if (json.is_null()) return {};
  const JsonPart part(json, path, "truncation");
  const bool left = json.contains("direction") && part.choice("direction", directions) == 0;
  return Truncation{part.count("max_length", 0, longest_sequence),
                    part.count("stride", 0, longest_sequence),
                    static_cast<TruncationStrategy>(part.choice("strategy", strategies)), left};
}

std::optional<Padding> parse_padding(const nlohmann::json& json, const std::string& path,
                                     size_t size) {
  constexpr std::array<std::string_view, 2> directions = {"Left", "Right"};
  if (json.is_null()) return {};
  constexpr int64_t most = int64_t{1} << 20;  // tokens; above any context
  const JsonPart part(json, path, "padding");
  Padding padding;
  const auto strategy = json.find("strategy");
  if (strategy != json.end() && strategy->is_object())
    padding.length = part.child("strategy").count("Fixed", 0, most);
  const auto multiple = json.find("pad_to_multiple_of");
  const bool has_multiple = multiple != json.end() && !multiple->is_null();
  padding.multiple_of = has_multiple ? part.count("pad_to_multiple_of", 0, most) : 0;
  padding.left = part.choice("direction", directions) == 0;
  padding.id = static_cast<int32_t>(part.count("pad_id", 0, static_cast<int64_t>(size) - 1));
  padding.type_id = static_cast<int32_t>(part.count("pad_type_id", 0, INT32_MAX));
  padding.token = part.text("pad_token");
  return padding;
}

}  // namespace fovea::text
