#include "durable_reference.hpp"

#include <algorithm>
#include <cstdio>

namespace leafcutter::node::tests {
namespace {

constexpr std::size_t reference_page = 4096;

std::string padded(const std::string& bytes, std::size_t begin, std::size_t end) {
  auto out = begin < bytes.size() ? bytes.substr(begin, end - begin) : std::string();
  out.resize(end - begin, '\0');
  return out;
}

}  // namespace

ReferenceFolder::ReferenceFolder() { live_[root] = durable_[root] = {'d', 0755, ""}; }

void ReferenceFolder::walk(const Edges& edges, Id folder, const std::string& prefix,
                           std::map<std::string, Id>& into) const {
  for (const auto& [parent, name, child] : edges) {
    if (parent != folder) continue;
    into[prefix + name] = child;
    walk(edges, child, prefix + name + "/", into);
  }
}

std::optional<ReferenceFolder::Id> ReferenceFolder::find(const std::string& path) const {
  if (path == ".") return root;
  std::map<std::string, Id> all;
  walk(live_edges_, root, "", all);
  const auto found = all.find(path);
  if (found == all.end()) return std::nullopt;
  return found->second;
}

std::pair<ReferenceFolder::Id, std::string> ReferenceFolder::split(const std::string& path) const {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {root, path};
  return {*find(path.substr(0, slash)), path.substr(slash + 1)};
}

ReferenceFolder::File& ReferenceFolder::at(const std::string& path) { return live_.at(*find(path)); }

void ReferenceFolder::create(const std::string& path, File file) {
  const auto [folder, name] = split(path);
  live_edges_.emplace(folder, name, next_);
  live_[next_++] = std::move(file);
}

void ReferenceFolder::link(const std::string& from, const std::string& to) {
  const auto [folder, name] = split(to);
  live_edges_.emplace(folder, name, *find(from));
}

void ReferenceFolder::rename(const std::string& from, const std::string& to) {
  const auto id = *find(from);
  if (find(to) == id) return;
  if (has(to)) remove(to);
  const auto [old_folder, old_name] = split(from);
  const auto [folder, name] = split(to);
  live_edges_.erase({old_folder, old_name, id});
  live_edges_.emplace(folder, name, id);
}

void ReferenceFolder::exchange(const std::string& a, const std::string& b) {
  const auto first = *find(a), second = *find(b);
  if (first == second) return;
  remove(a);
  remove(b);
  const auto [folder_a, name_a] = split(a);
  const auto [folder_b, name_b] = split(b);
  live_edges_.emplace(folder_a, name_a, second);
  live_edges_.emplace(folder_b, name_b, first);
}

void ReferenceFolder::remove(const std::string& path) {
  const auto [folder, name] = split(path);
  live_edges_.erase({folder, name, *find(path)});
}

std::vector<std::string> ReferenceFolder::paths(char kind) const {
  std::map<std::string, Id> all;
  walk(live_edges_, root, "", all);
  std::vector<std::string> out;
  for (const auto& [path, id] : all)
    if (live_.at(id).kind == kind) out.push_back(path);
  return out;
}

ReferenceFolder::Edges ReferenceFolder::way_to(Id file) const {
  Edges out;
  std::set<Id> wanted{file};
  for (auto before = out.size() + 1; before != out.size();) {
    before = out.size();
    for (const auto& edge : live_edges_)
      if (wanted.contains(std::get<2>(edge))) {
        out.insert(edge);
        wanted.insert(std::get<0>(edge));
      }
  }
  // Without those below a folder that was removed.
  std::map<std::string, Id> all;
  walk(live_edges_, root, "", all);
  std::set<Id> reached{root};
  for (const auto& [path, id] : all) reached.insert(id);
  std::erase_if(out, [&](const Edge& edge) { return !reached.contains(std::get<0>(edge)); });
  return out;
}

bool ReferenceFolder::named(Id id) const {
  return std::ranges::any_of(durable_edges_, [&](const Edge& edge) { return std::get<2>(edge) == id; });
}

void ReferenceFolder::put(const Edge& edge, std::set<Id>& touched) {
  const auto [folder, name, id] = edge;
  if (durable_edges_.contains(edge)) return;
  for (const auto& old : Edges(durable_edges_))
    if (std::get<0>(old) == folder && std::get<1>(old) == name) {
      durable_edges_.erase(old);
      touched.insert(std::get<2>(old));
    }
  if (named(id)) touched.insert(id);
  durable_edges_.insert(edge);
  if (!durable_.contains(id)) {
    durable_[id] = live_.at(id);
    if (live_.at(id).kind == 'f') durable_[id].bytes.clear();
  }
}

void ReferenceFolder::settle(std::set<Id> touched) {
  while (!touched.empty()) {
    const auto id = *touched.begin();
    touched.erase(touched.begin());
    const auto way = way_to(id);
    bool kept = false;
    for (const auto& edge : Edges(durable_edges_)) {
      if (std::get<2>(edge) != id) continue;
      if (way.contains(edge))
        kept = true;
      else
        durable_edges_.erase(edge);
    }
    if (kept) continue;
    for (const auto& edge : way) put(edge, touched);
    touched.erase(id);
    if (!way.empty()) continue;
    durable_.erase(id);
    clean_.erase(id);
    for (const auto& edge : Edges(durable_edges_))
      if (std::get<0>(edge) == id) {
        durable_edges_.erase(edge);
        touched.insert(std::get<2>(edge));
      }
  }
}

void ReferenceFolder::sync_names(Id id) {
  if (id == root) return;
  std::set<Id> touched;
  if (named(id)) touched.insert(id);
  for (const auto& edge : way_to(id)) put(edge, touched);
  settle(touched);
}

void ReferenceFolder::sync_entries(Id folder) {
  std::set<Id> touched;
  for (const auto& edge : live_edges_)
    if (std::get<0>(edge) == folder) put(edge, touched);
  for (const auto& edge : Edges(durable_edges_))
    if (std::get<0>(edge) == folder && !live_edges_.contains(edge)) {
      durable_edges_.erase(edge);
      touched.insert(std::get<2>(edge));
    }
  settle(touched);
}

void ReferenceFolder::sync_bytes(Id id, std::size_t begin, std::size_t end, bool with_size) {
  const auto& live = live_.at(id).bytes;
  auto& durable = durable_[id].bytes;
  const auto failed = clean_.find(id);
  auto* const clean = failed == clean_.end() ? nullptr : &failed->second;
  if (with_size) {
    if (clean != nullptr) durable.resize(std::min(durable.size(), clean->size()));
    durable.resize(live.size(), '\0');
    if (clean != nullptr) clean->resize(live.size(), '\0');
  }
  for (auto page = begin / reference_page * reference_page; page < end; page += reference_page) {
    const auto until = std::min(page + reference_page, durable.size());
    if (page >= durable.size()) break;
    if (!with_size && (page >= live.size() || (clean != nullptr && page >= clean->size()))) break;
    if (clean != nullptr && padded(live, page, until) == padded(*clean, page, until)) continue;
    durable.replace(page, until - page, padded(live, page, until));
    if (clean != nullptr) {
      clean->resize(std::max(clean->size(), until), '\0');
      clean->replace(page, until - page, padded(live, page, until));
    }
  }
}

void ReferenceFolder::everything_durable() {
  durable_ = live_;
  durable_edges_ = live_edges_;
  clean_.clear();
}

void ReferenceFolder::synced(const std::string& path, bool data_only) {
  const auto id = *find(path);
  const auto& file = live_.at(id);
  if (!durable_.contains(id)) durable_[id] = {file.kind, file.mode, ""};
  if (file.kind == 'f') sync_bytes(id, 0, file.bytes.size(), true);
  if (!data_only) durable_[id].mode = file.mode;
  if (!(data_only && named(id) && file.kind == 'f')) sync_names(id);
  if (file.kind == 'd') sync_entries(id);
}

void ReferenceFolder::written(const std::string& path, std::size_t offset, std::size_t length) {
  const auto id = *find(path);
  const auto& file = live_.at(id);
  if (!durable_.contains(id)) durable_[id] = {file.kind, file.mode, ""};
  sync_bytes(id, offset, offset + length, true);
  if (!named(id)) sync_names(id);
}

void ReferenceFolder::synced_range(const std::string& path, std::size_t offset, std::size_t length) {
  const auto id = *find(path);
  if (durable_.contains(id)) sync_bytes(id, offset, offset + length, false);
}

void ReferenceFolder::synced_all() {
  std::map<std::string, Id> all;
  walk(live_edges_, root, "", all);
  std::map<Id, File> durable{{root, live_.at(root)}};
  for (const auto& [path, id] : all) {
    if (!durable_.contains(id)) durable_[id] = {live_.at(id).kind, 0, ""};
    if (live_.at(id).kind == 'f') sync_bytes(id, 0, live_.at(id).bytes.size(), true);
    durable[id] = durable_[id];
    durable[id].mode = live_.at(id).mode;
    if (live_.at(id).kind == 'l') durable[id].bytes = live_.at(id).bytes;
  }
  durable_ = durable;
  durable_edges_.clear();
  for (const auto& edge : live_edges_)
    if (durable_.contains(std::get<0>(edge)) && durable_.contains(std::get<2>(edge))) durable_edges_.insert(edge);
}

void ReferenceFolder::sync_failed(const std::string& path) {
  const auto id = *find(path);
  const auto& file = live_.at(id);
  if (file.kind != 'f') return;
  if (!durable_.contains(id)) durable_[id] = {file.kind, file.mode, ""};
  clean_[id] = file.bytes;
}

void ReferenceFolder::power_loss() {
  std::map<std::string, Id> all;
  walk(durable_edges_, root, "", all);
  std::map<Id, File> kept{{root, durable_.at(root)}};
  for (const auto& [path, id] : all) kept[id] = durable_.at(id);
  std::erase_if(durable_edges_, [&](const Edge& edge) { return !kept.contains(std::get<0>(edge)); });
  live_ = durable_ = kept;
  live_edges_ = durable_edges_;
  clean_.clear();
}

FolderPicture ReferenceFolder::picture() const {
  std::map<std::string, Id> all;
  walk(live_edges_, root, "", all);
  std::map<Id, int> links;
  for (const auto& [path, id] : all) ++links[id];
  FolderPicture out;
  for (const auto& [path, id] : all) {
    const auto& file = live_.at(id);
    char mode[8];
    std::snprintf(mode, sizeof mode, "%04o", file.mode);
    if (file.kind == 'l') out[path] = "link -> " + file.bytes;
    if (file.kind == 'd') out[path] = std::string("folder ") + mode;
    if (file.kind == 'f')
      out[path] = std::string("file ") + mode + " x" + std::to_string(links[id]) + " " + picture_of_bytes(file.bytes);
  }
  return out;
}

}  // namespace leafcutter::node::tests
