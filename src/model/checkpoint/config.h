#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "fovea/model/spec.h"

namespace fovea::model {

// Reads or writes a config.json. A family's function names each key once with its field, and the
// same lines either read a file into a Spec or write a Spec into a file. A key without a default is
// mandatory. Errors (BadFile, Unsupported) name the file and the key.
class Config {
 public:
  // Reads from `json`, which must outlive this object; `name` is the file's name, for errors. If
  // `refused` is not null, the keys that refuse_unknown() and only() refuse are added to it instead
  // of causing errors.
  Config(const nlohmann::json& json, std::string name, std::vector<std::string>* refused = nullptr);
  // Writes a new config.json.
  Config() = default;

  bool reading() const { return reading_; }
  const std::string& name() const { return name_; }  // name of the file

  void operator()(const char* key, int64_t& field);
  // `absent` is the value of a key that is missing or null in the file. A float must be in [0,
  // most].
  void operator()(const char* key, int64_t& field, int64_t absent);
  void operator()(const char* key, float& field, float absent, float most = 1);
  void operator()(const char* key, bool& field, bool absent);
  void operator()(const char* key, Activation& field, const char* absent);
  // Reads or writes a list of integers; empty if the key is missing.
  void operator()(const char* key, std::vector<int64_t>& field);
  // Reads or writes pad_token_id, in families where transformers gives the embedding a padding row.
  // `absent` is the id if the key is missing; null means no padding token.
  void padding(Spec& spec, int64_t absent = -1);
  void spec(const char* key, Spec& field);  // a complete Spec, in the form of spec.json
  // Reads or writes max_position_embeddings, and rotary positions in both spellings: rope_theta,
  // partial_rotary_factor and rope_scaling at the root (before transformers 5), or all in
  // rope_parameters. With by_layer_type, rope_parameters has one entry for full_attention and one
  // for sliding_attention. The initial values of share and local_theta in the field are the
  // family's defaults; only an entry for sliding_attention changes local_theta. Throws Unsupported
  // if the kind of scaling is unknown.
  struct RopeDefaults {
    int64_t context = 2048;
    float theta = 10000;
    bool by_layer_type = false;
    int64_t original_context = 0;  // for longrope, if the file has it under a different key
    bool query_growth = false;     // the family has llama_4_scaling_beta, by which queries grow
    // The width of a head in a family where a dynamic scaling with `alpha` is a larger theta; 0 =
    // the family has no alpha.
    int64_t alpha_width = 0;
    // The factor of cos and sin of longrope is under short_mscale and long_mscale, which are equal.
    bool mscales = false;
  };
  void rope(int64_t& context, RotarySpec& field, const RopeDefaults& defaults);
  // Reads or writes which layers have a window of `window` keys: layer_types, or the family's
  // pattern if the file has no layer_types.
  void layer_types(StackSpec& stack, int64_t window, const std::vector<bool>& pattern);
  // Throws Unsupported if the file has the key with a different value, which would change the
  // arithmetic.
  void only(const char* key, const nlohmann::json& value);
  // When writing, sets the key; when reading, marks it as known.
  void write(const char* key, const nlohmann::ordered_json& value);

  // When reading, returns whether the file has the key, even if it is null.
  bool says(const char* key) const { return reading_ && json_->contains(key); }
  // Returns the value of a key; null if it is missing, and when writing.
  nlohmann::json value(const char* key);

  // Call it at the end of a family's function. Throws Unsupported if the file has a key that is not
  // null, was not read, and is neither in `harmless` nor harmless in all families.
  void refuse_unknown(std::initializer_list<const char*> harmless) const;

  const nlohmann::ordered_json& written() const { return written_; }
  // Returns the keys that were not read and do not affect the arithmetic, to be written again.
  nlohmann::ordered_json carried() const;

 private:
  const nlohmann::json* find(const char* key);
  [[noreturn]] void refuse(const char* key, const nlohmann::json& value,
                           const std::string& expected) const;

  void read_rope(RotarySpec& field, const RopeDefaults& defaults);
  void write_rope(const RotarySpec& field, const RopeDefaults& defaults);
  RotarySpec rope_from(const nlohmann::json& parameters, const std::string& key,
                       const RopeDefaults& defaults, float theta, float share);

  bool reading_ = false;
  const nlohmann::json* json_ = nullptr;
  std::vector<std::string>* refused_ = nullptr;
  std::string name_;
  std::set<std::string, std::less<>> known_;
  nlohmann::ordered_json written_;
};

}  // namespace fovea::model
