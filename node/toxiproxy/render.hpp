// Proxies and toxics as Toxiproxy says them in JSON: same fields, same order.
#pragma once

#include <string>
#include <vector>

#include "node/toxiproxy/book.hpp"

namespace leafcutter::node::toxiproxy {

std::string json_of(const Toxic& toxic);
/// Of a proxy, those of the upstream way first.
std::string json_of_toxics(const Proxy& proxy);
std::string json_of(const Proxy& proxy);
/// An object by name.
std::string json_of(const std::map<std::string, Proxy>& proxies);

/// {"error":"...","status":400}
std::string json_of_error(const std::string& message, unsigned status);
/// What POST /populate answers: {"proxies":[...]}, with error and status in front when one failed; `proxies` is null
/// then, if there are none.
std::string json_of_populated(const std::vector<const Proxy*>& proxies, const std::string& error, unsigned status);

}  // namespace leafcutter::node::toxiproxy
