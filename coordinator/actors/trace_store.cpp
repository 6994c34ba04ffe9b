#include "coordinator/actors/trace_store.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.hpp"
#include "protocols/event.hpp"

namespace leafcutter::coordinator {

namespace {

using base::Error;
using base::ErrorCode;
using base::Expected;
using base::Status;

/// A file without a name: it is gone when we are, however we end.
Expected<base::UniqueFd> nameless_file(const std::string& folder) {
  base::UniqueFd file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  // Some file systems cannot do that.
  auto path = folder + "/leafcutter-XXXXXX";
  file.reset(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) return base::system_error("create a file in " + folder, errno);
  ::unlink(path.c_str());
  return file;
}

constexpr const char* spilled = "a spilled trace";

Expected<std::string> read_spilled(int fd, std::uint64_t size) {
  std::string bytes(size, '\0');
  const auto whole = base::read_at(fd, bytes.data(), bytes.size(), 0, spilled);
  if (!whole) return whole.error();
  if (!*whole) return Error{ErrorCode::io, "a spilled trace became shorter than it was written"};
  return bytes;
}

}  // namespace

void TraceStore::forget(const std::string& execution) {
  const auto at = traces_.find(execution);
  if (at == traces_.end()) return;
  memory_ -= at->second.memory.size();
  traces_.erase(at);
}

/// The largest trace in memory goes to disk: the fewest files for the most room.
Status TraceStore::spill() {
  const auto largest = std::max_element(traces_.begin(), traces_.end(), [](const auto& a, const auto& b) {
    return a.second.memory.size() < b.second.memory.size();
  });
  auto& trace = largest->second;
  if (!trace.file) {
    auto file = nameless_file(limits_.folder);
    if (!file) return file.error();
    trace.file = std::move(*file);
  }
  const auto written = base::write_at(trace.file.get(), trace.memory, trace.bytes - trace.memory.size(), spilled);
  if (!written) return written;
  memory_ -= trace.memory.size();
  trace.memory = std::string();
  return base::ok();
}

Status TraceStore::append(Unfinished& trace, std::string_view chunk) {
  if (trace.file) {
    const auto written = base::write_at(trace.file.get(), chunk, trace.bytes, spilled);
    if (!written) return written;
  } else {
    trace.memory += chunk;
    memory_ += chunk.size();
  }
  trace.bytes += chunk.size();
  while (memory_ > limits_.memory_bytes) {
    const auto spilled = spill();
    if (!spilled && trace.file) return base::ok();  // this chunk is on disk; another trace's will be tried again
    if (!spilled) {
      trace.memory.resize(trace.memory.size() - chunk.size());
      trace.bytes -= chunk.size();
      memory_ -= chunk.size();
      return spilled;
    }
  }
  return base::ok();
}

Expected<TraceStore::Taken> TraceStore::store(const protocols::BatchHeader& header, std::string_view chunk) {
  const auto at = traces_.find(header.execution);
  if (at == traces_.end()) return Taken{{header.execution, header.base + header.count, true}, false};
  auto& trace = at->second;
  std::string tail;
  switch (protocols::classify(header, trace.next)) {
    case protocols::Intake::gap: return Taken{{header.execution, trace.next, false}, false};
    case protocols::Intake::duplicate:
      // The end may come with a batch whose events are there already (its sender cut the batches anew).
      if (!(header.last && header.base + header.count == trace.next)) {
        return Taken{{header.execution, trace.next, false}, false};
      }
      chunk = {};
      break;
    case protocols::Intake::store: break;
    case protocols::Intake::store_tail: {
      auto events = protocols::decode_chunks(chunk);
      if (!events) return events.error();
      if (events->size() != header.count) {
        return Error{ErrorCode::protocol, "a batch of " + std::to_string(events->size()) + " events announces " +
                                              std::to_string(header.count)};
      }
      events->erase(events->begin(), events->begin() + static_cast<std::ptrdiff_t>(trace.next - header.base));
      tail = protocols::encode_chunk(*events);
      chunk = tail;
      break;
    }
  }
  if (trace.truncated || trace.bytes + chunk.size() > limits_.execution_bytes) {
    // Taken and dropped: holding it back would only stop the leaf's other traffic.
    trace.truncated = true;
  } else {
    const auto appended = append(trace, chunk);
    if (!appended) return appended.error();
  }
  trace.next = std::max(trace.next, header.base + header.count);
  // A node closes the stream of a leaf that died with an empty last batch; the leaf's own end is an event.
  trace.complete = header.last && header.count > 0 && !trace.truncated;
  return Taken{{header.execution, trace.next, header.last}, header.last};
}

Expected<TraceStore::Trace> TraceStore::take(const std::string& execution) {
  const auto at = traces_.find(execution);
  if (at == traces_.end()) return Error{ErrorCode::internal, "nobody expects " + execution};
  auto& unfinished = at->second;
  Trace trace{unfinished.next, unfinished.complete, {}};
  memory_ -= unfinished.memory.size();
  Status read = base::ok();
  if (unfinished.file) {
    auto chunks = read_spilled(unfinished.file.get(), unfinished.bytes);
    if (chunks)
      trace.chunks = std::move(*chunks);
    else
      read = chunks.error();
  } else {
    trace.chunks = std::move(unfinished.memory);
  }
  traces_.erase(at);
  if (!read) return read.error();
  return trace;
}

}  // namespace leafcutter::coordinator
