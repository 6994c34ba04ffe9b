#include "node/leaf/durability.hpp"

#include <algorithm>
#include <utility>

#include "node/syscalls/durable_image.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

bool asks_for_image(const scenarios::Fault& fault) {
  const auto* kind = scenarios::fault_kind(fault.kind);
  return kind != nullptr && kind->needs_image;
}

}  // namespace

bool needs_image(const scenarios::Plan& plan) {
  return std::any_of(plan.faults.begin(), plan.faults.end(), asks_for_image);
}

bool needs_image(const scenarios::Plan& plan, const std::string& service) {
  return std::any_of(plan.faults.begin(), plan.faults.end(),
                     [&](const auto& fault) { return fault.site.lane == service && asks_for_image(fault); });
}

base::Expected<std::shared_ptr<DurableImage>> make_image(const LeafContext& context, const std::string& service) {
  const auto folder = "/proc/self/fd/" + std::to_string(context.image_folder) + "/" + service;
  auto image = DurableImage::create(data_folder(service), folder);
  if (!image) return image.error();
  return std::make_shared<DurableImage>(std::move(*image));
}

base::Expected<Value> lose_power(DurableImage& image) {
  const auto loss = image.power_loss();
  if (!loss) return loss.error();
  Value lost = {{"text", loss->text()},
                {"files_changed", loss->files_changed},
                {"names_lost", loss->names_lost},
                {"names_returned", loss->names_returned},
                {"bytes_lost", loss->bytes_lost},
                {"syncs_that_lied", loss->lies},
                {"syncs_that_failed", loss->syncs_failed}};
  for (const auto& [name, paths] :
       {std::pair{"changed", &loss->changed}, {"lost", &loss->lost}, {"returned", &loss->returned}})
    if (!paths->empty()) lost[name] = *paths;
  return lost;
}

}  // namespace leafcutter::node
