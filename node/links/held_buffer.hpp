// The bytes that are on their way through a proxy in one direction. Bytes arrive, are looked at, are allowed to leave
// and leave, in this order; what is not allowed yet is held back, and what has been looked at may be withdrawn.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace leafcutter::node {

class HeldBuffer {
 public:
  explicit HeldBuffer(std::size_t capacity)
      : bytes_(std::make_unique_for_overwrite<char[]>(capacity)), capacity_(capacity) {}

  /// Where the next bytes can arrive; empty when the buffer is full (its bound is what makes back-pressure).
  std::span<char> room() {
    if (begin_ == end_) begin_ = allowed_ = seen_ = end_ = 0;
    if (end_ == capacity_ && begin_ > 0) {
      std::memmove(bytes_.get(), bytes_.get() + begin_, end_ - begin_);
      allowed_ -= begin_;
      seen_ -= begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    return {bytes_.get() + end_, capacity_ - end_};
  }
  bool full() const { return end_ - begin_ == capacity_; }
  bool empty() const { return begin_ == end_; }
  std::size_t size() const { return end_ - begin_; }

  void arrived(std::size_t count) { end_ += count; }

  /// Arrived and not looked at yet.
  std::string_view unseen() const { return {bytes_.get() + seen_, end_ - seen_}; }
  void seen(std::size_t count) { seen_ += count; }

  /// Looked at and not allowed to leave.
  std::size_t held() const { return seen_ - allowed_; }
  void allow() { allowed_ = seen_; }
  void allow_everything() { allowed_ = seen_ = end_; }

  /// Withdraws what is held.
  void drop_held() {
    std::memmove(bytes_.get() + allowed_, bytes_.get() + seen_, end_ - seen_);
    end_ -= held();
    seen_ = allowed_;
  }
  void drop_everything() { begin_ = allowed_ = seen_ = end_ = 0; }

  std::string_view leaving() const { return {bytes_.get() + begin_, allowed_ - begin_}; }
  void left(std::size_t count) {
    begin_ += count;
    total_ += count;
  }

  /// They go nowhere; not counted as having left.
  void discard_leaving() { begin_ = allowed_; }

  /// How many bytes have left, and how many will have when everything looked at has.
  std::uint64_t total() const { return total_; }
  std::uint64_t total_when_seen_left() const { return total_ + (seen_ - begin_); }

 private:
  std::unique_ptr<char[]> bytes_;
  std::size_t capacity_;
  std::size_t begin_ = 0, allowed_ = 0, seen_ = 0, end_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace leafcutter::node
