// What clients send, read as Toxiproxy reads it: keys in any case of letters, null as if it were not there, unknown
// keys left alone (but noted). Errors carry the text that the client is answered with.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "node/toxiproxy/toxic.hpp"

namespace leafcutter::node::toxiproxy {

using Json = nlohmann::json;

/// There are never more.
constexpr std::size_t most_proxies = 1000, most_toxics_of_proxy = 100;

struct ToxicInput {
  std::optional<std::string> name, type, stream;
  std::optional<double> toxicity;
  Json attributes = {};  ///< an object, or null: not given
  std::optional<Only> only;
};

struct ProxyInput {
  std::optional<std::string> name, listen, upstream;
  std::optional<bool> enabled;
  std::optional<std::vector<ToxicInput>> toxics;
};

/// What was sent and does nothing: "proxies[0].lisen is no field of a proxy; did you mean "listen"?". A few at most.
using Notes = std::vector<std::string>;

base::Expected<ProxyInput> read_proxy(std::string_view body, Notes& notes);
enum class ProxyList {
  array,
  array_or_named,  ///< or what GET /proxies answers: an object of them by name
};
base::Expected<std::vector<ProxyInput>> read_proxies(std::string_view body, Notes& notes,
                                                     ProxyList list = ProxyList::array);
base::Expected<ToxicInput> read_toxic(std::string_view body, Notes& notes);

/// A toxic with Toxiproxy's defaults for what is not given.
base::Expected<Toxic> new_toxic(const ToxicInput& input, Notes& notes);
/// Attributes and toxicity that are given replace those of `toxic`; type and stream stay what they are.
base::Expected<Toxic> changed_toxic(Toxic toxic, const ToxicInput& input, Notes& notes);

}  // namespace leafcutter::node::toxiproxy
