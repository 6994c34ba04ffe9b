// The rules of docs/durability.md once more, written for reading instead of speed: a whole folder with its durable
// state in memory, every question answered by looking at everything.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "durable_fixture.hpp"

namespace leafcutter::node::tests {

class ReferenceFolder {
 public:
  struct File {
    char kind = 'f';  ///< f: file, d: folder, l: link
    unsigned mode = 0;
    std::string bytes;  ///< of a link its target
  };
  using Id = int;
  using Edge = std::tuple<Id, std::string, Id>;  ///< folder, name, file
  static constexpr Id root = 0;

  ReferenceFolder();

  // What a service does. Paths exist where they must; the caller sees to it.
  void create(const std::string& path, File file);
  void link(const std::string& from, const std::string& to);
  void rename(const std::string& from, const std::string& to);
  void exchange(const std::string& a, const std::string& b);
  void remove(const std::string& path);
  File& at(const std::string& path);

  // What is reported.
  void everything_durable();
  void synced(const std::string& path, bool data_only);
  void written(const std::string& path, std::size_t offset, std::size_t length);
  void synced_range(const std::string& path, std::size_t offset, std::size_t length);
  void synced_all();
  void sync_failed(const std::string& path);
  void power_loss();

  /// Every live path of a kind, in order.
  std::vector<std::string> paths(char kind) const;
  bool has(const std::string& path) const { return find(path).has_value(); }
  FolderPicture picture() const;

 private:
  using Edges = std::set<Edge>;

  std::optional<Id> find(const std::string& path) const;
  std::pair<Id, std::string> split(const std::string& path) const;
  void walk(const Edges& edges, Id folder, const std::string& prefix, std::map<std::string, Id>& into) const;
  Edges way_to(Id file) const;  ///< all live edges on all live paths to it
  bool named(Id id) const;
  void put(const Edge& edge, std::set<Id>& touched);
  void settle(std::set<Id> touched);
  void sync_names(Id id);
  void sync_entries(Id folder);
  void sync_bytes(Id id, std::size_t begin, std::size_t end, bool with_size);

  std::map<Id, File> live_, durable_;
  std::map<Id, std::string> clean_;  ///< after a failure
  Edges live_edges_, durable_edges_;
  Id next_ = 1;
};

}  // namespace leafcutter::node::tests
