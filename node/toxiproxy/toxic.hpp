// Toxics: what Toxiproxy calls a fault of a proxy, with its names, units and defaults, and the fault of the engine that
// each is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "node/proxy/fault.hpp"

namespace leafcutter::node::toxiproxy {

/// Which way of a connection: from the client to the upstream, or back.
enum class Stream { upstream, downstream };
std::string_view name_of(Stream stream);
/// In any case of letters; nothing for other names.
std::optional<Stream> stream_named(std::string_view name);

/// Which connections a toxic is for, an addition of ours: by number, in the order of accepting since the toxic was
/// added, and by client address.
struct Only {
  proxy::Ordinals connections = {};
  std::vector<std::string> peers = {};
  bool operator==(const Only&) const = default;
};

struct Toxic {
  std::string name;
  std::string type;
  Stream stream = Stream::downstream;
  double toxicity = 1;                                  ///< probability, drawn once for each connection
  std::map<std::string, std::int64_t> attributes = {};  ///< every one that the type has
  Only only = {};
  std::uint64_t after = 0;  ///< connections that the proxy had accepted when the toxic was added
  bool operator==(const Toxic&) const = default;
};

struct AttributeKind {
  std::string_view name;
  std::int64_t most;      ///< the least is 0
  bool addition = false;  ///< Toxiproxy has none of that name: said only when it is not 0
};

struct ToxicKind {
  std::string_view type;
  std::vector<AttributeKind> attributes;
  const AttributeKind* attribute(std::string_view name) const;
};

const std::vector<ToxicKind>& toxic_kinds();
/// Null for other types.
const ToxicKind* toxic_kind(std::string_view type);

/// The same, but for when they were added.
bool say_the_same(const std::vector<Toxic>& one, const std::vector<Toxic>& other);

/// The fault that a toxic is; nothing for those that do nothing. Its id is the toxic's name.
std::optional<proxy::Fault> fault_of(const Toxic& toxic);
/// The faults of a proxy, in the order in which its toxics were added.
proxy::FaultSet faults_of(const std::vector<Toxic>& toxics);

}  // namespace leafcutter::node::toxiproxy
