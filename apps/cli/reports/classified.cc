#include "cli/reports/classified.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/ordered_json.h"
#include "inspector/explanation_json.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

// Returns a text without line breaks and tabs, which would break the columns.
std::string in_a_column(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = ' ';
  return text;
}

std::string line_of(size_t index, const char* key, const Json& value) {
  return json_line({{"index", index}, {key, value}}) + "\n";
}

// Returns the line of a text with the explanations of its results, if there are any.
std::string line_of(size_t index, const char* key, const Json& value,
                    const std::vector<study::Explanation>* explanations) {
  if (explanations == nullptr) return line_of(index, key, value);
  Json list = Json::array();
  for (const study::Explanation& one : *explanations)
    list.push_back(inspector::explanation_json(one));
  return json_line({{"index", index}, {key, value}, {"explanations", list}}) + "\n";
}

// Returns the explanation of result `result` of text `text` below its lines.
std::string explanation_below(const ShownExplanations* shown, size_t text, size_t result) {
  if (shown == nullptr) return "";
  return explanation_text(shown->of_texts[text][result], shown->options, shown->style) + "\n";
}

Json json_of(const infer::Entity& entity) {
  return {{"entity_group", entity.label},
          {"score", entity.score},
          {"word", entity.text},
          {"start", entity.span.begin},
          {"end", entity.span.end}};
}
Json json_of(const infer::ExtractedAnswer& answer) {
  return {{"score", answer.score},
          {"start", answer.span.begin},
          {"end", answer.span.end},
          {"answer", answer.text}};
}
Json json_of(const infer::MaskCandidates& candidates) {
  Json list = Json::array();
  for (const infer::MaskCandidate& one : candidates)
    list.push_back({{"score", one.score},
                    {"token", one.id},
                    {"token_str", one.token},
                    {"sequence", one.text}});
  return list;
}

std::string text_of(size_t number, const infer::Entity& entity) {
  return fmt::format("{}\t{}\t{}\t{}\t{:.6f}\t{}\n", number, entity.span.begin, entity.span.end,
                     in_a_column(entity.label), entity.score, in_a_column(entity.text));
}
std::string text_of(size_t number, const infer::ExtractedAnswer& answer) {
  return fmt::format("{}\t{}\t{}\t{:.6f}\t{}\n", number, answer.span.begin, answer.span.end,
                     answer.score, in_a_column(answer.text));
}

// Returns the lines of lists of results, one list for each text.
template <class Result>
std::string lines_of(const std::vector<std::vector<Result>>& result, const char* key, size_t first,
                     const ClassifiedFormat& format, const ShownExplanations* shown) {
  std::string out;
  for (size_t i = 0; i < result.size(); ++i) {
    Json list = Json::array();
    for (size_t j = 0; j < result[i].size(); ++j) {
      if (format.json)
        list.push_back(json_of(result[i][j]));
      else
        out += text_of(first + i + 1, result[i][j]) + explanation_below(shown, i, j);
    }
    if (format.json)
      out += line_of(first + i, key, list, shown == nullptr ? nullptr : &shown->of_texts[i]);
  }
  return out;
}

// The labels of a text to show, as JSON and as a line of text.
struct ShownLabels {
  Json list = Json::array();
  std::string line;
};
ShownLabels labels_of(const infer::Classifications& result, int64_t text,
                      const ClassifiedFormat& format) {
  ShownLabels labels;
  for (const size_t label : result.order(text)) {
    const float score = result.row(text)[label];
    if (format.top > 0 && std::ssize(labels.list) == format.top) break;
    if (static_cast<double>(score) < format.threshold) continue;
    labels.list.push_back({{"label", result.labels[label]}, {"score", score}});
    labels.line += fmt::format("{}{}\t{:.6f}", labels.line.empty() ? "" : "\t",
                               in_a_column(result.labels[label]), score);
  }
  return labels;
}

}  // namespace

std::string labels_text(const infer::Classifications& result, size_t first,
                        const ClassifiedFormat& format) {
  std::string out;
  for (int64_t i = 0; i < result.count; ++i) {
    const ShownLabels labels = labels_of(result, i, format);
    if (!format.files.empty()) {
      const std::string& file = format.files[static_cast<size_t>(i)];
      out += format.json ? json_line({{"file", file}, {"labels", labels.list}}) + "\n"
                         : fmt::format("{}\t{}\n", in_a_column(file), labels.line);
      continue;
    }
    out += format.json ? line_of(first + static_cast<size_t>(i), "labels", labels.list)
                       : labels.line + "\n";
  }
  return out;
}

std::string explained_labels_text(const infer::Classifications& result,
                                  const ShownExplanations& shown, size_t first,
                                  const ClassifiedFormat& format) {
  std::string out;
  for (size_t i = 0; i < shown.of_texts.size(); ++i) {
    const ShownLabels labels = labels_of(result, static_cast<int64_t>(i), format);
    const study::Explanation& explanation = shown.of_texts[i].front();
    if (format.json)
      out += json_line({{"index", first + i},
                        {"labels", labels.list},
                        {"explanation", inspector::explanation_json(explanation)}}) +
             "\n";
    else
      out += (first + i > 0 ? "\n" : "") + labels.line + "\n" +
             explanation_text(explanation, shown.options, shown.style);
  }
  return out;
}

std::string entities_text(const std::vector<std::vector<infer::Entity>>& result, size_t first,
                          const ClassifiedFormat& format, const ShownExplanations* shown) {
  return lines_of(result, "entities", first, format, shown);
}

std::string answers_text(const std::vector<std::vector<infer::ExtractedAnswer>>& result,
                         size_t first, const ClassifiedFormat& format,
                         const ShownExplanations* shown) {
  return lines_of(result, "answers", first, format, shown);
}

std::string image_answer_text(const std::string& file, const std::string& answer,
                              double probability, bool json) {
  const size_t begin = std::min(answer.find_first_not_of(" \t\r\n"), answer.size());
  const std::string text = answer.substr(begin, answer.find_last_not_of(" \t\r\n") + 1 - begin);
  if (json) return json_line({{"file", file}, {"answer", text}, {"score", probability}}) + "\n";
  return fmt::format("{}\t{}\t{:.6f}\n", in_a_column(file), in_a_column(text), probability);
}

std::string masks_text(const std::vector<std::vector<infer::MaskCandidates>>& result, size_t first,
                       const ClassifiedFormat& format, const ShownExplanations* shown) {
  std::string out;
  for (size_t i = 0; i < result.size(); ++i) {
    if (format.json) {
      Json list = Json::array();
      for (const infer::MaskCandidates& candidates : result[i]) list.push_back(json_of(candidates));
      out += line_of(first + i, "masks", list, shown == nullptr ? nullptr : &shown->of_texts[i]);
      continue;
    }
    for (size_t mask = 0; mask < result[i].size(); ++mask) {
      for (const infer::MaskCandidate& one : result[i][mask])
        out += fmt::format("{}\t{}\t{:.6f}\t{}\t{}\n", first + i + 1, mask + 1, one.score,
                           in_a_column(one.token), in_a_column(one.text));
      out += explanation_below(shown, i, mask);
    }
  }
  return out;
}

}  // namespace fovea::cli
