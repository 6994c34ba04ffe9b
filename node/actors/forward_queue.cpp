#include "node/actors/forward_queue.hpp"

#include <algorithm>

#include "protocols/event.hpp"

namespace leafcutter::node {

namespace {

/// How many executions that are over are remembered; late batches come within a leaf's own grace, far fewer leaves
/// later.
constexpr std::size_t remembered = 4096;

}  // namespace

ForwardQueue::ForwardQueue(Options options) : options_(std::move(options)) {}

base::Status ForwardQueue::recover() {
  for (const auto& path : spool_files(options_.folder)) {
    auto file = SpoolFile::recover(path);
    if (!file) {
      if (file.error().code == base::ErrorCode::io) return file.error();
      ::unlink(path.c_str());  // no whole record: nobody was told that anything in it is stored
      continue;
    }
    const auto& last = file->batches().back().header;
    const std::string execution = last.execution;
    Stream stream{std::move(*file), last.base + last.count, last.last, 0, 0, {}};
    spooled_ += stream.file.bytes();
    const auto [at, added] = streams_.emplace(execution, std::move(stream));
    if (added && !at->second.ended) close(execution);
    at->second.file.seal();
  }
  return base::ok();
}

base::Expected<ForwardQueue::Stored> ForwardQueue::store(const protocols::BatchHeader& header,
                                                         const std::string& chunk) {
  if (gone_.contains(header.execution)) {
    return Stored{{header.execution, header.base + header.count, true}, false};
  }
  auto at = streams_.find(header.execution);
  if (at == streams_.end()) {
    if (header.base > 0) return Stored{{header.execution, 0, false}, false};
    auto file = SpoolFile::create(options_.folder, header.execution);
    if (!file) return file.error();
    at = streams_.emplace(header.execution, Stream{std::move(*file), 0, false, 0, 0, {}}).first;
  }
  auto& stream = at->second;
  if (stream.ended) return Stored{{header.execution, stream.next, true}, false};
  const auto before = stream.file.bytes();
  auto kept = header;
  const std::string* bytes = &chunk;
  std::string tail;
  switch (protocols::classify(header, stream.next)) {
    case protocols::Intake::gap:
    case protocols::Intake::duplicate:
      // The end may come with a batch whose events are there already (the leaf cut its batches anew).
      if (!(header.last && header.base + header.count == stream.next)) {
        return Stored{{header.execution, stream.next, false}, false};
      }
      kept = {header.execution, stream.next, 0, true};
      bytes = &tail;
      break;
    case protocols::Intake::store: break;
    case protocols::Intake::store_tail: {
      auto events = protocols::decode_chunks(chunk);
      if (!events) return events.error();
      const auto had = stream.next - header.base;
      if (events->size() != header.count) {
        return base::Error{base::ErrorCode::protocol, "a batch of " + std::to_string(events->size()) +
                                                          " events announces " + std::to_string(header.count)};
      }
      events->erase(events->begin(), events->begin() + static_cast<std::ptrdiff_t>(had));
      tail = protocols::encode_chunk(*events);
      kept.base = stream.next;
      kept.count = events->size();
      bytes = &tail;
      break;
    }
  }
  const auto appended = stream.file.append(kept, *bytes);
  if (!appended) return appended.error();
  spooled_ += stream.file.bytes() - before;
  stream.next = kept.base + kept.count;
  stream.ended = kept.last;
  if (stream.ended) stream.file.seal();
  return Stored{{header.execution, stream.next, stream.ended}, true};
}

std::uint64_t ForwardQueue::close(const std::string& execution) {
  const auto at = streams_.find(execution);
  if (at == streams_.end()) {
    const auto gone = gone_.find(execution);
    return gone == gone_.end() ? 0 : gone->second;
  }
  auto& stream = at->second;
  if (!stream.ended) {
    // An empty chunk that is the last: the stream is over, and the leaf never said so.
    const auto before = stream.file.bytes();
    // On a full disk the mark is kept in memory only; recovery would make it again.
    const protocols::BatchHeader mark{execution, stream.next, 0, true};
    if (!stream.file.append(mark, {})) stream.file.mark(mark);
    spooled_ += stream.file.bytes() - before;
    stream.ended = true;
    stream.file.seal();
  }
  return stream.next;
}

void ForwardQueue::discard(const std::string& execution) {
  remember(execution, 0);
  const auto at = streams_.find(execution);
  if (at != streams_.end()) erase(at);
}

void ForwardQueue::remember(const std::string& execution, std::uint64_t events) {
  if (!gone_.emplace(execution, events).second) return;
  gone_order_.push_back(execution);
  if (gone_order_.size() > remembered) {
    gone_.erase(gone_order_.front());
    gone_order_.pop_front();
  }
}

std::size_t ForwardQueue::in_flight_bytes(const Stream& stream) const {
  std::size_t sum = 0;
  for (auto i = stream.acked; i < stream.sent; ++i) sum += stream.file.batches()[i].bytes;
  return sum;
}

void ForwardQueue::erase(Streams::iterator at) {
  flying_ -= in_flight_bytes(at->second);
  spooled_ -= at->second.file.bytes();
  at->second.file.remove();
  streams_.erase(at);
}

std::optional<ForwardQueue::Outgoing> ForwardQueue::next() {
  if (flying_ >= options_.window_bytes) return std::nullopt;
  auto at = streams_.upper_bound(turn_);
  for (std::size_t looked = 0; looked < streams_.size(); ++looked, ++at) {
    if (at == streams_.end()) at = streams_.begin();
    auto& stream = at->second;
    const auto& batches = stream.file.batches();
    if (stream.sent >= batches.size() || stream.sent - stream.acked >= options_.window_batches) continue;
    const auto& batch = batches[stream.sent];
    auto chunk = stream.file.read(batch);
    if (!chunk) {
      // Its bytes are lost, so the execution is: ended as if its leaf had died, and the coordinator runs it again.
      discard(std::string(at->first));
      return next();
    }
    turn_ = at->first;
    return Outgoing{protocols::encode(batch.header), std::move(*chunk)};
  }
  return std::nullopt;
}

void ForwardQueue::sent(Instant now) {
  const auto at = streams_.find(turn_);
  if (at == streams_.end()) return;
  auto& stream = at->second;
  if (stream.sent == stream.acked) stream.progress = now;
  flying_ += stream.file.batches()[stream.sent].bytes;
  ++stream.sent;
}

void ForwardQueue::acknowledged(const protocols::Ack& ack, Instant now) {
  const auto at = streams_.find(ack.execution);
  if (at == streams_.end()) return;
  auto& stream = at->second;
  if (ack.complete) {
    remember(ack.execution, stream.next);
    erase(at);
    return;
  }
  const auto& batches = stream.file.batches();
  std::size_t acked = 0;
  while (acked < batches.size() && !batches[acked].header.last &&
         batches[acked].header.base + batches[acked].header.count <= ack.next) {
    ++acked;
  }
  if (acked == stream.acked) return;
  flying_ -= in_flight_bytes(stream);
  if (acked < stream.acked) stream.sent = acked;  // the receiver was restarted and has less than it had
  stream.acked = acked;
  stream.sent = std::max(stream.sent, acked);
  stream.progress = now;
  flying_ += in_flight_bytes(stream);
}

void ForwardQueue::tick(Instant now) {
  for (auto& [execution, stream] : streams_) {
    if (stream.sent == stream.acked || now - stream.progress < options_.silence) continue;
    flying_ -= in_flight_bytes(stream);
    stream.sent = stream.acked;
    stream.progress = now;
  }
}

bool ForwardQueue::in_flight() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const auto& entry) { return entry.second.sent != entry.second.acked; });
}

}  // namespace leafcutter::node
