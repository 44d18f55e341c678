// gemm-inspect: what a table holds, in words and columns for people.
#pragma once

#include <string>

#include "dispatch/table.h"
#include "kernels/problem.h"

namespace gemm {

// Share of a multiprocessor's warps that are resident at most, 0 to 1; 0 where the registers are not known.
//   blocks = min over shared memory (each block takes 1 KB more), threads, registers (per warp in units of 256) and blocks
double occupancy(const PortfolioKernel& kernel, const DeviceLimits& limits);

// Device, provenance, environment, method.
std::string inspect_header(const Table& table);

// Each kernel with resources, occupancy and the number of points that use it.
std::string inspect_portfolio(const Table& table);

// How good the selector is, in a few lines.
std::string certificate_text(const Certificate& certificate);

// The certificate, and what portfolios of other sizes would reach.
std::string inspect_selector(const Table& table);

// Each point with its winner and what it gains over the better baseline.
std::string inspect_points(const Table& table);

// Why a problem gets its kernel on the table's own GPU: rule, kernel, distance, alternatives. `path` names the table.
std::string inspect_shape(const Table& table, const std::string& path, const Problem& problem);

// "m,n,k[,ops[,batch]]", for example 4096,16,4096,TN. Failure: what is wrong with it.
Result<Problem> problem_from_text(const std::string& text);

}  // namespace gemm
