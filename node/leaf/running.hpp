// Whether anything in the leaf is at work at this moment: a thread that runs, waits for a processor or for a disk. On a
// busy host a service may have got no processor for a while; that nothing moved meanwhile does not mean that it is at
// rest.
#pragma once

namespace leafcutter::node {

/// Looks at every thread of the leaf (its own /proc) but the calling one.
bool anything_runs();

}  // namespace leafcutter::node
