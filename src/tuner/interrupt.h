// SIGINT and SIGTERM as something that can be waited for and asked about.
#pragma once

namespace gemm {

// From now on both signals are recorded instead of ending the process.
void record_interrupts();

int interrupt_signal();      // the first one that came, or 0
int interrupt_descriptor();  // readable once one has come; -1 before record_interrupts()

}  // namespace gemm
