// Blocks that bytes are read into when much comes at a time. They go round: fresh memory from the kernel is zeroed
// first, which costs more than copying the bytes.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace leafcutter::node::proxy {

class BlockPool {
 public:
  static constexpr std::size_t block_bytes = 64 << 10;

  /// Comes back to the pool when the last chunk in it is gone; on the pool's thread, like everything here.
  std::shared_ptr<char[]> take() {
    auto& idle = idle_->blocks;
    std::unique_ptr<char[]> block;
    if (idle.empty()) {
      block = std::make_unique_for_overwrite<char[]>(block_bytes);
    } else {
      block = std::move(idle.back());
      idle.pop_back();
    }
    return {block.release(), [pool = idle_](char* bytes) {
              std::unique_ptr<char[]> back(bytes);
              if (pool->blocks.size() < most_idle) pool->blocks.push_back(std::move(back));
            }};
  }

 private:
  static constexpr std::size_t most_idle = 128;
  struct Idle {
    std::vector<std::unique_ptr<char[]>> blocks;
  };
  std::shared_ptr<Idle> idle_ = std::make_shared<Idle>();
};

}  // namespace leafcutter::node::proxy
