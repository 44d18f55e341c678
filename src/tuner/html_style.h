// The style sheet and the script of the HTML report.
#pragma once

namespace gemm {

extern const char* const kReportStyle;

// Sorting and filtering. It holds neither "<" nor "&", so that the page is XML too.
extern const char* const kReportScript;

}  // namespace gemm
