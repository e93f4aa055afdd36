#include "options/field_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

namespace fovea::cli {
namespace {

// Passes fields as Options that are valid only during the visit.
class FieldOptions : public OptionVisitor {
 public:
  using SpellingOf = std::function<std::optional<Spelling>(const Field&)>;  // unset: not an option
  using Use = std::function<void(const Field&, const Spelling&, Option)>;

  FieldOptions(SpellingOf spelling_of, Use use)
      : spelling_of_(std::move(spelling_of)), use_(std::move(use)) {}

  void integer(const Field& f, int64_t& value, int64_t least, int64_t most) override {
    if (const auto s = spelling_of_(f))
      use_(f, *s,
           with_default(with_words(s->values, cli::integer(s->name, s->aliases, help_of(f), value,
                                                           least, most)),
                        f, value >= least && value <= most));
  }
  void number(const Field& f, double& value, double least, double most) override {
    if (const auto s = spelling_of_(f))
      use_(f, *s,
           with_default(cli::number(s->name, s->aliases, help_of(f), value, least, most), f,
                        value >= least && value <= most));
  }
  void boolean(const Field& f, bool& value) override {
    if (const auto s = spelling_of_(f)) {
      const bool valued = !f.path.empty() || f.name == optional_;
      const auto declare = valued ? &cli::boolean : &cli::flag;
      use_(f, *s, declare(s->name, s->aliases, help_of(f), value));
    }
  }
  void choice(const Field& f, int& value, const Names& names) override {
    const auto s = spelling_of_(f);
    if (!s) return;
    Names spelled = names;
    for (std::string& name : spelled)
      for (const std::string& alternatives : s->values)
        if (alternatives.starts_with(name + "|")) name = alternatives;
    use_(f, *s, cli::choice(s->name, s->aliases, help_of(f), value, spelled));
  }
  void text(const Field& f, std::string& value) override {
    if (const auto s = spelling_of_(f)) {
      const auto declare = s->name.starts_with("--") ? &cli::text : &cli::positional;
      use_(f, *s, declare(s->name, s->aliases, help_of(f), value));
    }
  }
  void list(const Field& f, const List& list) override {
    std::visit([&](const auto& each) { use_list(f, each); }, list);
  }
  void unsigned_integer(const Field& f, uint64_t& value, Unit unit) override {
    if (unit == Unit::bytes) {
      if (const auto s = spelling_of_(f))
        use_(f, *s, cli::bytes(s->name, s->aliases, help_of(f), value));
      return;
    }
    auto seed = static_cast<int64_t>(value);
    integer(f, seed, 0, std::numeric_limits<int64_t>::max());
    value = static_cast<uint64_t>(seed);
  }
  void optional(const Field& f, bool& present, Part part) override {
    const auto s = spelling_of_(f);
    if (part == Part::field) {
      if (sets_ && s) present = true;
      optional_ = f.name;
      return;
    }
    if (s) use_(f, *s, cli::boolean(s->name, s->aliases, help_of(f), present));
    present = present || enters_(f);
  }

  // Sets the optional fields that are unset, so that their values are visited.
  void set_optional() { sets_ = true; }
  // Makes a missing group present, so that its fields are visited, if `enters` returns true for it.
  void enter(std::function<bool(const Field&)> enters) { enters_ = std::move(enters); }

 private:
  void use_list(const Field& f, const Integers& list) {
    if (const auto s = spelling_of_(f))
      use_(f, *s,
           cli::integers(s->name, s->aliases, help_of(f), list.values, list.least, list.most));
  }
  // Numbers of a Spec have no option.
  void use_list(const Field& f, const Numbers& list) {
    if (const auto s = f.path.empty() ? spelling_of_(f) : std::nullopt)
      use_(f, *s,
           cli::numbers(s->name, s->aliases, help_of(f), list.values, list.least, list.most));
  }
  void use_list(const Field& f, const Texts& list) {
    const auto s = spelling_of_(f);
    if (!s) return;
    if (!s->name.starts_with("--"))
      use_(f, *s, positionals(s->name, s->aliases, help_of(f), list.values));
    else if (s->most > 1)
      use_(f, *s, files(s->name, s->aliases, help_of(f), list.values, s->most));
    else
      use_(f, *s, cli::list(s->name, s->aliases, help_of(f) + "; may be repeated", list.values));
  }

  // A value of a Spec that is out of range means that the field is unset.
  static Option with_default(Option option, const Field& f, bool in_range) {
    if (!in_range && !f.path.empty()) option.unset = "the model's";
    return option;
  }
  std::string help_of(const Field& f) const {
    return f.name == optional_ ? f.help + "; unset: the model's setting" : f.help;
  }

  SpellingOf spelling_of_;
  Use use_;
  std::function<bool(const Field&)> enters_ = [](const Field&) { return true; };
  std::string optional_;
  bool sets_ = false;
};

std::optional<Spelling> spelling_in(const Spellings& spellings, Fields fields, const Field& field) {
  Spelling spelling{.field = field.name, .omitted = fields == Fields::spelled};
  for (const Spelling& each : spellings)
    if (each.field == field.name) spelling = each;
  if (spelling.omitted) return std::nullopt;
  if (spelling.name.empty()) spelling.name = option_name(field.name);
  return spelling;
}

// Visits one field. Returns whether it was found.
bool with_field(const VisitFields& visit_fields, const Spelling& spelling, bool sets,
                const std::function<void(const Option&)>& use) {
  bool found = false;
  FieldOptions one(
      [&](const Field& f) {
        return f.name == spelling.field ? std::optional(spelling) : std::nullopt;
      },
      [&](const Field&, const Spelling&, const Option& option) {
        found = true;
        use(option);
      });
  if (sets) one.set_optional();
  one.enter([&](const Field& group) {
    if (group.name == spelling.field) return false;
    return !sets || spelling.field.starts_with(group.name + "_");
  });
  visit_fields(one, !sets);
  return found;
}

void set_field(const VisitFields& visit_fields, const Spelling& spelling,
               const std::string& typed) {
  const auto set = [&](const Option& option) { option.set(typed); };
  if (with_field(visit_fields, spelling, true, set)) return;
  throw UsageError(fmt::format("{}: the model has no decoder; expected a decoder, or --encoder-{}",
                               spelling.name, spelling.name.substr(2)));
}

// Fields of a Spec that are often changed have an option. The others are keys of its JSON file.
constexpr std::string_view kSpecOptions =
    " vocabulary source_vocabulary context width input image_size patch channels frames "
    "encoder encoder_layers encoder_heads decoder layers mixer position rope_theta "
    "rope_scaling rope_factor distance_bias norm norm_epsilon pre_norm output_norm "
    "post_norm parallel embedding_norm final_norm residual zero_outputs causal heads "
    "kv_heads head_width value_width window query_key_norm attention_scale "
    "attention_softcap attention_bias value_residual latent_width ffn activation gated "
    "ffn_width ffn_bias experts experts_chosen shared_experts head tied_head head_bias "
    "head_softcap label_count pooling embedding_dropout attention_dropout "
    "residual_dropout init_deviation ";
bool has_option(const Field& field) {
  return kSpecOptions.find(" " + field.name + " ") != std::string_view::npos;
}

}  // namespace

const Spellings& spec_spellings() {
  static const Spellings all = {{"context",
                                 {"-c", "--ctx-size", "--block-size", "--max-seq-length",
                                  "--max-seq-len", "--max-model-len"}},
                                {"width", {"--n-embd", "--hidden-size", "--d-model"}},
                                {"layers", {"--n-layer", "--num-layers", "--num-hidden-layers"}},
                                {"heads", {"--n-head", "--num-heads", "--num-attention-heads"}},
                                {"kv_heads", {"--num-key-value-heads"}},
                                {"ffn_width", {"--d-ff", "--intermediate-size"}},
                                {"vocabulary", {"--vocab-size"}},
                                {"tied_head", {"--tie-word-embeddings"}},
                                {"window", {"--sliding-window"}}};
  return all;
}

void add_fields(OptionTable& table, const Spellings& spellings, Fields fields,
                const VisitFields& visit_fields) {
  std::set<std::string> visited;
  FieldOptions all(
      [&](const Field& field) {
        visited.insert(field.name);
        return spelling_in(spellings, fields, field);
      },
      [&](const Field& field, const Spelling& spelling, Option option) {
        if (!spelling.section.empty()) table.section(spelling.section);
        if (!spelling.placeholder.empty()) option.placeholder = spelling.placeholder;
        if (!spelling.implied.empty()) option.implied = spelling.implied;
        option.field = field.name;
        option.of_spec = !field.path.empty();
        if (option.of_spec && !has_option(field)) option.replaced_by = field.path;
        // A visited value may be a temporary copy of the field, so set and get visit it again.
        option.set = [=](const std::string& typed) { set_field(visit_fields, spelling, typed); };
        option.get = [=] {
          std::string value;
          with_field(visit_fields, spelling, false, [&](const Option& one) { value = one.get(); });
          return value;
        };
        option.initial = option.unset.empty() ? option.get() : "";
        table.add(std::move(option));
      });
  all.set_optional();
  visit_fields(all, true);
  for (const Spelling& spelling : spellings)
    if (!visited.contains(spelling.field))
      throw std::logic_error("no field is named " + spelling.field);
}

}  // namespace fovea::cli
