// The bytes of a connection: read when there is room for them, passed through the faults, written when the other side
// takes them; spliced where no fault can strike.
#include <fcntl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "node/proxy/stream_link.hpp"

namespace leafcutter::node::proxy {
namespace {

/// Reads and writes of one direction before others get their turn, and bytes: about a quarter of a millisecond's.
constexpr int rounds_in_a_row = 16;
constexpr std::uint64_t bytes_in_a_row = 1 << 20;
/// Written in one call.
constexpr std::size_t chunks_at_once = 64;
/// A direction that holds less may use the second half of the link's memory too, so that a few with much do not starve
/// all.
constexpr std::size_t small_share = 16 << 10;
/// From there on reading into blocks, and splicing, are worth their cost.
constexpr std::size_t bulk_bytes = 32 << 10;
/// In a pipe that has others: it has few places.
constexpr std::size_t least_in_pipe = 4 << 10;
constexpr auto block_bytes = BlockPool::block_bytes;
/// Nothing tells when memory of the link is free again.
constexpr auto starved_retry = std::chrono::milliseconds(10);

std::size_t free_of(std::size_t limit, std::size_t used) { return limit > used ? limit - used : 0; }

}  // namespace

void StreamConnection::pump_way(Way& way) {
  const auto enough = way.read + way.delivered + bytes_in_a_row;
  for (int round = 0; round < rounds_in_a_row && way.read + way.delivered < enough; ++round) {
    if (way.chain) {
      way.chain->pump(worker().now());
      collect_back(way);
    }
    if (!way.back.empty()) deliver_back(way);
    const auto delivering = deliver(way);
    account(way);
    if (delivering == Step::over) return;
    if (way.chain && way.chain->idle()) way.chain.reset();
    const auto taking = take(way);
    account(way);
    if (taking == Step::over) return;
    if (taking == Step::blocked) {
      // What was held may have become due while writing.
      if (delivering == Step::blocked || !way.chain || way.chain->out().empty()) return;
    }
  }
  worker().schedule(*this);
}

void StreamConnection::account(Way& way) {
  auto cost = way.out.cost() + (way.chain ? way.chain->cost() : 0) + (way.pipe ? way.pipe->bytes() : 0);
  for (const auto& back : way.back) cost += back.bytes.size() + chunk_overhead;
  if (cost == way.charged) return;
  shared().charge(way.charged, cost);
  way.charged = cost;
}

/// How many bytes may be read: of the link's memory, and of the direction's share.
std::size_t StreamConnection::allowance(const Way& way) const {
  const auto& shared = link_.shared();
  const auto limit = shared.limits.memory_bytes;
  const auto ceiling = way.charged < small_share ? limit : limit / 2;
  return std::min(free_of(ceiling, shared.held.load(std::memory_order_relaxed)),
                  free_of(shared.limits.direction_bytes, way.charged));
}

// --- writing ---

StreamConnection::Step StreamConnection::deliver(Way& way) {
  if (way.broken || way.shut) {
    way.out.clear();
    if (way.chain) way.chain->out().clear();
    return Step::blocked;
  }
  if (way.pipe)
    if (const auto step = deliver_pipe(way); step != Step::moved) return step;
  while (!way.out.empty())
    if (const auto step = deliver_front(way, way.out); step != Step::moved) return step;
  while (way.chain && !way.chain->out().empty())
    if (const auto step = deliver_front(way, way.chain->out()); step != Step::moved) return step;
  return Step::moved;
}

StreamConnection::Step StreamConnection::deliver_pipe(Way& way) {
  while (way.pipe->bytes() > 0) {
    if (!way.to->writable) return Step::blocked;
    const auto count = way.pipe->empty_into(way.to->fd.get(), way.pipe->bytes());
    if (count <= 0) return write_failed(way, count == 0 ? EAGAIN : errno);
    delivered(way, static_cast<std::size_t>(count), true);
  }
  way.pipe.reset();
  return Step::moved;
}

StreamConnection::Step StreamConnection::deliver_front(Way& way, ChunkQueue& queue) {
  if (queue.front().is_end()) return act_on_end(way, queue);
  if (!way.to->writable) return Step::blocked;
  const bool spliced = queue.front().pipe != nullptr;
  const auto count = write_front(way, queue);
  if (count < 0) return write_failed(way, errno);
  queue.drop(static_cast<std::size_t>(count));
  delivered(way, static_cast<std::size_t>(count), spliced);
  return Step::moved;
}

/// As much as goes in one call: what is in the same pipe as the first chunk, or what is in memory as it is.
ssize_t StreamConnection::write_front(Way& way, ChunkQueue& queue) {
  const auto most = std::min(queue.count(), chunks_at_once);
  std::size_t count = 0;
  if (const auto& pipe = queue.front().pipe; pipe != nullptr) {
    std::size_t bytes = 0;
    for (; count < most && queue.at(count).pipe == pipe; ++count) bytes += queue.at(count).size;
    const auto written = pipe->empty_into(way.to->fd.get(), bytes);
    if (written == 0) errno = EAGAIN;
    return written == 0 ? -1 : written;
  }
  std::array<iovec, chunks_at_once> parts;
  for (; count < most && !queue.at(count).is_end() && queue.at(count).pipe == nullptr; ++count) {
    const auto bytes = queue.at(count).bytes();
    parts[count] = {const_cast<char*>(bytes.data()), bytes.size()};
  }
  if (count == 1) return ::send(way.to->fd.get(), parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL);
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  return ::sendmsg(way.to->fd.get(), &message, MSG_NOSIGNAL);
}

StreamConnection::Step StreamConnection::write_failed(Way& way, int error) {
  if (error == EINTR) return Step::moved;
  if (error == EAGAIN) {
    way.to->writable = false;
    return Step::blocked;
  }
  // That side is gone; what it said before it went is still to be read, and then the error.
  way.broken = true;
  way.to->readable = way.to->hung = true;
  way.out.clear();
  if (way.chain) way.chain->out().clear();
  worker().schedule(*this);
  return Step::blocked;
}

void StreamConnection::delivered(Way& way, std::size_t bytes, bool spliced) {
  way.delivered += bytes;
  auto& counters = shared().counters;
  counters.bytes[static_cast<std::size_t>(way.direction)].fetch_add(bytes, std::memory_order_relaxed);
  if (spliced) counters.spliced.fetch_add(bytes, std::memory_order_relaxed);
}

void StreamConnection::came_in(Way& way, std::size_t bytes) {
  way.read += bytes;
  shared().counters.received[static_cast<std::size_t>(way.direction)].fetch_add(bytes, std::memory_order_relaxed);
}

/// Bytes that a filter sends back go the other way, from the fault's place on.
void StreamConnection::collect_back(Way& way) {
  auto& other = &way == &up_ ? down_ : up_;
  for (auto& [passage, by] : way.chain->take_back()) {
    other.back.push_back({worker().now() + passage.delay, std::move(passage.bytes), std::move(by)});
    worker().schedule(*this);
  }
}

void StreamConnection::deliver_back(Way& way) {
  const auto is_due = [&](const Back& back) {
    return back.due <= worker().now() ||
           std::find(set_->faults.begin(), set_->faults.end(), back.by) == set_->faults.end();
  };
  const auto waiting = std::stable_partition(way.back.begin(), way.back.end(), is_due);
  for (auto back = way.back.begin(); back != waiting; ++back) {
    auto chunk = Chunk::copy_of(back->bytes, way.read, std::min(back->due, worker().now()));
    if (way.chain)
      way.chain->insert(back->by, std::move(chunk), worker().now());
    else
      way.out.push(std::move(chunk));
  }
  way.back.erase(way.back.begin(), waiting);
  if (way.chain) collect_back(way);
}

// --- reading ---

StreamConnection::Step StreamConnection::take(Way& way) {
  if (way.ended || way.broken || !way.from->readable || !way.from->fd) return Step::blocked;
  if (!way.chain && (!way.out.empty() || way.pipe)) return Step::blocked;
  const auto room = way.chain ? way.chain->room() : std::numeric_limits<std::size_t>::max();
  if (room == 0) return Step::blocked;
  const auto allowed = allowance(way);
  if (allowed == 0) {
    retry_ = worker().now() + starved_retry;
    return Step::blocked;
  }
  const auto most = std::min(room, allowed);
  if (!way.bulk || !worker().splices() || way.shut) return take_copied(way, most);
  if (!way.chain) return take_spliced(way, most);
  return way.chain->only_delays() ? take_held(way, most) : take_copied(way, most);
}

StreamConnection::Step StreamConnection::take_spliced(Way& way, std::size_t most) {
  auto pipe = HeldPipe::from(worker().pipes());
  if (!pipe) return take_copied(way, most);
  const auto wanted = std::min<std::size_t>(most, PipePool::pipe_bytes);
  const auto count = pipe->fill_from(way.from->fd.get(), wanted);
  if (count <= 0) return took(way, count, errno);
  came_in(way, static_cast<std::size_t>(count));
  way.bulk = static_cast<std::size_t>(count) >= bulk_bytes / 2;
  way.pipe = std::move(pipe);
  return Step::moved;
}

/// Into a pipe, in which the bytes wait until the faults let them go.
StreamConnection::Step StreamConnection::take_held(Way& way, std::size_t most) {
  const auto wanted = std::min<std::size_t>(most, PipePool::pipe_bytes);
  auto pipe = way.tail.lock();
  const bool begun = pipe != nullptr;
  auto count = begun ? pipe->fill_from(way.from->fd.get(), wanted) : 0;
  // A pipe with bytes in it does not say whether it lacks room or the socket has nothing.
  if (!begun || (count < 0 && errno == EAGAIN)) {
    pipe = HeldPipe::from(worker().pipes());
    if (!pipe) return take_copied(way, most);
    count = pipe->fill_from(way.from->fd.get(), wanted);
  }
  if (count <= 0) return took(way, count, errno);
  const auto size = static_cast<std::size_t>(count);
  way.bulk = size >= (begun ? least_in_pipe : bulk_bytes / 2);
  way.tail = pipe;
  Chunk chunk;
  chunk.pipe = std::move(pipe);
  chunk.size = size;
  chunk.offset = way.read;
  came_in(way, size);
  chunk.arrived = worker().refresh();
  way.chain->push(std::move(chunk), worker().now());
  return Step::moved;
}

StreamConnection::Step StreamConnection::take_copied(Way& way, std::size_t most) {
  // A block of its own saves a copy where much comes at a time; otherwise nothing is held for bytes that go on at once.
  std::shared_ptr<char[]> block;
  std::span<char> room = worker().scratch();
  if (way.chain && way.bulk) {
    block = worker().blocks().take();
    room = {block.get(), block_bytes};
  }
  room = room.first(std::min(most, room.size()));
  const auto count = ::recv(way.from->fd.get(), room.data(), room.size(), 0);
  if (count <= 0) return took(way, count, errno);
  const auto size = static_cast<std::size_t>(count);
  if (size < room.size() && !way.from->hung) way.from->readable = false;
  way.bulk = size >= std::min(bulk_bytes, room.size());
  const auto offset = way.read;
  came_in(way, size);
  if (way.shut) return Step::moved;
  std::string_view bytes(room.data(), size);
  if (way.chain) {
    worker().refresh();
    Chunk chunk;
    if (block && size >= block_bytes / 2) {
      chunk.block = std::move(block);
      chunk.size = size;
      chunk.offset = offset;
      chunk.arrived = worker().now();
    } else {
      chunk = Chunk::copy_of(bytes, offset, worker().now());
    }
    way.chain->push(std::move(chunk), worker().now());
    return Step::moved;
  }
  if (way.to->writable) {
    const auto sent = ::send(way.to->fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) {
      write_failed(way, errno);
      if (way.broken) return Step::moved;
    } else {
      delivered(way, static_cast<std::size_t>(sent));
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  if (!bytes.empty()) way.out.push(Chunk::copy_of(bytes, offset + size - bytes.size(), worker().now()));
  // The short read said that there is no more; epoll will say when there is.
  return bytes.empty() && !way.from->readable ? Step::blocked : Step::moved;
}

/// Reading gave no bytes: there are none now, or never again.
StreamConnection::Step StreamConnection::took(Way& way, long count, int error) {
  if (count < 0 && error == EINTR) return Step::moved;
  if (count < 0 && error == EAGAIN) {
    way.from->readable = false;
    return Step::blocked;
  }
  way.ended = true;
  if (count < 0) way.from->failed = true;
  auto end = Chunk::ending(count == 0 ? StreamEnd::finished : StreamEnd::reset, way.read, worker().now());
  if (way.chain)
    way.chain->push(std::move(end), worker().now());
  else
    way.out.push(std::move(end));
  return Step::moved;
}

}  // namespace leafcutter::node::proxy
