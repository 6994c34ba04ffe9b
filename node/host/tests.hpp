// The self-tests. Each does what a leaf will do and looks at the effect.
#pragma once

#include "node/host/self_test.hpp"

namespace leafcutter::node {

TestReport test_user_namespace();
TestReport test_network_namespace();
TestReport test_mount_proc();
TestReport test_read_only_root();
TestReport test_syscall_notify();
TestReport test_process_read();
TestReport test_pidfd_getfd();
TestReport test_ipc();
TestReport test_time_namespace();
TestReport test_process_limit();

}  // namespace leafcutter::node
