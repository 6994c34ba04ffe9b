// Syncs while it is known what is durable: the image learns of each before the task does, whether it took effect, lied
// or failed.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <array>

#include "node/syscalls/asked.hpp"
#include "node/syscalls/durable_image.hpp"
#include "node/syscalls/effects.hpp"
#include "scenarios/fault_kinds.hpp"

namespace leafcutter::node {
namespace {

bool syncs_one_file(int number) { return number == SYS_fsync || number == SYS_fdatasync; }

/// How far a write makes itself durable.
enum class Durability { none, data, all };

base::Expected<Durability> durability_of_write(const Target& task, const seccomp_data& call, const CallShape& shape) {
  if (call.nr == SYS_pwritev2 && (call.args[5] & RWF_SYNC) != 0) return Durability::all;
  const auto info = task.descriptor_info(static_cast<int>(call.args[shape.fd]));
  if (!info) return info.error();
  if ((info->flags & O_SYNC) == O_SYNC) return Durability::all;
  if ((info->flags & O_DSYNC) != 0) return Durability::data;
  return call.nr == SYS_pwritev2 && (call.args[5] & RWF_DSYNC) != 0 ? Durability::data : Durability::none;
}

base::Status tell_of_mappings(DurableImage& image, const Target& task, const seccomp_data& call) {
  if ((call.args[2] & MS_SYNC) == 0) return base::ok();
  const auto mappings = task.mappings({call.args[0], call.args[1]});
  if (!mappings) return mappings.error();
  const auto root = task.root();
  if (!root) return root.error();
  for (const auto& mapping : *mappings) {
    if (mapping.path.empty()) continue;
    open_how how{};
    how.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    how.resolve = RESOLVE_IN_ROOT;
    const base::UniqueFd file(
        static_cast<int>(::syscall(SYS_openat2, root->get(), mapping.path.c_str(), &how, sizeof how)));
    if (!file) continue;  // it has no name any more: a power loss leaves nothing of it
    if (auto told = image.written(file.get(), mapping.offset, mapping.bytes, true); !told) return told;
  }
  return base::ok();
}

/// What a sync of the fsync family makes durable, other than the call carried out here.
base::Status tell_of_sync(DurableImage& image, const Target& task, const seccomp_data& call) {
  if (call.nr == SYS_sync || call.nr == SYS_syncfs) return image.synced_all();
  if (call.nr == SYS_msync) return tell_of_mappings(image, task, call);
  const auto file = task.duplicate(static_cast<int>(call.args[0]));
  if (!file) return file.error();
  if (syncs_one_file(call.nr)) return image.synced(file->get(), call.nr == SYS_fdatasync);
  if (call.nr != SYS_sync_file_range || (call.args[3] & SYNC_FILE_RANGE_WAIT_AFTER) == 0) return base::ok();
  return image.synced_range(file->get(), call.args[1], call.args[2]);
}

}  // namespace

base::Expected<Effects::Ended> Effects::lose_sync(Case& at, const Strike& strike) {
  const auto number = at.notification.data.nr;
  if (context_.image == nullptr) return cannot(at, strike, "it is not known what is durable");
  if (!syncs_one_file(number)) return cannot(at, strike, "only fsync and fdatasync drop what they could not write");
  const auto name = strike.fault.params.value("error", "EIO");
  const auto file = target(at).duplicate(static_cast<int>(at.notification.data.args[0]));
  if (!file) return cannot(at, strike, file.error().message);
  if (!valid(at)) return Ended::gone;
  const auto dropped = context_.image->sync_failed(file->get());
  if (!dropped) return dropped.error();
  auto proof = evidence(at);
  proof["errno"] = scenarios::error_number(name);
  proof["errno_name"] = name;
  proof["dropped_bytes"] = *dropped;
  return strike_with(at, strike, {.error = scenarios::error_number(name)}, {{"effect", "fsync-lost"}, {"errno", name}},
                     std::move(proof));
}

base::Expected<Effects::Ended> Effects::lie_about_sync(Case& at, const Strike& strike) {
  if (context_.image == nullptr) return cannot(at, strike, "it is not known what is durable");
  const auto& call = at.notification.data;
  const auto by_descriptor = call.nr != SYS_sync && call.nr != SYS_msync;
  base::UniqueFd file;
  if (by_descriptor) {
    auto copy = target(at).duplicate(static_cast<int>(call.args[0]));
    if (!copy) return cannot(at, strike, copy.error().message);
    file = std::move(*copy);
  }
  if (file)
    context_.image->lied(file.get());
  else
    context_.image->lied(at.object.path);
  return strike_with(at, strike, {.value = 0}, {{"effect", "fsync-lie"}}, evidence(at));
}

base::Expected<bool> Effects::tell_image(Case& at) {
  const auto task = target(at);
  const auto& call = at.notification.data;
  // A sync of more than the image was told of makes more durable than a power loss will leave: never less.
  if (at.object.family == "fsync") {
    const auto told = tell_of_sync(*context_.image, task, call);
    if (told || !valid(at)) return false;
    return told.error();
  }
  if (at.object.family != "write" || at.object.socket) return false;
  const auto durability = durability_of_write(task, call, *call_shape(call.nr));
  if (!durability) return valid(at) ? base::Expected<bool>(durability.error()) : false;
  if (*durability == Durability::none) return false;
  // What it makes durable is known only when it has been carried out, and the task must not run on before the image
  // knows.
  auto whole = request(at, task);
  whole.answered = true;
  const auto done = carry_out(at, whole);
  if (!done) return done.error();
  if (!done->done) {
    if (!valid(at)) return false;
    return base::Error{
        base::ErrorCode::io, "a synchronous write could not be carried out for its task: " + done->why, {}};
  }
  account_space(at, done->result);
  const auto ended =
      end_with(at, done->result < 0 ? Answer{.error = static_cast<int>(-done->result)} : Answer{.value = done->result});
  if (!ended) return ended.error();
  if (*ended == Ended::gone)
    if (const auto kept = remember(std::move(at)); !kept) return kept.error();
  return true;
}

base::Status Effects::tell_image_of(const Case& at, std::int64_t result) {
  const auto task = target(at);
  const auto& call = at.notification.data;
  if (at.object.family == "fsync") return tell_of_sync(*context_.image, task, call);
  const auto& written = at.then ? at.then->object : at.object;
  if (written.family != "write" || written.socket || result <= 0) return base::ok();
  const auto& shape = *call_shape(call.nr);
  const auto durability = durability_of_write(task, call, shape);
  if (!durability) return durability.error();
  if (*durability == Durability::none) return base::ok();
  const auto file = task.duplicate(static_cast<int>(call.args[shape.fd]));
  if (!file) return file.error();
  const auto bytes = static_cast<std::uint64_t>(result);
  auto end =
      named_offset(call) ? *named_offset(call) + bytes : static_cast<std::uint64_t>(::lseek(file->get(), 0, SEEK_CUR));
  return context_.image->written(file->get(), end - bytes, bytes, *durability == Durability::data);
}

}  // namespace leafcutter::node
