#include "node/leaf/job.hpp"

#include "protocols/event.hpp"

namespace leafcutter::node {

using protocols::Value;

std::string encode(const LeafJob& job) {
  return protocols::pack({{"execution", job.execution},
                          {"address", job.address},
                          {"scenario", job.scenario},
                          {"plan", scenarios::to_value(job.plan)},
                          {"events_endpoint", job.events_endpoint},
                          {"timeout", job.timeout.count()}});
}

base::Expected<LeafJob> decode_leaf_job(std::string_view bytes) {
  const auto bad = [](const std::string& what) {
    return base::Error{base::ErrorCode::protocol, "not a leaf job: " + what, {}};
  };
  auto value = protocols::unpack(bytes);
  if (!value) return value.error();
  if (!value->is_object()) return bad("expected a map");
  LeafJob job;
  for (const auto& [name, field] : {std::pair{"execution", &job.execution},
                                    {"address", &job.address},
                                    {"scenario", &job.scenario},
                                    {"events_endpoint", &job.events_endpoint}}) {
    const auto found = value->find(name);
    if (found == value->end() || !found->is_string()) return bad(std::string(name) + " is missing or no text");
    *field = found->get<std::string>();
  }
  const auto timeout = value->find("timeout");
  if (timeout == value->end() || !timeout->is_number_integer() || timeout->get<std::int64_t>() <= 0)
    return bad("timeout is missing or no positive number of nanoseconds");
  job.timeout = std::chrono::nanoseconds(timeout->get<std::int64_t>());
  const auto plan = value->find("plan");
  if (plan == value->end()) return bad("plan is missing");
  auto decoded = scenarios::plan_from(*plan);
  if (!decoded) return decoded.error();
  job.plan = std::move(*decoded);
  return job;
}

}  // namespace leafcutter::node
