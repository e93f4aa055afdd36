#include "lab/journal.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"

namespace fovea::lab {

using Json = nlohmann::ordered_json;

Journal::Journal(const std::string& folder, const Json& settings) : path_(folder + "/runs.jsonl") {
  make_directories(folder);
  lock_.emplace(folder);
  if (!is_file(path_)) {
    lines_ = settings.dump() + "\n";
    write();
    return;
  }
  const std::string text = read_file(path_);
  int64_t number = 0;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    read_line(line, ++number, settings);
    lines_ += line + "\n";
  }
  if (number == 0) lines_ = settings.dump() + "\n";
}

void Journal::read_line(const std::string& line, int64_t number, const Json& settings) {
  const std::string name = fmt::format("{}:{}", path_, number);
  const nlohmann::json json = parse_json(line, name);
  if (number == 1) {
    check_field(json == nlohmann::json(settings), "out",
                "{}: has runs of other settings: {}; expected {}, or a new folder", path_, line,
                settings.dump());
    return;
  }
  Run run{{.arm = get_string(json, "arm", name),
           .x = get_float(json, "x", name),
           .rate = get_float(json, "rate", name),
           .seed = static_cast<uint64_t>(get_int(json, "seed", name, 0))},
          {}};
  seconds_ += get_float(json, "seconds", name);
  if (!json.contains("values") || !json["values"].is_array())
    fail(ErrorKind::BadFile, "{}: no list \"values\"; expected one", name);
  for (const nlohmann::json& value : json["values"]) {
    run.readings.push_back({get_string(value, "series", name), get_float(value, "x", name),
                            get_float(value, "y", name)});
  }
  runs_.push_back(std::move(run));
}

const Readings* Journal::find(const LabRun& run) const {
  for (const Run& known : runs_)
    if (known.arm == run.arm && known.x == run.x && known.rate == run.rate &&
        known.seed == run.seed)
      return &known.readings;
  return nullptr;
}

void Journal::add(const LabRun& run, const Readings& readings, double seconds) {
  Json values = Json::array();
  for (const Reading& r : readings)
    values.push_back({{"series", r.series}, {"x", r.x}, {"y", r.y}});
  const Json line = {{"arm", run.arm},   {"x", run.x},         {"rate", run.rate},
                     {"seed", run.seed}, {"seconds", seconds}, {"values", values}};
  runs_.push_back({run, readings});
  seconds_ += seconds;
  lines_ += line.dump() + "\n";
  write();
}

// Some hundred short lines, so the file is written as a whole.
void Journal::write() const { write_file_atomically(path_, lines_); }

}  // namespace fovea::lab
