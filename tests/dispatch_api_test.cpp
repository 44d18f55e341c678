// The C API on the emulated device: the shared suite, and what needs no GPU to show.
#include <gtest/gtest.h>

#include <fstream>

#include "dispatch_suite.h"
#include "gemm/gemm.hpp"

namespace gemm::test {

gemm_context_t* make_test_context(std::string*) {
  ContextOptions options;
  options.find_table = false;
  return make_context(make_emulated_device(), options);
}

namespace {

// A context that collects its warnings.
struct Watched {
  std::vector<std::string> warnings;
  Handle handle;

  explicit Watched(EmulatorOptions options = default_emulator_options(), bool find_table = false)
      : handle(make_context(make_emulated_device(std::move(options)),
                            {find_table, [this](const std::string& text) { warnings.push_back(text); }})) {}
};

std::string write(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

Table small_table() {
  return table_of(default_emulator_options().info, {emulated_configs().front(), 1, Reduction::ticket},
                  {packed_problem(64, 64, 64)});
}

TEST(DispatchApi, NullArgumentsAreRefusedByName) {
  Watched watched;
  gemm_context_t* context = watched.handle.get();
  const gemm_problem_t problem = c_problem(packed_problem(4, 4, 4));
  const float one = 1;
  size_t bytes = 0;
  char text[16];
  EXPECT_EQ(gemm_create(nullptr, 0), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_load_table(nullptr, "x"), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_load_table(context, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_STREQ(gemm_last_error(), "path must not be NULL");
  EXPECT_EQ(gemm_set_workspace(nullptr, nullptr, 0), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_get_workspace_size(context, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_workspace_size(context, nullptr, &bytes), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_prepare(context, nullptr, nullptr, nullptr, nullptr, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_explain(context, &problem, nullptr, nullptr, nullptr, nullptr, 1, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_explain(nullptr, &problem, nullptr, nullptr, nullptr, text, sizeof text, nullptr), GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_sgemm(context, nullptr, GEMM_OP_N, GEMM_OP_N, 1, 1, 1, nullptr, &one, 1, &one, 1, &one, nullptr, 1),
            GEMM_INVALID_ARGUMENT);
  EXPECT_STREQ(gemm_last_error(), "alpha must not be NULL");
  EXPECT_EQ(
      gemm_sgemm(context, nullptr, static_cast<gemm_op_t>(3), GEMM_OP_N, 1, 1, 1, &one, &one, 1, &one, 1, &one, nullptr, 1),
      GEMM_INVALID_ARGUMENT);
  EXPECT_EQ(gemm_destroy(nullptr), GEMM_SUCCESS);
}

TEST(DispatchApi, NamesAndVersion) {
  EXPECT_STREQ(gemm_status_name(GEMM_TABLE_ERROR), "GEMM_TABLE_ERROR");
  EXPECT_STREQ(gemm_version(), "0.1.0");
}

TEST(DispatchApi, WithoutSuchAGpuCreateSaysSo) {
  gemm_context_t* context = reinterpret_cast<gemm_context_t*>(1);
  EXPECT_EQ(gemm_create(&context, 4711), GEMM_NO_DEVICE);
  EXPECT_EQ(context, nullptr);
  EXPECT_STRNE(gemm_last_error(), "");
}

TEST(DispatchApi, ExplainFollowsSnprintf) {
  Watched watched;
  const gemm_problem_t problem = c_problem(packed_problem(64, 64, 64));
  const std::string whole = watched.handle.explain(problem);
  EXPECT_NE(whole.find("rule       default"), std::string::npos) << whole;
  EXPECT_NE(whole.find("table      none"), std::string::npos) << whole;
  char text[8] = "xxxxxxx";
  size_t length = 0;
  ASSERT_EQ(gemm_explain(watched.handle.get(), &problem, nullptr, nullptr, nullptr, text, sizeof text, &length),
            GEMM_SUCCESS);
  EXPECT_EQ(length, whole.size());
  EXPECT_EQ(text, whole.substr(0, 7));
}

TEST(DispatchApi, RowMajorSwapsOperands) {
  Watched watched;
  Device& device = watched.handle.get()->context.device();
  // A is 2 x 3, B' is 2 x 3 stored row-major, C is 2 x 2 with a gap in each row.
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 1, 0, 1, 0}, before = {9, 9, 5, 9, 9, 5};
  std::vector<float> c(6);
  const Buffer da = device.allocate(24).value_or_throw(), db = device.allocate(24).value_or_throw(),
               dc = device.allocate(24).value_or_throw();
  device.copy_to_device(da.as(), a.data(), 24);
  device.copy_to_device(db.as(), b.data(), 24);
  device.copy_to_device(dc.as(), before.data(), 24);
  watched.handle.sgemm_row_major(nullptr, GEMM_OP_N, GEMM_OP_T, 2, 2, 3, 1, da.as<float>(), 3, db.as<float>(), 3, 0,
                                 dc.as<float>(), 3);
  const auto result = [&] {
    device.copy_to_host(c.data(), dc.as(), 24);
    device.copy_to_device(dc.as(), before.data(), 24);
    return c;
  };
  const std::vector<float> expected{4, 2, 5, 10, 5, 5};
  EXPECT_EQ(result(), expected);

  const float scalars[] = {1, 0};
  const Buffer on_device = device.allocate(8).value_or_throw();
  device.copy_to_device(on_device.as(), scalars, 8);
  const float *alpha = on_device.as<float>(), *beta = alpha + 1;
  const gemm_problem_t problem{GEMM_OP_N, GEMM_OP_T, 2, 2, 3, 3, 3, 3, 1, 0, 0, 0};
  watched.handle.sgemm_row_major(nullptr, problem, alpha, da.as<float>(), db.as<float>(), beta, dc.as<float>());
  EXPECT_EQ(result(), expected);
  const Buffer pa = pointer_array(device, da.as<float>(), 0, 1), pb = pointer_array(device, db.as<float>(), 0, 1),
               pc = pointer_array(device, dc.as<float>(), 0, 1);
  watched.handle.sgemm_batched_row_major(nullptr, GEMM_OP_N, GEMM_OP_T, 2, 2, 3, 1, pa.as<const float*>(), 3,
                                         pb.as<const float*>(), 3, 0, pc.as<float*>(), 3, 1);
  EXPECT_EQ(result(), expected);
  watched.handle.sgemm_batched_row_major(nullptr, problem, alpha, pa.as<const float*>(), pb.as<const float*>(), beta,
                                         pc.as<float*>());
  EXPECT_EQ(result(), expected);
}

TEST(DispatchApi, WrapperThrowsTheStatus) {
  Watched watched;
  try {
    watched.handle.load_table("/nowhere/table.json");
    FAIL() << "no exception";
  } catch (const StatusError& error) {
    EXPECT_EQ(error.status(), GEMM_TABLE_ERROR);
    EXPECT_NE(std::string(error.what()).find("/nowhere/table.json"), std::string::npos) << error.what();
  }
}

TEST(DispatchApi, LastErrorBelongsToItsThread) {
  EXPECT_EQ(gemm_load_table(nullptr, "x"), GEMM_INVALID_ARGUMENT);
  const std::string mine = gemm_last_error();
  std::string other = "?";
  std::thread([&] { other = gemm_last_error(); }).join();
  EXPECT_EQ(other, "");
  EXPECT_EQ(gemm_last_error(), mine);
}

TEST(DispatchTable, DamagedTablesDoNotHarmTheProgram) {
  const TemporaryFolder folder;
  const std::string whole = to_json(small_table());
  const std::vector<std::string> damages = {
      "", "{\"a\":1,}", "\xEF\xBB\xBF" + whole, whole + "}", whole.substr(0, whole.size() / 2), "[]", "null", "{}"};
  for (const std::string& damage : damages) {
    const Environment table("GEMM_TABLE", write(folder.file("table.json"), damage));
    Watched watched(default_emulator_options(), true);
    ASSERT_EQ(watched.warnings.size(), 1u) << damage.substr(0, 20);
    EXPECT_NE(watched.warnings[0].find(folder.file("table.json")), std::string::npos) << watched.warnings[0];
    EXPECT_EQ(check_case(watched.handle.get(), {packed_problem(33, 20, 16)}), "");
    EXPECT_EQ(watched.warnings.size(), 1u);
  }
}

TEST(DispatchTable, AFailedLoadKeepsTheOldTable) {
  Watched watched;
  const Problem p = packed_problem(64, 64, 64);
  force(watched.handle.get(), {emulated_configs().front(), 1, Reduction::ticket}, {p});
  const TemporaryFolder folder;
  EXPECT_EQ(gemm_load_table(watched.handle.get(), write(folder.file("bad.json"), "{").c_str()), GEMM_TABLE_ERROR);
  EXPECT_NE(explanation(watched.handle.get(), p).find("exact"), std::string::npos);
}

TEST(DispatchTable, UnusableEntriesAreSaidOnceAndTheRestServes) {
  const TemporaryFolder folder;
  std::string text = to_json(table_of(default_emulator_options().info, {emulated_configs().front(), 1, Reduction::ticket},
                                      {packed_problem(64, 64, 64), packed_problem(32, 32, 32), packed_problem(16, 16, 16)}));
  for (const std::string split : {"0", "100000"})
    text.replace(text.rfind("\"split_k\": 1,"), 13, "\"split_k\": " + split + ",");
  Watched watched;
  watched.handle.load_table(write(folder.file("table.json"), text));
  ASSERT_EQ(watched.warnings.size(), 1u);
  EXPECT_NE(watched.warnings[0].find("split_k"), std::string::npos) << watched.warnings[0];
  EXPECT_NE(explanation(watched.handle.get(), packed_problem(64, 64, 64)).find("nearest"), std::string::npos);
  EXPECT_NE(explanation(watched.handle.get(), packed_problem(16, 16, 16)).find("exact"), std::string::npos);
  EXPECT_EQ(check_case(watched.handle.get(), {packed_problem(64, 64, 64)}), "");
  EXPECT_EQ(watched.warnings.size(), 1u);
}

TEST(DispatchTable, ATableOfAnotherGpuIsBorrowedByName) {
  const TemporaryFolder folder;
  Table table = small_table();
  table.device.name = "Emulated GPU of another size";
  table.device.sm_count = 16;
  save_table(table, folder.file("other.json")).value_or_throw();
  Watched watched;
  watched.handle.load_table(folder.file("other.json"));
  ASSERT_EQ(watched.warnings.size(), 1u);
  EXPECT_NE(watched.warnings[0].find("borrowed"), std::string::npos) << watched.warnings[0];
  const std::string text = explanation(watched.handle.get(), packed_problem(64, 64, 64));
  EXPECT_NE(text.find("Emulated GPU of another size; borrowed"), std::string::npos) << text;
}

TEST(DispatchTable, ATableOfANewerGpuIsRefused) {
  const TemporaryFolder folder;
  Table table = small_table();
  table.device.limits.compute_capability = 120;
  save_table(table, folder.file("newer.json")).value_or_throw();
  Watched watched;
  EXPECT_EQ(gemm_load_table(watched.handle.get(), folder.file("newer.json").c_str()), GEMM_TABLE_ERROR);
}

TEST(DispatchTable, ABorrowedTableNeverLaunchesAnIllegalKernel) {
  // The emulated sm_75 GPU cannot run cp.async kernels, which an older table could not name but a damaged one does.
  EmulatorOptions turing = default_emulator_options();
  turing.info.limits = {75, 65536, 65536, 65536, 1024};
  Table table = small_table();
  table.device.limits.compute_capability = 75;
  const TemporaryFolder folder;
  save_table(table, folder.file("table.json")).value_or_throw();
  Watched watched(turing);
  watched.handle.load_table(folder.file("table.json"));
  EXPECT_EQ(watched.warnings.size(), 1u);
  const std::string text = explanation(watched.handle.get(), packed_problem(64, 64, 64));
  EXPECT_NE(text.find("register_staged"), std::string::npos) << text;
  EXPECT_EQ(check_case(watched.handle.get(), {packed_problem(64, 64, 64)}), "");
}

TEST(DispatchTable, ACublasPointServesOwnKernelWhereCublasIsMissing) {
  const TemporaryFolder folder;
  Table table = small_table();
  table.points[0].use_cublas = true;
  table.points[0].cublas_us = 1;
  save_table(table, folder.file("table.json")).value_or_throw();
  Watched watched;
  watched.handle.load_table(folder.file("table.json"));
  const std::string text = explanation(watched.handle.get(), packed_problem(64, 64, 64));
  EXPECT_NE(text.find(table.points[0].kernel), std::string::npos) << text;
  EXPECT_NE(text.find("the emulated device has no cuBLAS"), std::string::npos) << text;
  EXPECT_EQ(check_case(watched.handle.get(), {packed_problem(64, 64, 64)}), "");
}

TEST(DispatchFailures, ARefusedLaunchIsAStatusAndDoesNotStick) {
  EmulatorOptions options = default_emulator_options();
  options.faults = {{"async_transpose", FaultKind::launch_refused}};
  Watched watched(options);
  const Problem p = packed_problem(64, 64, 64);
  force(watched.handle.get(), {emulated_configs().front(), 1, Reduction::ticket}, {p});
  EXPECT_NE(check_case(watched.handle.get(), {p}).find("GEMM_LAUNCH_FAILED"), std::string::npos);
  force(watched.handle.get(), {default_configs()[1], 1, Reduction::ticket}, {p});
  EXPECT_EQ(check_case(watched.handle.get(), {p}), "");
}

TEST(DispatchFailures, WithoutMemoryForWorkspaceKIsNotSplit) {
  EmulatorOptions options = default_emulator_options();
  options.info.memory_bytes = 8 << 20;
  Watched watched(options);
  const Problem p = packed_problem(32, 32, 512);
  force(watched.handle.get(), {emulated_configs().front(), 4, Reduction::ticket}, {p});
  EXPECT_EQ(check_case(watched.handle.get(), {p}), "");
  EXPECT_EQ(watched.handle.workspace_size(), 0u);
  ASSERT_EQ(watched.warnings.size(), 1u);
  EXPECT_NE(watched.warnings[0].find("no workspace"), std::string::npos) << watched.warnings[0];
}

TEST(DispatchFailures, NothingCanServeIsNotSupported) {
  Watched watched;
  const int64_t huge = int64_t{1} << 62;
  for (const Problem& p : {Problem{int64_t{1} << 33, 1, 1, Op::N, Op::N, int64_t{1} << 33, 1, int64_t{1} << 33},
                           Problem{huge, huge, huge, Op::N, Op::T, huge, huge, huge}}) {
    const gemm_problem_t problem = c_problem(p);
    EXPECT_EQ(gemm_prepare(watched.handle.get(), nullptr, &problem, nullptr, nullptr, nullptr), GEMM_NOT_SUPPORTED);
    EXPECT_NE(std::string(gemm_last_error()).find("cuBLAS"), std::string::npos) << gemm_last_error();
  }
}

// With a calibrated table, whose model works out times from the sizes. UBSan sees what overflows.
TEST(DispatchFailures, SizesNear2To63AreLeftToCublas) {
  Watched watched;
  ASSERT_EQ(gemm_load_table(watched.handle.get(), GEMM_SOURCE_DIR "/configs/nvidia-h200.json"), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_policy(watched.handle.get(), GEMM_POLICY_TUNED_ONLY), GEMM_SUCCESS);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{kLargest, 1, 1},
                                                                   {1, kLargest, 1},
                                                                   {1, 1, kLargest},
                                                                   {kLargest, kLargest, kLargest},
                                                                   {int64_t{1} << 62, 64, 7},
                                                                   {64, int64_t{1} << 40, int64_t{1} << 40}}) {
    const gemm_problem_t problem = c_problem({m, n, k, Op::N, Op::N, m, k, m});
    EXPECT_EQ(gemm_prepare(watched.handle.get(), nullptr, &problem, nullptr, nullptr, nullptr), GEMM_NOT_SUPPORTED);
    EXPECT_NE(std::string(gemm_last_error()).find("32 bits"), std::string::npos) << gemm_last_error();
    size_t bytes = 1;
    EXPECT_EQ(gemm_workspace_size(watched.handle.get(), &problem, &bytes), GEMM_SUCCESS);
    EXPECT_EQ(bytes, 0u);
  }
}

// The same where each dimension fits 32 bits, but not the tiles of C, or not C with its batch.
TEST(DispatchFailures, ProductsOfSizesNear2To63AreLeftToCublas) {
  Watched watched;
  ASSERT_EQ(gemm_load_table(watched.handle.get(), GEMM_SOURCE_DIR "/configs/nvidia-h200.json"), GEMM_SUCCESS);
  ASSERT_EQ(gemm_set_policy(watched.handle.get(), GEMM_POLICY_TUNED_ONLY), GEMM_SUCCESS);
  for (const auto& [m, n, batch] : std::vector<std::array<int64_t, 3>>{
           {int64_t{1} << 28, int64_t{1} << 19, 1}, {64, 64, int64_t{1} << 62}, {400'000, 7, int64_t{1} << 59}}) {
    Problem p = packed_problem(m, n, 1);
    p.batch = batch;
    const gemm_problem_t problem = c_problem(p);
    EXPECT_EQ(gemm_prepare(watched.handle.get(), nullptr, &problem, nullptr, nullptr, nullptr), GEMM_NOT_SUPPORTED) << p;
    EXPECT_NE(std::string(gemm_last_error()).find("32 bits"), std::string::npos) << gemm_last_error();
  }
}

TEST(DispatchMemory, PlansAreBounded) {
  float* const any = reinterpret_cast<float*>(0x1000);
  const float one = 1;
  EmulatorOptions nothing_runs = default_emulator_options();
  nothing_runs.faults = {{"", FaultKind::launch_refused}};
  Watched quiet(nothing_runs);
  const auto call = [&](int64_t m) {
    return gemm_sgemm(quiet.handle.get(), nullptr, GEMM_OP_N, GEMM_OP_N, m, 1, 1, &one, any, m, any, 1, &one, any, m);
  };
  for (int64_t m = 1; m <= static_cast<int64_t>(PlanMemory::kMaxPlans) + 10; ++m) EXPECT_EQ(call(m), GEMM_LAUNCH_FAILED);
  EXPECT_EQ(call(1), GEMM_LAUNCH_FAILED) << "a plan that was dropped is made again";
}

TEST(DispatchMemory, EachStreamHasItsOwnSetAndTheirNumberIsBounded) {
  const std::unique_ptr<Device> device = make_emulated_device();
  StreamMemory streams(*device);
  streams.set_workspace(nullptr, 1 << 20);
  const int64_t free_before = device->free_bytes();
  const auto stream = [](uintptr_t i) { return reinterpret_cast<Stream>(0x1000 + i * 16); };
  const auto set_of = [&](Stream s) { return streams.get(s, nullptr).value_or_throw().set; };
  StreamSet* const first = set_of(stream(0));
  EXPECT_EQ(set_of(stream(0)), first);
  EXPECT_NE(set_of(stream(1))->workspace, first->workspace);
  EXPECT_FALSE(first->several_threads);
  for (uintptr_t i = 0; i < 3 * StreamMemory::kMaxStreams; ++i) set_of(stream(i));
  EXPECT_GE(device->free_bytes(),
            free_before - static_cast<int64_t>(StreamMemory::kMaxStreams + 1) * ((1 << 20) + (1 << 16)));
  EXPECT_EQ(set_of(stream(0)), first) << "nothing is taken away";
  // Those that are too many follow each other.
  StreamSet* const shared = set_of(stream(20));
  EXPECT_EQ(set_of(stream(21)), shared);
  EXPECT_TRUE(shared->several_threads);
  EXPECT_NE(shared->last_use, nullptr);
  // A released one makes room.
  streams.release(stream(0));
  EXPECT_EQ(set_of(stream(20)), first);

  // cudaStreamPerThread is another stream in each thread.
  const Stream per_thread = reinterpret_cast<Stream>(0x2);
  streams.release(stream(1));
  streams.release(stream(2));
  StreamSet* const mine = set_of(per_thread);
  StreamSet* other = nullptr;
  std::thread([&] { other = set_of(per_thread); }).join();
  EXPECT_NE(mine, other);
}

}  // namespace
}  // namespace gemm::test
