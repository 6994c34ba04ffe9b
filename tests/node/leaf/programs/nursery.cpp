// Stands in for the program's own `leaf-nursery`.
#include <cstring>

#include "node/leaf/launcher.hpp"

int main(int argc, char** argv) {
  if (argc != 2 || std::strcmp(argv[1], "leaf-nursery") != 0) return 64;
  return leafcutter::node::run_nursery(leafcutter::node::nursery_socket);
}
