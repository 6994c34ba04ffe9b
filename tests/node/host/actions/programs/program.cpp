// Stands in for the program itself: the keeper and the workers of the actions under test.
#include "node/host/actions/keeper.hpp"

int main(int argc, char** argv) {
  using namespace leafcutter::node::host;
  return is_host_process(argc, argv) ? run_host_process(argc, argv) : 2;
}
