// The program: its commands are in commands/. A leaf's launcher is this same binary, started again under a name of its
// own, as are the keeper and the workers of host actions; they must begin single-threaded, so they are told apart
// before anything else is set up.
#include <string_view>

#include "commands/commands.hpp"
#include "node/host/actions/keeper.hpp"
#include "node/leaf/launcher.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "leaf-nursery")
    return leafcutter::node::run_nursery(leafcutter::node::nursery_socket);
  if (leafcutter::node::host::is_host_process(argc, argv)) return leafcutter::node::host::run_host_process(argc, argv);
  return leafcutter::commands::run_program(argc, argv);
}
