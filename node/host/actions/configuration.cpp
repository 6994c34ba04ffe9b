// A configuration file becomes one of its named variants, as a whole; what was there is kept, and comes back unless
// somebody else has changed the file meanwhile.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/digest.hpp"
#include "base/files.hpp"
#include "base/text.hpp"
#include "node/host/actions/effect.hpp"
#include "node/host/actions/execute.hpp"

namespace leafcutter::node::host {
namespace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

std::string recipe_text(const Intent& intent, const char* key) { return intent.recipe.at(key).get<std::string>(); }

/// The temporary's name is in the recipe, so that whoever undoes removes one that a crash has left.
base::Status replace_file(const Intent& intent, const std::string& path, std::string_view bytes) {
  const auto temporary = recipe_text(intent, "temporary");
  ::unlink(temporary.c_str());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot create " + temporary, errno);
  auto done = base::write_at(fd.get(), bytes, 0, temporary);
  const auto uid = intent.recipe.at("uid").get<uid_t>();
  const auto gid = intent.recipe.at("gid").get<gid_t>();
  if (done && (uid != ::geteuid() || gid != ::getegid()) && ::fchown(fd.get(), uid, gid) != 0)
    done = base::system_error("cannot give " + temporary + " to its owner", errno);
  if (done && ::fchmod(fd.get(), intent.recipe.at("mode").get<mode_t>()) != 0)
    done = base::system_error("cannot set the mode of " + temporary, errno);
  if (done && ::fsync(fd.get()) != 0) done = base::system_error("cannot sync " + temporary, errno);
  if (done && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = base::system_error("cannot replace " + path, errno);
  if (!done) {
    ::unlink(temporary.c_str());
    return done;
  }
  const UniqueFd folder(::open(path.substr(0, path.rfind('/') + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.get()) != 0) return base::system_error("cannot sync the folder of " + path, errno);
  return base::ok();
}

base::Status reload(const Intent& intent) {
  if (!intent.recipe.contains("reload")) return base::ok();
  const auto end = execute(command_line_from(intent.recipe.at("reload")));
  if (end.good()) return base::ok();
  return Error{ErrorCode::io, "reloading after the change: " + end.text(), {}};
}

base::Status apply_variant(const Intent& intent, const EffectContext& context) {
  const auto path = recipe_text(intent, "path");
  const auto now = digest_of_file(path);
  if (!now) return now.error();
  if (*now != recipe_text(intent, "before"))
    return Error{ErrorCode::conflict, path + " was changed by somebody else just now", {}};
  const auto content = base::read_file(context.state.path("kept/" + intent.id + ".variant"));
  if (!content) return content.error();
  if (const auto replaced = replace_file(intent, path, *content); !replaced) return replaced;
  return reload(intent);
}

base::Status has_digest(const Intent& intent, const char* key) {
  const auto path = recipe_text(intent, "path");
  const auto now = digest_of_file(path);
  if (!now) return now.error();
  if (*now == recipe_text(intent, key)) return base::ok();
  return Error{ErrorCode::io, path + " has other content than it should", {}};
}

base::Status check_variant(const Intent& intent, const EffectContext&) { return has_digest(intent, "after"); }

base::Status restore(const Intent& intent, const EffectContext& context) {
  ::unlink(recipe_text(intent, "temporary").c_str());
  const auto path = recipe_text(intent, "path"), before = recipe_text(intent, "before");
  const auto now = digest_of_file(path);
  if (!now) return now.error();
  // Somebody else's content is not clobbered: the variant is gone, which is what undoing is for.
  if (*now != recipe_text(intent, "after") || *now == before) return base::ok();
  if (before.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return base::system_error("cannot remove " + path, errno);
    return reload(intent);
  }
  const auto kept = base::read_file(context.state.path("kept/" + intent.id + ".before"));
  if (!kept) return kept.error();
  if (base::sha256(*kept) != before)
    return Error{ErrorCode::io, "what was kept of " + path + " is damaged; it is not put back", {}};
  if (const auto replaced = replace_file(intent, path, *kept); !replaced) return replaced;
  return reload(intent);
}

base::Status no_variant(const Intent& intent, const EffectContext& context) {
  const auto path = recipe_text(intent, "path");
  const auto now = digest_of_file(path);
  if (!now) return now.error();
  if (*now == recipe_text(intent, "after") && *now != recipe_text(intent, "before"))
    return Error{ErrorCode::io, path + " still is the variant", {}};
  ::unlink(context.state.path("kept/" + intent.id + ".before").c_str());
  ::unlink(context.state.path("kept/" + intent.id + ".variant").c_str());
  return base::ok();
}

}  // namespace

const Effect configuration_effect = {apply_variant, check_variant, restore, no_variant};

}  // namespace leafcutter::node::host
