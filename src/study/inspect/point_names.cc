#include "inspect/point_names.h"

#include <fnmatch.h>

#include <charconv>

#include "base/fields.h"
#include "fovea/core/excerpt.h"

namespace fovea::study {
namespace {

using What = model::ProbePoint::What;

// Returns the name of a point of a layer in TransformerLens, without "blocks.<layer>."; null if it
// has none.
const char* hook_of(What what, const NamingRules& rules) {
  switch (what) {
    case What::hidden: return "hook_resid_pre";
    case What::mixer_input: return rules.layer_norm ? "ln1.hook_normalized" : nullptr;
    case What::query:
      return rules.rotary ? "attn.hook_rot_q" : rules.query_norm ? nullptr : "attn.hook_q";
    case What::key:
      return rules.rotary ? "attn.hook_rot_k" : rules.query_norm ? nullptr : "attn.hook_k";
    case What::value: return "attn.hook_v";
    case What::scores: return "attn.hook_attn_scores";
    case What::attention: return "attn.hook_pattern";
    case What::heads: return "attn.hook_z";
    case What::mixer_output: return "hook_attn_out";
    case What::hidden_mid: return "hook_resid_mid";
    case What::mlp_input: return rules.layer_norm ? "ln2.hook_normalized" : nullptr;
    case What::mlp_pre: return "mlp.hook_pre";
    case What::mlp_hidden: return "mlp.hook_post";
    case What::mlp_output: return "hook_mlp_out";
    case What::embedding:
    case What::unnormed:
    case What::latent:
    case What::gates:
    case What::state:
    case What::mixer_unnormed:
    case What::mixer_sum:
    case What::mlp_unnormed:
    case What::mlp_sum:
    case What::logits: return nullptr;
  }
  return nullptr;
}

std::vector<PointName> hooks_of(const model::ProbePoint& point, const NamingRules& rules) {
  std::vector<PointName> names;
  const bool after_all = point.what == What::hidden && point.layer == rules.layers;
  const auto add = [&](int64_t layer, const char* hook) {
    names.push_back({fmt::format("blocks.{}.{}", layer, hook), layer});
  };
  if (point.what == What::embedding) names.push_back({"hook_embed"});
  if (after_all && rules.layer_norm) names.push_back({"ln_final.hook_normalized"});
  if (const char* hook = hook_of(point.what, rules); hook != nullptr && !after_all)
    add(point.layer, hook);
  const bool between = point.what == What::hidden || point.what == What::unnormed;
  if (between && !after_all && point.layer > 0) add(point.layer - 1, "hook_resid_post");
  return names;
}

// A pattern selects either the names of TransformerLens or those of fovea, so that "*" does not
// select a value twice.
bool matches(const std::string& glob, const std::string& name) {
  const auto is_hook = [](const std::string& text) {
    return text.starts_with("blocks.") || text.find("hook") != std::string::npos;
  };
  return is_hook(glob) == is_hook(name) && fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

std::vector<PointName> names_of(const model::ProbePoint& point, const NamingRules& rules) {
  const bool after_all = point.what == What::hidden && point.layer == rules.layers;
  std::vector<PointName> names;
  if (point.what == What::unnormed || after_all) {
    model::ProbePoint other = point;  // "hidden.<layers>" names either of the two points
    other.what = What::hidden;
    if ((point.what == What::unnormed) == rules.reports_unnormed)
      names.push_back({model::name_of(other), rules.layers});
    other.what = What::unnormed;
    std::string name = model::name_of(other);
    if (after_all) name.replace(name.find("hidden.unnormed"), std::string::npos, "final_norm");
    names.push_back({name});
  } else {
    const bool numbered = point.what != What::embedding && point.what != What::logits;
    names.push_back({model::name_of(point), numbered ? point.layer : -1});
  }
  if (point.stack == model::ProbePoint::Stack::only)
    for (PointName& name : hooks_of(point, rules)) names.push_back(std::move(name));
  return names;
}

NameSelection::NameSelection(const std::vector<std::string>& patterns, const std::string& layers)
    : given_(!patterns.empty()), layers_(layers) {
  for (const std::string& list : patterns) {
    for (size_t begin = 0; begin <= list.size();) {
      const size_t end = std::min(list.find(',', begin), list.size());
      patterns_.push_back({list.substr(begin, end - begin)});
      check_field(begin < end, "what", "an empty name in \"{}\"; expected names such as hidden.*",
                  excerpt(list));
      begin = end + 1;
    }
  }
  if (!given_)
    patterns_ = {{"hidden.[0-9]*"}, {"*coder_hidden.[0-9]*"}, {"*attention.[0-9]*"}, {"logits"}};
  if (layers.empty()) return;
  const char* const end = layers.data() + layers.size();
  std::from_chars_result read = std::from_chars(layers.data(), end, first_);
  last_ = first_;
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '-')
    read = std::from_chars(read.ptr + 1, end, last_);
  check_field(read.ec == std::errc() && read.ptr == end && 0 <= first_ && first_ <= last_, "layers",
              "\"{}\"; expected a layer or a range, such as 3 or 0-5", excerpt(layers));
}

bool NameSelection::has(const PointName& name) const {
  if (name.layer >= 0 && (name.layer < first_ || name.layer > last_)) return false;
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const Pattern& pattern) { return matches(pattern.glob, name.name); });
}

void NameSelection::found(const PointName& name) {
  deepest_ = std::max(deepest_, name.layer);
  for (Pattern& pattern : patterns_) pattern.matched |= matches(pattern.glob, name.name);
}

void NameSelection::check_found() const {
  check_field(layers_.empty() || last_ <= deepest_, "layers", "\"{}\"; expected at most {}",
              layers_, deepest_);
  for (const Pattern& pattern : patterns_)
    check_field(!given_ || pattern.matched, "what",
                "\"{}\" matches no name of this model; expected names such as hidden.*, *query* or "
                "blocks.0.attn.hook_pattern",
                excerpt(pattern.glob));
}

}  // namespace fovea::study
