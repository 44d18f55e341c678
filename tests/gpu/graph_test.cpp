// Products in CUDA graphs on GPU 0: first calls in every capture mode, memory over many captures, replays beside other work.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <optional>
#include <thread>

#include "dispatch/selector.h"
#include "dispatch_cases.h"
#include "gemm/gemm.hpp"

namespace gemm::test {
namespace {

void check_cuda(cudaError_t error) {
  if (error != cudaSuccess) throw Error(std::string("CUDA: ") + cudaGetErrorString(error));
}

class OwnStream {
 public:
  OwnStream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~OwnStream() { cudaStreamDestroy(stream_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void wait() const { check_cuda(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// A captured graph, and its executable from instantiate() on.
class Graph {
 public:
  Graph(cudaStream_t stream, cudaStreamCaptureMode mode, const std::function<void()>& body) {
    check_cuda(cudaStreamBeginCapture(stream, mode));
    body();
    check_cuda(cudaStreamEndCapture(stream, &graph_));
  }
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
    if (graph_) cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  size_t nodes() const {
    size_t count = 0;
    check_cuda(cudaGraphGetNodes(graph_, nullptr, &count));
    return count;
  }
  void instantiate() { check_cuda(cudaGraphInstantiate(&executable_, graph_, 0)); }
  void launch(cudaStream_t stream) { check_cuda(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// A product with its matrices, alpha 1 and beta 0 unless `c` says otherwise, on a stream.
class Product {
 public:
  Product(Device& device, const ApiCase& c)
      : device_(device),
        c_(c),
        a_(matrix(c.problem.rows_a(), c.problem.columns_a(), c.problem.lda, c.problem.stride_a, c.problem.extent_a(), 1)),
        b_(matrix(c.problem.rows_b(), c.problem.columns_b(), c.problem.ldb, c.problem.stride_b, c.problem.extent_b(), 2)),
        before_(c_before(c)),
        device_a_(upload(device, a_, 0)),
        device_b_(upload(device, b_, 0)),
        scalars_(device.allocate(8).value_or_throw()),
        out_(device, before_, 64, 0) {
    const float scalars[] = {c.alpha, c.beta};
    device.copy_to_device(scalars_.as(), scalars, sizeof scalars);
    const Problem& p = c.problem;
    array_a_ = pointer_array(device, device_a_.as<float>(), p.stride_a, p.batch);
    array_b_ = pointer_array(device, device_b_.as<float>(), p.stride_b, p.batch);
    array_c_ = pointer_array(device, out_.data(), p.stride_c, p.batch);
  }

  void enqueue(gemm_context_t* context, cudaStream_t stream) {
    const gemm_problem_t problem = c_problem(c_.problem);
    const auto place = c_.device_scalars ? GEMM_SCALARS_DEVICE : GEMM_SCALARS_HOST;
    const float host[] = {c_.alpha, c_.beta};
    const float* scalars = c_.device_scalars ? scalars_.as<float>() : host;
    const auto on = reinterpret_cast<gemm_stream_t>(stream);
    const gemm_status_t status =
        c_.arrays ? gemm_sgemm_batched_ex(context, on, &problem, place, scalars, array_a_.as<const float*>(),
                                          array_b_.as<const float*>(), scalars + 1, array_c_.as<float*>())
                  : gemm_sgemm_ex(context, on, &problem, place, scalars, device_a_.as<float>(), device_b_.as<float>(),
                                  scalars + 1, out_.data());
    if (status != GEMM_SUCCESS) throw Error(gemm_last_error());
  }

  // What is wrong with C, or an empty string; poisons C for the next run.
  std::string check_and_poison() {
    HostMatrix after = before_;
    std::string why = out_.read(after);
    ProductCase expected{{}, c_.problem, c_.alpha, c_.beta};
    if (why.empty()) why = why_wrong(expected, a_, b_, before_, after);
    if (c_.beta == 0) device_.set_words(out_.data(), bits(kNan), after.data.size(), nullptr);
    device_.synchronize(nullptr);
    return why;
  }

 private:
  HostMatrix matrix(int64_t rows, int64_t columns, int64_t ld, int64_t stride, int64_t extent, unsigned seed) const {
    return random_matrix(rows, columns, ld, stride, c_.problem.batch, extent, false, seed);
  }

  Device& device_;
  ApiCase c_;
  HostMatrix a_, b_, before_;
  Buffer device_a_, device_b_, scalars_, array_a_, array_b_, array_c_;
  GuardedC out_;
};

class GpuGraphs : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    if (cuda_device_count(&why) == 0) GTEST_SKIP() << "no GPU: " << why;
    check_cuda(cudaSetDevice(0));
  }
  // A context that has served nothing yet, on a device that has loaded nothing.
  static Handle fresh() {
    ContextOptions options;
    options.find_table = false;
    return Handle(make_context(open_cuda_device(0).value_or_throw(), options));
  }
  static Device& device_of(const Handle& handle) { return handle.get()->context.device(); }
};

struct Kind {
  const char* name;
  ApiCase c;
  std::optional<Choice> choice;  // that the table has; none: no table
  bool cublas = false;
  size_t nodes = 1;  // that the graph has; 0: cuBLAS's own affair
};

std::vector<Kind> kinds() {
  const Problem p = packed_problem(68, 72, 520);
  const Problem batched = packed_problem(36, 33, 70, Op::T, Op::N, 3);
  ApiCase found{batched};
  found.device_scalars = found.arrays = true;
  const KernelConfig async = emulated_configs()[2], tma = emulated_configs()[8], specialized = emulated_configs()[10];
  return {{"default", {p}, {}},
          {"ticket", {p}, Choice{emulated_configs().front(), 4, Reduction::ticket}},
          {"kernel", {p}, Choice{emulated_configs().front(), 4, Reduction::kernel}, false, 2},
          {"cluster", {p}, Choice{async, 4, Reduction::cluster}},
          {"tma", {p}, Choice{tma, 2, Reduction::ticket}},
          {"stream_k", {packed_problem(900, 1100, 300)}, Choice{specialized, 1, Reduction::stream_k}},
          {"relayout",
           {packed_problem(301, 203, 170, Op::T, Op::N)},
           Choice{specialized, 1, Reduction::ticket, Relayout::ab},
           false,
           2},
          {"pointers", {found}, {}},
          {"scale", {packed_problem(68, 72, 0)}, {}},
          {"cublas", {p}, Choice{emulated_configs().front(), 1, Reduction::ticket}, true, 0}};
}

void load_table_for(const Handle& handle, const Kind& kind) {
  if (!kind.choice) return;
  const TemporaryFolder folder;
  Table table = table_of(handle.get()->context.device().info(), *kind.choice, {kind.c.problem});
  for (TablePoint& point : table.points) point.use_cublas = kind.cublas;
  save_table(table, folder.file("table.json")).value_or_throw();
  if (gemm_load_table(handle.get(), folder.file("table.json").c_str()) != GEMM_SUCCESS) throw Error(gemm_last_error());
}

TEST_F(GpuGraphs, TheFirstCallOfItsKindInEveryMode) {
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed})
    for (const Kind& kind : kinds()) {
      SCOPED_TRACE(std::string(kind.name) + ", mode " + std::to_string(mode));
      const Handle handle = fresh();
      load_table_for(handle, kind);
      Product product(device_of(handle), kind.c);
      const OwnStream captured, replayed;
      Graph graph(captured, mode, [&] { product.enqueue(handle.get(), captured); });
      if (kind.nodes > 0) {
        EXPECT_EQ(graph.nodes(), kind.nodes);
      }
      graph.instantiate();
      for (int replay = 0; replay < 2; ++replay) {
        graph.launch(replayed);
        replayed.wait();
        EXPECT_EQ(product.check_and_poison(), "") << "replay " << replay;
      }
      if (kind.choice && !kind.cublas) {
        EXPECT_NE(explanation(handle.get(), kind.c.problem).find("rule       exact"), std::string::npos)
            << explanation(handle.get(), kind.c.problem);
      }
    }
}

// What another thread must not do in the default mode while this one captures, our calls there do all the same.
TEST_F(GpuGraphs, OtherThreadsMakeFirstCallsMeanwhile) {
  const Handle handle = fresh();
  const Kind split = kinds()[1];
  load_table_for(handle, split);
  Product captured_product(device_of(handle), split.c), other_product(device_of(handle), split.c);
  Product other_kind(device_of(handle), {packed_problem(100, 40, 64, Op::T, Op::T)});
  std::optional<Handle> another;  // whose end waits for the GPU, which a capture forbids
  const OwnStream captured, other;
  Graph graph(captured, cudaStreamCaptureModeGlobal, [&] {
    std::thread([&] {
      other_product.enqueue(handle.get(), other);
      other_kind.enqueue(handle.get(), other);
      another.emplace(fresh());
    }).join();
    captured_product.enqueue(handle.get(), captured);
  });
  other.wait();
  EXPECT_EQ(other_product.check_and_poison(), "");
  EXPECT_EQ(other_kind.check_and_poison(), "");
  graph.instantiate();
  graph.launch(other);
  other.wait();
  EXPECT_EQ(captured_product.check_and_poison(), "");
}

int64_t free_bytes() {
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

TEST_F(GpuGraphs, ThousandCapturesTakeNoMoreMemory) {
  // A split of ours, one that needs so much that graphs on their way leave none to the next, and cuBLAS.
  for (const size_t which : {size_t{1}, size_t{5}, size_t{8}}) {
    const Kind kind = kinds()[which];
    SCOPED_TRACE(kind.name);
    const Handle handle = fresh();
    load_table_for(handle, kind);
    Product product(device_of(handle), kind.c);
    const OwnStream stream;
    for (const bool replays : {false, true}) {
      const auto round = [&] {
        Graph graph(stream, cudaStreamCaptureModeGlobal, [&] { product.enqueue(handle.get(), stream); });
        if (!replays) return;
        graph.instantiate();
        graph.launch(stream);
      };
      // Graphs may give their memory back a little later, in a thread of the driver, so a few sets may take turns.
      for (int i = 0; i < 20; ++i) round();
      stream.wait();
      const int64_t before = free_bytes();
      for (int i = 0; i < 1000; ++i) round();
      stream.wait();
      const int64_t growth = before - free_bytes();
      std::cout << kind.name << (replays ? ", replayed" : ", thrown away") << ": " << growth << " bytes more after 1000\n";
      EXPECT_LE(growth, replays ? int64_t{8} << 20 : 0);
      if (replays) {
        EXPECT_EQ(product.check_and_poison(), "");
      }
    }
  }
}

// Replays on other streams beside eager products on the captured one and beside another graph: nobody shares workspace.
TEST_F(GpuGraphs, ReplaysRunBesideOtherWork) {
  const Handle handle = fresh();
  const Kind kind = kinds()[1];
  load_table_for(handle, kind);
  Device& device = device_of(handle);
  Product first(device, kind.c), second(device, kind.c), eager(device, kind.c), forked(device, kind.c);
  const OwnStream stream, side, other;
  cudaEvent_t fork = nullptr, join = nullptr;
  check_cuda(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  check_cuda(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  Graph graph(stream, cudaStreamCaptureModeGlobal, [&] {
    check_cuda(cudaEventRecord(fork, stream));
    check_cuda(cudaStreamWaitEvent(side, fork, 0));
    first.enqueue(handle.get(), stream);
    forked.enqueue(handle.get(), side);
    check_cuda(cudaEventRecord(join, side));
    check_cuda(cudaStreamWaitEvent(stream, join, 0));
  });
  Graph another(stream, cudaStreamCaptureModeGlobal, [&] { second.enqueue(handle.get(), stream); });
  graph.instantiate();
  another.instantiate();
  for (int i = 0; i < 50; ++i) {
    graph.launch(side);
    another.launch(other);
    eager.enqueue(handle.get(), stream);
  }
  for (const OwnStream* each : {&stream, &side, &other}) each->wait();
  for (Product* product : {&first, &second, &eager, &forked}) EXPECT_EQ(product->check_and_poison(), "");
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
}

TEST_F(GpuGraphs, PrepareWorksInACapture) {
  const Handle handle = fresh();
  const Kind kind = kinds()[1];
  load_table_for(handle, kind);
  const gemm_problem_t problem = c_problem(kind.c.problem);
  const OwnStream stream;
  const Graph graph(stream, cudaStreamCaptureModeGlobal, [&] {
    const cudaStream_t raw = stream;
    EXPECT_EQ(gemm_prepare(handle.get(), reinterpret_cast<gemm_stream_t>(raw), &problem, nullptr, nullptr, nullptr),
              GEMM_SUCCESS)
        << gemm_last_error();
  });
  EXPECT_EQ(graph.nodes(), 0u);
}

}  // namespace
}  // namespace gemm::test
