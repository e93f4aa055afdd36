#include "inspector/routes.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>

#include "base/ordered_json.h"
#include "fovea/core/error.h"
#include "fovea/core/excerpt.h"
#include "fovea/infer/generate.h"
#include "fovea/train/train.h"
#include "inspector/circuits_json.h"
#include "inspector/compare.h"
#include "inspector/explain_request.h"
#include "inspector/explanation_json.h"
#include "inspector/media_json.h"
#include "inspector/page.h"
#include "inspector/query.h"

namespace fovea::inspector {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "binary responses are little-endian");

constexpr size_t kRunsKept = 8;  // enough for two views side by side, with and without muted heads
constexpr size_t kModelsKept = 4;

Response binary(std::string bytes) { return {200, "application/octet-stream", std::move(bytes)}; }

void append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

// Returns the numbers of heads, rows and keys as int32, then the weights as float32.
Response map_response(const study::Inspection& run, const Query& query) {
  const auto [first_row, end_row] = query.span("q");
  const auto [first_key, end_key] = query.span("k");
  const study::AttentionWeights map = run.map(
      {query.kind(), query.number("layer"), query.numbers("heads"), query.number("mean", 0) != 0,
       first_row, end_row, first_key, end_key, query.number("step", 1)});
  const ArrayView array = map.view();
  std::string bytes;
  for (const int64_t size : array.shape) {
    const auto narrow = static_cast<int32_t>(size);
    append(bytes, &narrow, sizeof narrow);
  }
  append(bytes, array.data, static_cast<size_t>(array.size()) * sizeof(float));
  return binary(std::move(bytes));
}

Json strongest_json(const study::Inspection& run, const Query& query) {
  study::MapQuery map;
  map.kind = query.kind();
  map.layer = query.number("layer");
  map.heads = query.numbers("heads");
  Json rows = Json::array();
  const int64_t count = std::min<int64_t>(query.number("count", 3), 64);  // the page shows fewer
  for (const auto& row : run.strongest(map, count)) {
    Json& keys = rows.emplace_back(Json::array());
    for (const study::KeyWeight& key : row) keys.push_back({key.key, key.weight});
  }
  return rows;
}

Json scores_json(const study::Inspection& run, const Query& query) {
  Json heads = Json::array();
  for (const study::HeadScores& s : run.head_scores(query.kind(), query.number("layer")))
    heads.push_back({{"previous", s.previous},
                     {"next", s.next},
                     {"itself", s.itself},
                     {"first", s.first},
                     {"same", s.same},
                     {"punctuation", s.punctuation},
                     {"diffuse", s.diffuse},
                     {"distance", s.distance}});
  return heads;
}

Json surprise_json(const study::Inspection& run, const Query&) {
  Json all = Json::array();
  for (const study::Surprise& s : run.surprise())
    all.push_back({{"id", s.id},
                   {"probability", s.probability},
                   {"rank", s.rank},
                   {"entropy", s.entropy},
                   {"likeliest", s.likeliest},
                   {"likeliest_probability", s.likeliest_probability}});
  return all;
}

Json lens_json(const study::Inspection& run, const Query& query) {
  const auto [first, end] = query.span("positions");
  Json layers = Json::array();
  for (const auto& layer : run.lens(first, end)) {
    Json& positions = layers.emplace_back(Json::array());
    for (const study::LikelyToken& token : layer)
      positions.push_back({token.id, token.probability});
  }
  return layers;
}

Json walk_json(const study::Inspection& run, const Query& query) {
  // 128 values are a whole vector of most heads; the page could not show many more digits.
  const int64_t values = std::min<int64_t>(query.number("values", 8), 128);
  Json steps = Json::array();
  for (const study::WalkStep& step :
       run.walk({query.kind(), query.number("token"), query.number("layer"), query.number("head"),
                 values}))
    steps.push_back({{"name", step.name},
                     {"shape", step.shape},
                     {"values", step.values},
                     {"size", step.size},
                     {"rms", step.root_mean_square},
                     {"ids", step.ids}});
  return steps;
}

// Returns the numbers of vectors and of their elements as int32, then float32 elements.
Response vectors_response(const study::Inspection& run, const Query& query) {
  const auto all = run.vectors(query.kind(), query.number("token"));
  std::string bytes;
  for (const size_t size : {all.size(), all.front().size()}) {
    const auto narrow = static_cast<int32_t>(size);
    append(bytes, &narrow, sizeof narrow);
  }
  for (const auto& vector : all) append(bytes, vector.data(), vector.size() * sizeof(float));
  return binary(std::move(bytes));
}

Response logits_response(const study::Inspection& run, const Query& query) {
  const std::vector<float> logits = run.logits(query.number("position"));
  std::string bytes;
  append(bytes, logits.data(), logits.size() * sizeof(float));
  return binary(std::move(bytes));
}

Response rollout_response(const study::Inspection& run, const Query& query) {
  const std::vector<float> row = run.rollout(query.kind(), query.number("token"));
  std::string bytes;
  append(bytes, row.data(), row.size() * sizeof(float));
  return binary(std::move(bytes));
}

Json routing_json(const study::Inspection& run, const Query& query) {
  Json tokens = Json::array();
  for (const auto& token : run.routing(query.kind(), query.number("layer"))) {
    Json& experts = tokens.emplace_back(Json::array());
    for (const study::Routed& routed : token) experts.push_back({routed.expert, routed.weight});
  }
  return tokens;
}

Json sizes_json(const study::Inspection& run, const Query& query) {
  Json layers = Json::array();
  for (const study::LayerSizes& s : run.sizes(query.kind(), query.number("gradients", 0) != 0))
    layers.push_back({{"stream", s.stream}, {"gradient", s.gradient}, {"entropy", s.entropy}});
  return layers;
}

Json neurons_of(const study::Inspection& run, const Query& query) {
  return neurons_json(
      study::strongest_neurons(run, query.kind(), query.number("token"), query.number("count", 8)));
}

int32_t token_id(const Query& query, const char* name) {
  return static_cast<int32_t>(std::min<int64_t>(query.number(name), INT32_MAX));
}

Json attribution_of(const study::Inspection& run, const Query& query) {
  return logit_attribution_json(study::attribute_logits(
      run, query.number("token"), token_id(query, "one"), token_id(query, "two")));
}

Json circuit_of(const study::Inspection& run, const Query& query) {
  const int64_t count = std::min<int64_t>(query.number("count", 6), 64);
  return circuit_json(
      study::head_circuit(run, query.kind(), query.number("layer"), query.number("head"), count));
}

Json rotary_of(const study::Inspection& run, const Query& query) {
  return rotary_json(study::rotary_angles(run, query.kind(), query.number("layer")));
}

Json patched_of(const study::Inspection& run, const study::Inspection& other, const Query& query) {
  return patched_json(
      study::patch_differences(run, other, token_id(query, "one"), token_id(query, "two")));
}

Json steered_of(const study::Inspection& run, const study::Inspection& other, const Query& query) {
  return study::steer(run, other,
                      {query.number("layer"), query.real("strength"), query.number("tokens", 16)});
}

Json divergence_of(const study::Inspection& run, const study::Inspection& other, const Query&) {
  return divergence_json(run, other);
}

std::string sample_json(const model::Model& model, const Query& query) {
  infer::GenerateOptions options;
  options.max_tokens = std::min<int64_t>(query.number("tokens", 64), 256);
  return json_line({{"text", infer::generate(model, "", options)[0].text}});
}

// The implicit conversion of JSON would accept 1.5 as 1 and 2^32 as 0.
int64_t whole_number(const Json& value, const char* name) {
  const bool fits = value.is_number_integer() &&
                    (!value.is_number_unsigned() || value.get<uint64_t>() <= uint64_t{INT32_MAX});
  if (!fits || value.get<int64_t>() < 0 || value.get<int64_t>() > INT32_MAX)
    throw Error(ErrorKind::InvalidArgument,
                std::string(name) + ": expected integers from 0 to 2147483647");
  return value.get<int64_t>();
}

std::vector<int32_t> ids_of(const Json& request, const char* name) {
  std::vector<int32_t> ids;
  const Json list = request.value(name, Json::array());
  for (const Json& id : list.get_ref<const Json::array_t&>())
    ids.push_back(static_cast<int32_t>(whole_number(id, name)));
  return ids;
}

study::InspectInput input_of(const Json& request) {
  study::InspectInput input;
  input.text = request.value("text", "");
  input.target = request.value("target", "");
  input.ids = ids_of(request, "ids");
  input.target_ids = ids_of(request, "target_ids");
  input.special_tokens = request.value("special", true);
  input.parse_special = request.value("parse_special", true);
  const Json muted = request.value("muted", Json::array());
  for (const Json& head : muted.get_ref<const Json::array_t&>()) {
    const auto number = [&](size_t i) { return whole_number(head.at(i), "muted"); };
    input.muted.push_back({attention_kind(head.at(0)), number(1), number(2)});
  }
  const Json neurons = request.value("muted_neurons", Json::array());
  for (const Json& neuron : neurons.get_ref<const Json::array_t&>()) {
    const auto number = [&](size_t i) { return whole_number(neuron.at(i), "muted_neurons"); };
    input.muted_neurons.push_back({attention_kind(neuron.at(0)), number(1), number(2)});
  }
  return input;
}

Response failure(int status, const std::string& message) {
  return {status, "application/json", json_line({{"error", {{"message", message}}}})};
}

// Returns the time at which a model was last written; 0 if there is none yet, as at the start of a
// training run.
int64_t written(const std::string& folder) {
  const std::filesystem::path path(folder);
  std::error_code none;
  for (const auto& file : {path / "model.safetensors", path / "adapter_model.safetensors",
                           path / "config.json", path}) {
    if (file == path && std::filesystem::is_directory(path, none)) break;
    const auto time = std::filesystem::last_write_time(file, none);
    if (!none) return time.time_since_epoch().count();
  }
  return 0;
}

// Returns the names of directories: the last part of each path, and as many parts before it as tell
// it from the others.
std::vector<std::string> distinct_names(const std::vector<std::string>& folders) {
  constexpr size_t kMostParts = 4;
  const auto name_of = [](const std::string& folder, size_t parts) {
    std::filesystem::path path(folder), name;
    if (!path.has_filename()) path = path.parent_path();
    for (; parts > 0 && path.has_filename(); --parts, path = path.parent_path())
      name = name.empty() ? path.filename() : path.filename() / name;
    return name.string();
  };
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    size_t parts = 1;
    const auto shared = [&](const std::string& other) {
      return other != folder && name_of(other, parts) == name_of(folder, parts);
    };
    while (parts < kMostParts && std::any_of(folders.begin(), folders.end(), shared)) ++parts;
    names.push_back(name_of(folder, parts));
  }
  return names;
}

// Splits a client's model name, such as "0@500", into number and step; without a step, -1.
std::pair<size_t, int64_t> parts_of(const std::string& name) {
  const size_t at = name.find('@');
  const std::map<std::string, std::string> parts{
      {"model", name.substr(0, at)}, {"step", at == std::string::npos ? "" : name.substr(at + 1)}};
  const Query query(parts);
  return {static_cast<size_t>(query.number("model")),
          at == std::string::npos ? -1 : query.number("step")};
}

}  // namespace

Routes::Routes(std::vector<std::string> folders, std::vector<model::AdapterUse> adapters)
    : folders_(std::move(folders)), adapters_(std::move(adapters)) {
  // The model without its adapters, to compare with.
  if (!adapters_.empty()) folders_.push_back(folders_.front());
}

Routes::Routes(std::string name, const model::Model& model)
    : folders_{std::move(name)}, given_(true) {
  open_.push_front({"0", 0, model});
}

std::string Routes::models() const {
  Json all = Json::array();
  const std::vector<std::string> names = distinct_names(folders_);
  for (size_t i = 0; i < folders_.size(); ++i) {
    const std::filesystem::path folder(folders_[i]);
    const std::string& name = names[i];
    const std::string number = std::to_string(i);
    const std::string adapted = i == 0 && !adapters_.empty() ? " with adapters" : "";
    const bool training = std::filesystem::exists(folder / "log.jsonl");
    all.push_back({{"model", number},
                   {"name", name + adapted},
                   {"training", training},
                   {"ready", written(folders_[i]) != 0 || given_}});
    for (const int64_t step : train::snapshots(folders_[i]))
      all.push_back({{"model", number + "@" + std::to_string(step)},
                     {"name", name + ", step " + std::to_string(step)},
                     {"step", step}});
  }
  return json_line(all);
}

model::Model Routes::model(const std::string& name) {
  const auto [number, step] = parts_of(name);
  if (number >= folders_.size())
    throw Error(ErrorKind::InvalidArgument,
                "model: " + name + "; expected one of the models given at the start");
  const std::string& folder = folders_[number];
  const int64_t time = step < 0 && !given_ ? written(folder) : 0;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(), [&](const Opened& m) {
    return m.name == name && m.written == time;
  });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return open_.front().model;
  }
  const std::vector<model::AdapterUse> adapters =
      number == 0 ? adapters_ : std::vector<model::AdapterUse>();
  open_.push_front({name, time,
                    step < 0
                        ? model::Model::open(folder, model::WeightPrecision::full, {}, adapters)
                        : train::open_snapshot(folder, step)});
  if (open_.size() > kModelsKept) open_.pop_back();
  return open_.front().model;
}

std::string Routes::spec(const std::string& name) {
  if (const auto model = image_model(name))
    return json_line({{"spec", Json::parse(model::write_spec(model->spec()))},
                      {"tokenizer", false},
                      {"chat", false},
                      {"images", true}});
  const model::Model model = this->model(name);
  return json_line({{"spec", Json::parse(model::write_spec(model.spec()))},
                    {"parameters", model.parameters()},
                    {"tokenizer", model.has_tokenizer()},
                    {"chat", has_chat_format(model, folders_[parts_of(name).first])},
                    {"images", infer::reads_images(model)}});
}

// Reuses the run of an identical earlier request.
std::string Routes::start(const std::string& body) {
  const Json request = parse_ordered_json(body, "request");
  const model::Model model = this->model(request.value("model", "0"));
  const std::string wanted = request.dump();
  std::shared_ptr<const study::Inspection> inspection;
  std::string id;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) {
      return run.wanted == wanted && run.of == model.identity();
    });
    if (found != runs_.end()) {
      runs_.splice(runs_.begin(), runs_, found);
      inspection = found->inspection, id = found->id;
    }
  }
  if (!inspection) {
    inspection = std::make_shared<const study::Inspection>(model, input_of(request));
    id = keep(inspection, wanted, model.identity());
  }
  return json_line({{"run", id},
                    {"tokens", tokens_json(inspection->tokens())},
                    {"source", tokens_json(inspection->source())}});
}

std::string Routes::keep(std::shared_ptr<const study::Inspection> inspection, std::string wanted,
                         const void* of) {
  const std::lock_guard lock(mutex_);
  const std::string id = "r" + std::to_string(++started_);
  runs_.push_front({id, std::move(wanted), of, std::move(inspection)});
  if (runs_.size() > kRunsKept) runs_.pop_back();
  return id;
}

std::optional<infer::ImageModel> Routes::image_model(const std::string& name) {
  const auto [number, step] = parts_of(name);
  if (given_ || step >= 0 || number >= folders_.size()) return std::nullopt;
  const std::string& folder = folders_[number];
  if (!infer::ImageModel::reads_images(folder)) return std::nullopt;
  const int64_t time = written(folder);
  const std::lock_guard lock(mutex_);
  const auto found = image_models_.find(number);
  if (found != image_models_.end() && found->second.first == time) return found->second.second;
  const std::vector<model::AdapterUse> adapters =
      number == 0 ? adapters_ : std::vector<model::AdapterUse>();
  const infer::ImageModel model =
      infer::ImageModel::open(folder, model::WeightPrecision::full, adapters);
  image_models_.insert_or_assign(number, std::pair(time, model));
  return model;
}

std::string Routes::image(const Query& query, const std::string& file) {
  const std::string name = query.text("model");
  const media::Image image = media::decode_image(file, "image");
  const auto respond = [&](study::ImageInspection found, const infer::Classifications& labels) {
    auto kept = std::make_shared<const study::ImageInspection>(std::move(found));
    const std::shared_ptr<const study::Inspection> inspection(kept, &kept->inspection);
    return image_json(keep(inspection, "", nullptr), *kept, labels);
  };
  if (const auto model = image_model(name))
    return respond(study::inspect_image(*model, image, "image"), labels_of_image(*model, image));
  const model::Model model = this->model(name);
  const std::string folder = folders_[parts_of(name).first];
  return respond(
      study::inspect_image(model, infer::image_question(model, folder, query.text("question")),
                           image, "image"),
      {});
}

std::string Routes::explain(const std::string& body) {
  const Json request = parse_ordered_json(body, "request");
  study::InspectInput input;
  input.text = request.value("text", "");
  input.ids = ids_of(request, "ids");
  return json_line(explain_request(this->model(request.value("model", "0")), input, request));
}

std::string Routes::generation(const std::string& body) {
  const Json request = parse_ordered_json(body, "request");
  const auto name = request.value("model", std::string("0"));
  const model::Model model = this->model(name);
  return json_line(generation_json(model, folders_[parts_of(name).first], request));
}

std::string Routes::chat_prompt(const std::string& body) {
  const Json request = parse_ordered_json(body, "request");
  const auto name = request.value("model", std::string("0"));
  const model::Model model = this->model(name);
  return json_line(prompt_json(model, folders_[parts_of(name).first], request));
}

// Returns null if the run was evicted.
std::shared_ptr<const study::Inspection> Routes::run(const std::string& id) {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(runs_.begin(), runs_.end(), [&](const Run& run) { return run.id == id; });
  if (found == runs_.end()) return nullptr;
  runs_.splice(runs_.begin(), runs_, found);
  return runs_.front().inspection;
}

Response Routes::dispatch(const Request& request) {
  const Query query(request.query);
  const std::string& path = request.path;
  if (request.method == "POST") {
    if (path == "api/run") return {200, "application/json", start(request.body)};
    if (path == "api/explain") return {200, "application/json", explain(request.body)};
    if (path == "api/prompt") return {200, "application/json", chat_prompt(request.body)};
    if (path == "api/generation") return {200, "application/json", generation(request.body)};
    if (path == kImagePath) return {200, "application/json", image(query, request.body)};
    if (path == "api/speech")
      return {200, "application/json", speech_json(model(query.text("model")), request.body)};
    return failure(404, excerpt(path) + ": unknown route");
  }
  if (path == "api/opening") return binary(image_);
  if (path == "api/models") return {200, "application/json", models()};
  if (path == "api/spec") return {200, "application/json", spec(query.text("model"))};
  if (path == "api/induction")
    return {200, "application/json",
            json_line(study::induction_scores(model(query.text("model"))))};
  if (path == "api/sample")
    return {200, "application/json", sample_json(model(query.text("model")), query)};
  if (path == "api/training") {
    const auto number = static_cast<size_t>(query.number("model"));
    if (number >= folders_.size()) return failure(404, "model: unknown model");
    return {200, "application/json", training_log(folders_[number])};
  }
  if (path == "api/texts") {
    std::vector<int32_t> ids;
    for (const int64_t id : query.numbers("ids"))
      ids.push_back(static_cast<int32_t>(whole_number(id, "ids")));
    return {200, "application/json",
            json_line(tokens_json(study::token_texts(model(query.text("model")), ids)))};
  }

  return about_run(path, query);
}

// Responds to requests about one run, or about two.
Response Routes::about_run(const std::string& path, const Query& query) {
  using About = std::function<Json(const study::Inspection&, const Query&)>;
  using AboutTwo =
      std::function<Json(const study::Inspection&, const study::Inspection&, const Query&)>;
  using Bytes = std::function<Response(const study::Inspection&, const Query&)>;
  static const std::map<std::string, About> about_one = {
      {"api/strongest", strongest_json}, {"api/scores", scores_json},
      {"api/lens", lens_json},           {"api/surprise", surprise_json},
      {"api/walk", walk_json},           {"api/routing", routing_json},
      {"api/sizes", sizes_json},         {"api/neurons", neurons_of},
      {"api/circuit", circuit_of},       {"api/attribution", attribution_of},
      {"api/rotary", rotary_of}};
  static const std::map<std::string, AboutTwo> about_two = {
      {"api/divergence", divergence_of}, {"api/patched", patched_of}, {"api/steered", steered_of}};
  static const std::map<std::string, Bytes> binaries = {{"api/map", map_response},
                                                        {"api/vectors", vectors_response},
                                                        {"api/logits", logits_response},
                                                        {"api/rollout", rollout_response}};
  const auto one = about_one.find(path);
  const auto two = about_two.find(path);
  const auto bytes = binaries.find(path);
  if (one == about_one.end() && two == about_two.end() && bytes == binaries.end())
    return page_file(path);
  const std::shared_ptr<const study::Inspection> inspection = run(query.text("run"));
  if (!inspection) return failure(410, "run: evicted by newer runs; request it again");
  if (bytes != binaries.end()) return bytes->second(*inspection, query);
  if (one != about_one.end())
    return {200, "application/json", json_line(one->second(*inspection, query))};
  const std::shared_ptr<const study::Inspection> other = run(query.text("other"));
  if (!other) return failure(410, "other: evicted by newer runs; request it again");
  return {200, "application/json", json_line(two->second(*inspection, *other, query))};
}

Response Routes::respond(const Request& request) {
  if (request.method != "GET" && request.method != "POST")
    return failure(405, request.method + ": expected GET or POST");
  // JSON escapes may use six bytes per byte. The server limits images.
  if (request.body.size() > 6 * study::kInspectedBytes && request.path != kImagePath)
    return failure(413, "text: the request has " + std::to_string(request.body.size()) +
                            " bytes; expected a text of at most " +
                            std::to_string(study::kInspectedBytes) + " bytes");
  try {
    return dispatch(request);
  } catch (const Error& error) {
    return failure(error.kind() == ErrorKind::Internal ? 500 : 400, error.what());
  } catch (const Json::exception&) {
    return failure(400, "request: not the expected JSON; see docs/inspect.md");
  } catch (const std::bad_alloc&) {
    return failure(503, "memory: out of memory; expected a shorter text");
  }
}

}  // namespace fovea::inspector
