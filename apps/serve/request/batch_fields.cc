// The fields of requests for batches.

#include "serve/request/field_values.h"

namespace fovea::serve {

template <>
const Fields<BatchRequest>& fields_of() {
  static const Fields<BatchRequest> all = {
      {{"input_file_id", FieldType::text, 1, 64, "", "id of an uploaded file for batch", true},
       [](const Json& v, BatchRequest& r) { r.input_file = v; }},
      {{"endpoint", FieldType::text, 1, 64, "", "the url of the file's requests", true},
       [](const Json& v, BatchRequest& r) { r.endpoint = v; }},
      {{"completion_window", FieldType::text, 1, 16, "24h", "24h; batches do not expire"},
       [](const Json& v, BatchRequest&) {
         if (v != "24h")
           throw ApiError{400, "completion_window: expected 24h", "completion_window",
                          "invalid_value"};
       }},
      {{"metadata", FieldType::object, 0, 16, "none", "texts that are returned with the batch"},
       [](const Json& v, BatchRequest& r) { r.metadata = checked_metadata(v); }},
  };
  return all;
}

}  // namespace fovea::serve
