// Loss in bursts (Gilbert 1960, Elliott 1963): two states, a loss probability in each, one step for every datagram.
#pragma once

#include "node/proxy/draws.hpp"

namespace leafcutter::node::proxy {

class GilbertElliott {
 public:
  explicit GilbertElliott(const BurstLoss& model) : model_(model) {}

  /// Whether the next datagram is lost. Begins in the good state.
  bool loses(Draws& draws) {
    if (draws.happens(bad_ ? model_.bad_to_good : model_.good_to_bad)) bad_ = !bad_;
    return draws.happens(bad_ ? model_.loss_when_bad : model_.loss_when_good);
  }
  bool bad() const { return bad_; }

 private:
  BurstLoss model_;
  bool bad_ = false;
};

}  // namespace leafcutter::node::proxy
