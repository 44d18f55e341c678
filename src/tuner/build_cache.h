// A device that remembers what it has built lately, and builds ahead in the background.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "kernels/device.h"

namespace gemm {

class BuildCache : public Device {
 public:
  // A loaded kernel takes about 0.3 MB of host memory; a full tune builds some thousands.
  static constexpr size_t kMostLoaded = 1024;

  // Builds with `threads` threads in the background; 0 builds only when asked for. Of more than `most_loaded` kernels the
  // longest unused are let go; they are built again, mostly from the disk cache, when they are asked for.
  BuildCache(std::unique_ptr<Device> device, int threads, size_t most_loaded = kMostLoaded);
  ~BuildCache() override;

  // Queues a build, so that a later build() of the same kernel finds it done or under way.
  void prefetch(const KernelSpec& spec);

  // Queues these before all others, in their order: they are about to be asked for, one after the other.
  void prefetch_first(const std::vector<KernelSpec>& specs);

  // Milliseconds that compiling and loading took; 0 for a kernel that was not built here.
  double build_ms(const KernelSpec& spec);

  const DeviceInfo& info() const override { return device_->info(); }
  void with_current(const std::function<void()>& body) override { device_->with_current(body); }
  Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) override;
  void use_cubins(const std::shared_ptr<const CubinStore>& cubins) override { device_->use_cubins(cubins); }
  Result<Buffer> allocate(size_t bytes) override { return device_->allocate(bytes); }
  int64_t free_bytes() const override { return device_->free_bytes(); }
  void copy_to_device(void* device, const void* host, size_t bytes) override {
    device_->copy_to_device(device, host, bytes);
  }
  void copy_to_host(void* host, const void* device, size_t bytes) override { device_->copy_to_host(host, device, bytes); }
  void set_words(void* device, uint32_t word, size_t count, Stream stream) override {
    device_->set_words(device, word, count, stream);
  }
  void set_words_now(void* device, uint32_t word, size_t count) override { device_->set_words_now(device, word, count); }
  uint64_t capture_id(Stream stream) override { return device_->capture_id(stream); }
  Result<bool> keep_with_capture(Stream stream, std::shared_ptr<void> thing) override {
    return device_->keep_with_capture(stream, std::move(thing));
  }
  std::shared_ptr<Marker> make_marker() override { return device_->make_marker(); }
  void mark(Marker& marker, Stream stream) override { device_->mark(marker, stream); }
  void wait_for(const Marker& marker, Stream stream) override { device_->wait_for(marker, stream); }
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override { return device_->encode_tensor_map(spec); }
  void move_tensor_map(TensorMap& map, const float* data) override { device_->move_tensor_map(map, data); }
  Result<bool> launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args, size_t args_bytes,
                      Stream stream) override {
    return device_->launch(kernel, grid, threads, shared_bytes, args, args_bytes, stream);
  }
  void synchronize(Stream stream) override { device_->synchronize(stream); }
  std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) override {
    return device_->measure(workloads, plan);
  }

 private:
  using Built = std::shared_ptr<Result<std::shared_ptr<Kernel>>>;
  struct Entry {
    enum class State { idle, queued, building, done } state = State::idle;
    KernelSpec spec;
    Built result;
    double ms = 0;
    unsigned long long last_use = 0;
  };
  void build_in_background();
  void build_entry(Entry& entry, std::unique_lock<std::mutex>& lock);
  std::vector<Built> take_unused();  // beyond the most that may be loaded, the longest unused first

  std::unique_ptr<Device> device_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Entry> entries_;  // by kernel name
  std::deque<Entry*> queue_;
  size_t most_loaded_;
  size_t loaded_ = 0;  // entries that are done
  unsigned long long uses_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gemm
