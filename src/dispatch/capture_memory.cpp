#include "dispatch/capture_memory.h"

#include <algorithm>

namespace gemm {
namespace {

// What a graph holds. Its end may come in a thread of the driver, where nothing may be freed; a flag may be cleared.
struct Hold {
  explicit Hold(std::shared_ptr<std::atomic<bool>> flag) : in_use(std::move(flag)) {}
  ~Hold() { in_use->store(false, std::memory_order_release); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  std::shared_ptr<std::atomic<bool>> in_use;
};

bool is_used(const std::shared_ptr<std::atomic<bool>>& flag) { return flag->load(std::memory_order_acquire); }

// How much of a memory may be lent for `bytes`: who can do with less leaves a quarter to those who cannot, and to those who
// have to do with less.
int64_t end_for(const LentMemory& memory, const CaptureNeed& need, int64_t bytes) {
  return bytes > need.least_bytes ? memory.workspace_bytes() / 4 * 3 : memory.workspace_bytes();
}

}  // namespace

Result<StreamSet*> CaptureMemory::get(Stream stream, uint64_t capture, const CaptureNeed& need, int64_t stream_bytes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (StreamSet* set = find(stream, capture, need.bytes, need.tickets)) return set;
  collect();
  Loan* loan = lend(need, need.bytes);
  std::string why;
  if (!loan) {
    why = grow(need, stream_bytes);
    if (why.empty()) loan = lend(need, need.bytes);
  }
  if (!loan && need.least_bytes < need.bytes) {
    if (StreamSet* set = find(stream, capture, need.least_bytes, need.tickets)) return set;
    loan = lend(need, need.least_bytes);
  }
  if (!loan) {
    refused_ += capture != last_refused_;
    last_refused_ = capture;
    return Failure{why};
  }
  loan->in_use->store(true, std::memory_order_release);
  // From here on the flag is cleared when the hold ends, also where no graph takes it.
  const Result<bool> kept = device_.keep_with_capture(stream, std::make_shared<Hold>(loan->in_use));
  if (!kept) return Failure{kept.error()};
  loan->stream = stream;
  loan->capture = capture;
  return loan->piece.set.get();
}

// The latest first, as they are the ones that are asked for.
StreamSet* CaptureMemory::find(Stream stream, uint64_t capture, int64_t bytes, int64_t tickets) const {
  const auto found = std::find_if(loans_.rbegin(), loans_.rend(), [&](const Loan& loan) {
    return loan.capture == capture && loan.stream == stream && is_used(loan.in_use) && loan.piece.tickets >= tickets &&
           loan.piece.set->workspace_bytes >= bytes;
  });
  return found == loans_.rend() ? nullptr : found->piece.set.get();
}

CaptureMemory::Loan* CaptureMemory::lend(const CaptureNeed& need, int64_t bytes) {
  for (LentMemory& memory : memories_) {
    std::optional<LentMemory::Piece> piece = memory.lend(bytes, need.tickets, end_for(memory, need, bytes));
    if (!piece) continue;
    // Threads may capture into one stream together.
    piece->set->several_threads = true;
    loans_.push_back({&memory, std::move(*piece), nullptr, 0, std::make_shared<std::atomic<bool>>(false)});
    return &loans_.back();
  }
  return nullptr;
}

void CaptureMemory::collect() {
  const size_t back = std::erase_if(loans_, [](const Loan& loan) {
    if (is_used(loan.in_use)) return false;
    loan.from->take_back(loan.piece);
    return true;
  });
  returned_ += back;
  if (back > 0) refused_ = 0;
}

std::string CaptureMemory::grow(const CaptureNeed& need, int64_t stream_bytes) {
  const bool is_too_large = std::none_of(memories_.begin(), memories_.end(), [&](const LentMemory& memory) {
    return need.bytes <= end_for(memory, need, need.bytes);
  });
  const bool graphs_stay = loans_.size() + refused_ > returned_;
  const int64_t limit = kMostStreams * stream_bytes;
  if (total() + stream_bytes > limit) memories_.remove_if([](const LentMemory& memory) { return memory.is_unused(); });
  if (!(is_too_large || need.indispensable || graphs_stay) || total() + stream_bytes > limit)
    return "captured graphs have " + std::to_string(total()) + " bytes of workspace already";
  Result<LentMemory> made = LentMemory::make(device_, stream_bytes);
  // On a GPU that is nearly full there may still be enough for this one.
  if (!made) made = LentMemory::make(device_, need.least_bytes);
  if (!made) return made.error();
  memories_.push_back(std::move(*made));
  return {};
}

int64_t CaptureMemory::total() const {
  int64_t sum = 0;
  for (const LentMemory& memory : memories_) sum += memory.workspace_bytes();
  return sum;
}

}  // namespace gemm
