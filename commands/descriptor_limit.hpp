// How many descriptors the program may have.
#pragma once

namespace leafcutter::commands {

/// As many as the system allows, which most give only when asked: each connection through a proxy takes two. Before an
/// engine is started, and not in a program that starts others, which may count on the usual number.
void raise_descriptor_limit();

}  // namespace leafcutter::commands
