// Bytes on their way through a link, with when they arrived and where in the stream they were; and queues of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "node/proxy/held_pipe.hpp"
#include "node/proxy/pacer.hpp"

namespace leafcutter::node::proxy {

struct ArmedFault;

/// What ends a stream. It travels in order behind the bytes before it.
enum class StreamEnd : std::uint8_t {
  none,          ///< these are bytes
  finished,      ///< FIN: this direction has ended
  reset,         ///< RST from where the bytes came from
  cut_close,     ///< a fault ends the whole connection, orderly ...
  cut_reset,     ///< ... or with resets on both sides,
  cut_client,    ///< or with one on the client's side
  cut_upstream,  ///< or the upstream's
};

/// A view into a block that is shared by the chunks cut from it; or the next bytes of a pipe, after those of the chunks
/// ahead of it.
struct Chunk {
  std::shared_ptr<char[]> block;
  std::shared_ptr<HeldPipe> pipe;  ///< instead of the block
  std::size_t begin = 0, size = 0;
  std::uint64_t offset = 0;  ///< of the first byte, as it was read from the sender
  Time arrived{};
  StreamEnd end = StreamEnd::none;
  std::shared_ptr<const ArmedFault> cause;  ///< of an end by a fault: which

  static Chunk copy_of(std::string_view bytes, std::uint64_t offset, Time arrived) {
    Chunk chunk;
    chunk.block = std::make_shared_for_overwrite<char[]>(bytes.size());
    std::memcpy(chunk.block.get(), bytes.data(), bytes.size());
    chunk.size = bytes.size();
    chunk.offset = offset;
    chunk.arrived = arrived;
    return chunk;
  }
  static Chunk ending(StreamEnd end, std::uint64_t offset, Time arrived,
                      std::shared_ptr<const ArmedFault> cause = nullptr) {
    Chunk chunk;
    chunk.offset = offset;
    chunk.arrived = arrived;
    chunk.end = end;
    chunk.cause = std::move(cause);
    return chunk;
  }

  /// Not of a chunk in a pipe.
  std::string_view bytes() const { return {block.get() + begin, size}; }
  bool is_end() const { return end != StreamEnd::none; }

  /// Takes the first `count` bytes away and returns them.
  Chunk take_front(std::size_t count) {
    Chunk front = *this;
    front.size = count;
    begin += count;
    size -= count;
    offset += count;
    return front;
  }

  /// Into a block, if it is in a pipe. Those ahead of it in the same pipe have been taken.
  void load() {
    if (!pipe) return;
    block = std::make_shared_for_overwrite<char[]>(size);
    begin = 0;
    if (!pipe->read(block.get(), size)) size = 0;
    pipe.reset();
  }

  /// Bytes that may be changed: nobody else's.
  char* own_bytes() {
    if (block.use_count() > 1 || begin != 0) *this = replaced_by_copy();
    return block.get() + begin;
  }

 private:
  Chunk replaced_by_copy() const {
    auto copy = copy_of(bytes(), offset, arrived);
    copy.end = end;
    copy.cause = cause;
    return copy;
  }
};

/// What a chunk is charged beyond its bytes, so that many small ones count.
constexpr std::size_t chunk_overhead = 160;

/// First in, first out; nothing allocated while it has never held anything.
class ChunkQueue {
 public:
  bool empty() const { return begin_ == chunks_.size(); }
  std::size_t count() const { return chunks_.size() - begin_; }
  /// Bytes, and the overhead of their chunks.
  std::size_t cost() const { return bytes_ + count() * chunk_overhead; }
  std::size_t bytes() const { return bytes_; }
  Chunk& front() { return chunks_[begin_]; }
  const Chunk& front() const { return chunks_[begin_]; }
  const Chunk& at(std::size_t index) const { return chunks_[begin_ + index]; }
  void load() {
    for (auto i = begin_; i < chunks_.size(); ++i) chunks_[i].load();
  }

  void push(Chunk chunk) {
    bytes_ += chunk.size;
    chunks_.push_back(std::move(chunk));
  }
  Chunk pop() {
    Chunk chunk = std::move(chunks_[begin_++]);
    bytes_ -= chunk.size;
    compact();
    return chunk;
  }
  Chunk pop_front_bytes(std::size_t count) {
    bytes_ -= count;
    return front().take_front(count);
  }
  /// Takes the first `count` bytes away, and chunks with none.
  void drop(std::size_t count) {
    do {
      const auto part = std::min(count, front().size);
      count -= part;
      if (part == front().size)
        pop();
      else
        pop_front_bytes(part);
    } while (count > 0);
  }
  void clear() {
    chunks_.clear();
    begin_ = bytes_ = 0;
  }

 private:
  void compact() {
    if (begin_ == chunks_.size()) {
      begin_ = 0;
      if (chunks_.capacity() > 64)
        std::vector<Chunk>().swap(chunks_);
      else
        chunks_.clear();
    } else if (begin_ >= 64 && begin_ * 2 >= chunks_.size()) {
      chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<std::ptrdiff_t>(begin_));
      begin_ = 0;
    }
  }
  std::vector<Chunk> chunks_;
  std::size_t begin_ = 0, bytes_ = 0;
};

}  // namespace leafcutter::node::proxy
