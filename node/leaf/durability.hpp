// The durable image of a service's data folder through the life of the service: made before its first start, told of
// syncs by its supervisors, asked at each power loss.
#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"
#include "node/leaf/context.hpp"

namespace leafcutter::node {

class DurableImage;

/// The name of the hidden folder (isolation.hpp) that images are kept in.
inline constexpr const char* image_root = ".durable";

/// Some fault of the plan must know what is durable; of any service, or of one.
bool needs_image(const scenarios::Plan& plan);
bool needs_image(const scenarios::Plan& plan, const std::string& service);

/// Everything that is in the data folder now is durable. Errors: io, unavailable.
base::Expected<std::shared_ptr<DurableImage>> make_image(const LeafContext& context, const std::string& service);

/// Every process of the service is gone, and so is what was not durable. Returns what that was, as evidence. Errors:
/// io; the folder is in no known state then.
base::Expected<Value> lose_power(DurableImage& image);

}  // namespace leafcutter::node
