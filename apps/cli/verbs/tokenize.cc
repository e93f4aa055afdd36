#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "cli/command.h"
#include "cli/verbs/tokenize_train.h"
#include "fovea/core/error.h"
#include "fovea/model/model_path.h"
#include "fovea/text/text_lines.h"
#include "fovea/text/tokenizer.h"
#include "options/common_options.h"
#include "options/open_model.h"
#include "options/refusals.h"
#include "terminal/terminal.h"

namespace fovea::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kOutputBytes = size_t{1} << 16;  // output is printed in pieces of this size

struct Line {
  std::string_view text;
  std::string where;  // file and line number, for errors
};

[[noreturn]] void bad_line(const Line& line, const std::string& wrong,
                           const std::string& expected) {
  throw Error(ErrorKind::BadFile, fmt::format("{}: {}; expected {}", line.where, wrong, expected));
}

Json parse_line(const Line& line) {
  try {
    return parse_ordered_json(line.text, line.where);
  } catch (const JsonFault& fault) {
    throw Error(ErrorKind::BadFile,
                fmt::format("{}; expected one JSON value per line", fault.what()));
  }
}

std::string text_of(const Json& json, const char* key, const Line& line) {
  const auto found = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string())
    bad_line(line, fmt::format("has no string \"{}\"", key),
             fmt::format("a JSON object with the string \"{}\"", key));
  return found->get<std::string>();
}

Json pairs(const std::vector<text::Offsets>& offsets) {
  Json list = Json::array();
  for (const text::Offsets& pair : offsets) list.push_back({pair.begin, pair.end});
  return list;
}

class TokenizeCommand : public Command {
 public:
  TokenizeCommand()
      : Command("tokenize MODEL|tokenizer.json [FILE...] [OPTIONS]",
                "Converts lines of text, from files or standard input, to token ids, or ids back "
                "to text. Prints one JSON object per line with ids, tokens and offsets in "
                "characters. With --train KIND FILE... --out DIR: trains a tokenizer.") {}

  void declare(OptionTable& table) override {
    table.add(of_model(positional("MODEL", {"-m", "--model", "--tokenizer"},
                                  "model directory or tokenizer.json", model_)));
    table.add(input_arguments(files_));
    table.add(
        flag("--jsonl", {}, "each line is {\"text\": ...} with an optional \"pair\"", jsonl_));
    table.add(flag("--no-special", {},
                   "do not add tokens such as [CLS]; with --decode, skip special tokens",
                   no_special_));
    table.add(flag("--parse-special", {},
                   "parse names of special tokens in the text as special tokens", parse_special_));
    table.add(flag("--bytes", {}, "print offsets in bytes", bytes_));
    table.add(flag("--decode", {},
                   "each line is a list of ids, such as [1, 2, 3] or 1 2 3; prints the text",
                   decode_));
    table.add(as("FILE", text("--check", {}, "compare with the cases (text, ids, ...) in this file",
                              cases_)));
    training_.declare(table);
  }

  int run(const OptionTable& table) override {
    if (table.given("--train")) {
      allow_only(table, "--train", {"MODEL", "FILE"});
      return train(table);
    }
    table.refuse_without("--train");
    if (model_.empty())
      throw UsageError("MODEL: not given; expected a model directory or a tokenizer.json");
    if (decode_ && (jsonl_ || bytes_ || parse_special_ || table.given("--check")))
      throw UsageError(
          "--decode: cannot be combined with --jsonl, --bytes, --parse-special or --check");
    if (table.given("--check") && !files_.empty())
      throw UsageError("--check: cannot be combined with FILE arguments");
    model::require_model(model_);
    const text::Tokenizer tokenizer = text::Tokenizer::open(model_);
    if (table.given("--check")) return check_cases(tokenizer);
    if (files_.empty()) files_.emplace_back("-");
    for (const std::string& file : files_) {
      for_each_line(file, [&](const Line& line) {
        if (decode_) {
          out_ += decoded(tokenizer, line);
        } else {
          write(encode(tokenizer, line));
        }
        out_ += '\n';
        print_much();
      });
    }
    print(out_);
    return 0;
  }

 private:
  template <class OnLine>
  static void for_each_line(const std::string& file, OnLine&& on_line) {
    constexpr size_t kLinesAtOnce = 256;
    text::LineReader reader(file);
    size_t number = 0;
    for (auto lines = reader.next(kLinesAtOnce); !lines.empty(); lines = reader.next(kLinesAtOnce))
      for (const std::string& line : lines)
        on_line({line, fmt::format("{}: line {}", reader.name(), ++number)});
  }

  int train(const OptionTable& table) {
    std::vector<std::string> files = files_;
    if (!model_.empty()) files.insert(files.begin(), model_);  // the first file was parsed as MODEL
    return training_.run(files, table, json);
  }

  text::EncodingOptions options() const {
    return {.add_special_tokens = !no_special_,
            .special = parse_special_ ? text::SpecialTokens::parsed : text::SpecialTokens::as_text};
  }

  text::Encoding encode(const text::Tokenizer& tokenizer, const Line& line) const {
    if (!jsonl_) return tokenizer.encoding(line.text, options());
    const Json object = parse_line(line);
    const std::string text = text_of(object, "text", line);
    if (!object.contains("pair")) return tokenizer.encoding(text, options());
    return tokenizer.encoding(text, text_of(object, "pair", line), options());
  }

  void print_much() {
    if (out_.size() > kOutputBytes) print(std::exchange(out_, {}));
  }

  // Writes "key":[...] with `size` elements; one(i) appends element i.
  template <class One>
  void write_list(const char* key, size_t size, One&& one) {
    out_ += fmt::format("\"{}\":[", key);
    for (size_t i = 0; i < size; ++i) {
      if (i > 0) out_ += ',';
      one(i);
      print_much();
    }
    out_ += ']';
  }

  // Writes incrementally: a JSON object of a long line would take several times the line's memory.
  void write(const text::Encoding& encoding) {
    out_ += '{';
    const size_t size = encoding.ids.size();
    write_list("ids", size, [&](size_t i) { out_ += std::to_string(encoding.ids[i]); });
    out_ += ',';
    write_list("tokens", size,
               [&](size_t i) { out_ += json_line(Json(std::string(encoding.tokens[i]))); });
    out_ += ',';
    const std::vector<text::Offsets>& offsets = bytes_ ? encoding.byte_offsets : encoding.offsets;
    write_list("offsets", size,
               [&](size_t i) { out_ += fmt::format("[{},{}]", offsets[i].begin, offsets[i].end); });
    out_ += '}';
  }

  static std::vector<int32_t> ids_of(const Line& line) {
    std::vector<int32_t> ids;
    const char *at = line.text.data(), *const end = at + line.text.size();
    while (at < end) {
      if (*at == ' ' || *at == ',' || *at == '[' || *at == ']' || *at == '\r') {
        ++at;
        continue;
      }
      int32_t id = 0;
      const auto [after, error] = std::from_chars(at, end, id);
      if (error != std::errc()) bad_line(line, "is not a list of ids", "ids such as [1, 2, 3]");
      ids.push_back(id);
      at = after;
    }
    return ids;
  }

  std::string decoded(const text::Tokenizer& tokenizer, const Line& line) const {
    const std::vector<int32_t> ids = ids_of(line);
    const std::string text = tokenizer.decode(ids, no_special_);
    return json ? json_line({{"text", text}}) : text;
  }

  static void expect(const Line& line, const char* what, const Json& expected, const Json& found) {
    if (expected == found) return;
    size_t i = 0;
    const bool lists = expected.is_array() && found.is_array();
    while (lists && i < std::min(expected.size(), found.size()) && expected[i] == found[i]) ++i;
    const auto shown = [&](const Json& value) {
      if (!lists) return json_line(value);
      return i < value.size() ? json_line(value[i]) : std::string("missing");
    };
    throw Error(ErrorKind::Failed,
                fmt::format("{}: {} is {}{}; expected {}", line.where, what, shown(found),
                            lists ? fmt::format(" at position {}", i) : "", shown(expected)));
  }

  // The cases come from Hugging Face, which parses special tokens.
  static void check_case(const text::Tokenizer& tokenizer, const Line& line) {
    const Json object = parse_line(line);
    const std::string text = text_of(object, "text", line);
    text::EncodingOptions options{.special = text::SpecialTokens::parsed};
    const auto encode = [&] {
      return object.contains("pair")
                 ? tokenizer.encoding(text, text_of(object, "pair", line), options)
                 : tokenizer.encoding(text, options);
    };
    const text::Encoding encoding = encode();
    options.add_special_tokens = false;
    const text::Encoding plain = encode();
    const auto compare = [&](const char* key, auto&& found) {
      if (object.contains(key)) expect(line, key, object[key], found());
    };
    compare("ids", [&] { return Json(encoding.ids); });
    compare("tokens", [&] { return Json(encoding.tokens.list()); });
    compare("offsets", [&] { return pairs(encoding.offsets); });
    compare("byte_offsets", [&] { return pairs(encoding.byte_offsets); });
    compare("type_ids", [&] { return Json(encoding.type_ids); });
    compare("ids_plain", [&] { return Json(plain.ids); });
    compare("decoded", [&] { return Json(tokenizer.decode(encoding.ids, true)); });
    compare("decoded_plain", [&] { return Json(tokenizer.decode(plain.ids)); });
  }

  int check_cases(const text::Tokenizer& tokenizer) const {
    int64_t cases = 0;
    for_each_line(cases_, [&](const Line& line) {
      check_case(tokenizer, line);
      ++cases;
    });
    print(json ? json_line({{"cases", cases}, {"equal", true}}) + "\n"
               : fmt::format("{} cases, all equal\n", cases));
    return 0;
  }

  TokenizerTrainRequest training_;
  std::string model_, cases_, out_;
  std::vector<std::string> files_;
  bool jsonl_ = false, no_special_ = false, parse_special_ = false, bytes_ = false, decode_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize() { return std::make_unique<TokenizeCommand>(); }

}  // namespace fovea::cli
