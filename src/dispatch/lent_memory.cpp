#include "dispatch/lent_memory.h"

#include <algorithm>

#include "kernels/launch.h"

namespace gemm {
namespace {

// Workspace for each byte of tickets: a tile that is split in two leaves 8 bytes of workspace for each of its elements, and
// has a ticket of 4 bytes. Tiles of fewer than 16 elements are no use to anyone.
constexpr int64_t kWorkspacePerTicketByte = 32;
constexpr int64_t kTicketBytes = sizeof(unsigned);

int64_t aligned(int64_t bytes) { return (bytes + FirstFit::kAlignment - 1) / FirstFit::kAlignment * FirstFit::kAlignment; }

}  // namespace

std::optional<int64_t> FirstFit::take(int64_t bytes, int64_t end) {
  bytes = std::max<int64_t>(1, bytes);  // places without length would have the same beginning as others
  int64_t begin = 0;
  for (const auto& [taken_begin, taken_end] : taken_) {
    if (begin + bytes <= taken_begin) break;
    begin = aligned(taken_end);
  }
  if (begin + bytes > end) return std::nullopt;
  taken_[begin] = begin + bytes;
  return begin;
}

Result<LentMemory> LentMemory::make(Device& device, int64_t workspace_bytes) {
  // Any product's tickets fit, the longest ones too.
  const int64_t ticket_bytes = aligned(std::max(kMaxTickets * kTicketBytes, workspace_bytes / kWorkspacePerTicketByte));
  const Result<Buffer> memory = device.allocate(static_cast<size_t>(ticket_bytes + workspace_bytes));
  if (!memory) return Failure{memory.error()};
  device.set_words_now(memory->as(), 0, static_cast<size_t>(ticket_bytes / kTicketBytes));
  return LentMemory(*memory, workspace_bytes, ticket_bytes);
}

std::optional<LentMemory::Piece> LentMemory::lend(int64_t bytes, int64_t tickets, int64_t end) {
  // A piece has a place among the tickets even where it needs none.
  const std::optional<int64_t> tickets_at = tickets_.take(tickets * kTicketBytes, ticket_bytes_);
  if (!tickets_at) return std::nullopt;
  const std::optional<int64_t> workspace_at = workspace_.take(bytes, std::min(end, workspace_bytes_));
  if (!workspace_at) {
    tickets_.give_back(*tickets_at);
    return std::nullopt;
  }
  auto set = std::make_shared<StreamSet>();
  set->memory = memory_;
  set->tickets = reinterpret_cast<unsigned*>(memory_.as<char>() + *tickets_at);
  set->workspace = reinterpret_cast<float*>(memory_.as<char>() + ticket_bytes_ + *workspace_at);
  set->workspace_bytes = bytes;
  return Piece{std::move(set), tickets, *workspace_at, *tickets_at};
}

void LentMemory::take_back(const Piece& piece) {
  workspace_.give_back(piece.workspace_at);
  tickets_.give_back(piece.tickets_at);
}

}  // namespace gemm
