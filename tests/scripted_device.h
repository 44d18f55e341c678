// An emulated device that remembers its launches, can leave them out, and plays captures: what a graph under capture keeps
// lives as long as the Graph that end_capture returns.
#pragma once

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "emulator/emulated_device.h"

namespace gemm::test {

class ScriptedDevice : public Device {
 public:
  struct Graph {
    std::vector<std::shared_ptr<void>> kept;
  };
  struct Launch {
    Stream stream = nullptr;
    const Kernel* kernel = nullptr;
    bool is_reduction = false;
    TileArgs args{};  // of kernels that have them
  };

  explicit ScriptedDevice(bool runs_kernels, EmulatorOptions options = default_emulator_options())
      : runs_kernels_(runs_kernels), inner_(make_emulated_device(std::move(options))) {}

  void begin_capture(Stream stream, uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    captures_[stream] = {number, std::make_shared<Graph>()};
  }
  std::shared_ptr<Graph> end_capture(Stream stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<Graph> graph = captures_.at(stream).second;
    captures_.erase(stream);
    return graph;
  }
  std::vector<Launch> launches() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return launches_;
  }
  void remember_launches(bool on) { remembers_ = on; }
  // Lets other threads run behind each launch, so that launches mix where nothing keeps them together.
  void yield_after_launches() { yields_ = true; }
  int synchronizations() const { return synchronizations_; }
  // Streams that were filled, marked or waited on.
  std::vector<Stream> touched() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return touched_;
  }

  const DeviceInfo& info() const override { return inner_->info(); }
  Result<std::shared_ptr<Kernel>> build(const KernelSpec& spec) override {
    Result<std::shared_ptr<Kernel>> built = inner_->build(spec);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (built) built_.push_back(*built);
    return built;
  }
  // Kernels that somebody still holds, and so would be loaded on a GPU.
  std::ptrdiff_t loaded_kernels() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::count_if(built_.begin(), built_.end(), [](const auto& kernel) { return !kernel.expired(); });
  }
  Result<Buffer> allocate(size_t bytes) override { return inner_->allocate(bytes); }
  int64_t free_bytes() const override { return inner_->free_bytes(); }
  void copy_to_device(void* device, const void* host, size_t bytes) override { inner_->copy_to_device(device, host, bytes); }
  void copy_to_host(void* host, const void* device, size_t bytes) override { inner_->copy_to_host(host, device, bytes); }
  void set_words(void* device, uint32_t word, size_t count, Stream stream) override {
    touch(stream);
    inner_->set_words(device, word, count, stream);
  }
  void set_words_now(void* device, uint32_t word, size_t count) override { inner_->set_words_now(device, word, count); }
  uint64_t capture_id(Stream stream) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = captures_.find(stream);
    return found == captures_.end() ? 0 : found->second.first;
  }
  Result<bool> keep_with_capture(Stream stream, std::shared_ptr<void> thing) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = captures_.find(stream);
    if (found == captures_.end()) return Failure{"nothing is being captured"};
    found->second.second->kept.push_back(std::move(thing));
    return true;
  }
  std::shared_ptr<Marker> make_marker() override { return inner_->make_marker(); }
  void mark(Marker&, Stream stream) override { touch(stream); }
  void wait_for(const Marker&, Stream stream) override { touch(stream); }
  Result<TensorMap> encode_tensor_map(const TensorMapSpec& spec) override { return inner_->encode_tensor_map(spec); }
  void move_tensor_map(TensorMap& map, const float* data) override { inner_->move_tensor_map(map, data); }
  Result<bool> launch(const Kernel& kernel, Grid grid, int threads, int shared_bytes, const void* args, size_t args_bytes,
                      Stream stream) override {
    if (remembers_) {
      Launch launch{stream, &kernel, args_bytes == sizeof(ReduceArgs), {}};
      if (args_bytes == sizeof(TileArgs) || args_bytes == sizeof(TmaTileArgs))
        launch.args = *static_cast<const TileArgs*>(args);
      const std::lock_guard<std::mutex> lock(mutex_);
      launches_.push_back(launch);
    }
    if (yields_) std::this_thread::yield();
    if (!runs_kernels_) return true;
    return inner_->launch(kernel, grid, threads, shared_bytes, args, args_bytes, stream);
  }
  void synchronize(Stream) override { ++synchronizations_; }
  std::vector<std::vector<double>> measure(const std::vector<Workload>& workloads, const MeasurePlan& plan) override {
    return inner_->measure(workloads, plan);
  }

 private:
  void touch(Stream stream) {
    const std::lock_guard<std::mutex> lock(mutex_);
    touched_.push_back(stream);
  }

  const bool runs_kernels_;
  bool remembers_ = true;
  bool yields_ = false;
  std::unique_ptr<Device> inner_;
  std::mutex mutex_;
  std::map<Stream, std::pair<uint64_t, std::shared_ptr<Graph>>> captures_;
  std::vector<std::weak_ptr<Kernel>> built_;
  std::vector<Launch> launches_;
  std::vector<Stream> touched_;
  std::atomic<int> synchronizations_{0};
};

}  // namespace gemm::test
