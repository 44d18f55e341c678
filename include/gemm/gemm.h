/*
 * libdispatch: single-precision matrix products on NVIDIA GPUs, with kernels chosen from a tuned table.
 *
 *   C = alpha * op(A) * op(B) + beta * C        op(A) is m x k, op(B) is k x n, C is m x n
 *
 * Layout. Matrices are column-major as in BLAS: element (row, column) of X lies at x[row + column * ldx]. For row-major
 * matrices swap A with B and m with n (gemm.hpp does it). All sizes, leading dimensions and strides count elements of 4
 * bytes. Matrices are device pointers that are multiples of 4 bytes. alpha and beta are host pointers, read before the call
 * returns, unless a function says otherwise. The caller owns all matrices and must keep them until the stream has done the
 * work; C must not overlap A or B.
 *
 * Arithmetic is FP32 throughout, without TF32. The same call with the same table, policy, workspace size and GPU gives the
 * same bits; GEMM_POLICY_REPRODUCIBLE promises more.
 *
 * Streams. Products are enqueued on the caller's stream and return before they are done; no call waits for the GPU unless it
 * says so. NULL is the legacy default stream. The first call for a new kind of problem compiles its kernel (about a second;
 * later processes take it from the disk cache), and the first on a stream that splits k or uses cuBLAS allocates workspace;
 * call gemm_prepare before a time-critical section. A stream keeps its workspace until the context is destroyed: before
 * destroying a stream that had products, wait for it and call gemm_release_stream. Streams beyond the first 16 share one
 * workspace, so that their products that need it follow each other on the GPU. From sm_90 on a product is launched while
 * what is before it on the stream still runs, and waits for it on the GPU (programmatic dependent launch): the order of a
 * stream is kept. Captured graphs then have programmatic edges, which functions that return edges without their data, such
 * as cudaGraphGetEdges before CUDA 13, refuse with cudaErrorLossyQuery.
 *
 * CUDA graphs. Every product may be captured, the first of its kind too, in every capture mode; nothing is enqueued on the
 * captured stream but the product. What a captured product needs of workspace belongs to its graph until the graph, its
 * copies and its executables are destroyed and their last replay is done, so a graph may be replayed on any stream, beside
 * any other work. Executables of the same graph share it: replay them one after the other. Destroy graphs before the
 * context. All graphs together have as much workspace as one stream, allocated when the first one needs some. There is more,
 * up to 16 times as much, only while more graphs hold or have been refused some than have given it back: programs that keep
 * their graphs get it, and those that capture, replay and destroy without waiting stop growing once as many graphs have come
 * and gone as are on their way at a time. Products of graphs for which there is none left do without, that is, k is not
 * split in them, which adds up in another order, and cuBLAS has less; under GEMM_POLICY_REPRODUCIBLE those that need it
 * always get more, and beyond the 16 times are NOT_SUPPORTED. Compiled kernels stay loaded until the context is destroyed,
 * so graphs outlive changes of table, policy and workspace.
 *
 * Threads. Every function may be called from any thread at any time, also with the same context, except that a context may
 * not be destroyed while another thread uses it. Threads that share a context but no stream do not wait for each other once
 * their shapes are known. Products of several threads on one stream run in the order in which they were enqueued. A thread
 * whose first product is in the destructor of a pthread key leaves 58 KB behind for ever.
 *
 * GPUs. A context belongs to one GPU, whatever the calling thread's current device is, which no call changes. A process may
 * have any number of contexts, also several for one GPU.
 *
 * Lifetime. Destroy a context after the work that was enqueued through it (gemm_destroy waits for it), after the graphs that
 * hold its products, and before cudaDeviceReset. Contexts that live at the end of the process need not be destroyed.
 *
 * Environment, read once when a context is created:
 *   GEMM_TABLE    the table to load, see gemm_create
 *   GEMM_LOG      off, warn (the default), info (also which kernel serves each new shape, and why) or debug (also tables
 *                 and policies), to stderr
 *   GEMM_RECORD   a CSV file that collects the shapes that the table does not have, each once, for gemm-tune --shapes. It is
 *                 created with the header m,n,k,transa,transb,batch,lda,ldb,ldc or appended to, line by line, also by
 *                 several processes at once, up to 10,000 lines. A shape is written when it is first seen.
 *
 * Errors. Every function returns a status and leaves the caller's memory untouched where it is not GEMM_SUCCESS, except
 * GEMM_LAUNCH_FAILED; gemm_last_error has the story. No function throws, aborts or prints, except to stderr as GEMM_LOG
 * says: warnings, each once, are a table that cannot be used as it is, no memory for workspace, no kernel that can be
 * compiled, a record that cannot be written.
 *
 * This header is C99 and needs no CUDA header.
 */
#ifndef GEMM_GEMM_H
#define GEMM_GEMM_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define GEMM_API __attribute__((visibility("default")))
#else
#define GEMM_API
#endif

/* Enums are ints, so that a wrong value that a caller passes is a wrong argument and nothing worse. */
#ifdef __cplusplus
#define GEMM_ENUM : int
#else
#define GEMM_ENUM
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What a function reports. */
typedef enum gemm_status GEMM_ENUM {
  GEMM_SUCCESS = 0,
  GEMM_INVALID_ARGUMENT = 1, /* a null or misaligned pointer, a negative size, a leading dimension that is too small */
  GEMM_NO_DEVICE = 2,        /* no driver, no such GPU, or a GPU older than sm_75 */
  GEMM_OUT_OF_MEMORY = 3,    /* of the host or the GPU */
  GEMM_NOT_SUPPORTED = 4,    /* no kernel could be built for the problem and cuBLAS is missing too */
  GEMM_TABLE_ERROR = 5,      /* the table cannot be read, or belongs to a newer GPU */
  GEMM_LAUNCH_FAILED = 6,    /* the GPU refused a launch, or earlier work on it has failed; C may be partly written */
  GEMM_INTERNAL = 7          /* anything else */
} gemm_status_t;

/* op(X): X, its transpose, or its conjugate transpose, which for real data is the transpose. */
typedef enum gemm_op GEMM_ENUM { GEMM_OP_N = 0, GEMM_OP_T = 1, GEMM_OP_C = 2 } gemm_op_t;

/* Where alpha and beta of a call lie. On the device they are read by the kernels, when the stream gets there: they must stay
 * until then, and the rules hold all the same: where alpha is 0, A and B are not read, where beta is 0, C is not read. */
typedef enum gemm_scalars GEMM_ENUM { GEMM_SCALARS_HOST = 0, GEMM_SCALARS_DEVICE = 1 } gemm_scalars_t;

/* Who may serve a product.
 *   AUTO          the table's choice, our kernels or cuBLAS, whichever is expected to be faster
 *   TUNED_ONLY    our kernels only; NOT_SUPPORTED where none can run
 *   CUBLAS_ONLY   cuBLAS only, scaling of C included; NOT_SUPPORTED where it is missing
 *   REPRODUCIBLE  our kernels, one for each class of m, n, k and of single or batched products, with a fixed split of k and
 * a fixed order of every sum. Results have the same bits whatever the table, the addresses, leading dimensions and strides,
 * the place of alpha and beta, the way a batch is given, the stream, the workspace size and the GPU. NOT_SUPPORTED where the
 * workspace is smaller than the split needs: at most 2 MiB. Slower than AUTO. */
typedef enum gemm_policy GEMM_ENUM {
  GEMM_POLICY_AUTO = 0,
  GEMM_POLICY_TUNED_ONLY = 1,
  GEMM_POLICY_CUBLAS_ONLY = 2,
  GEMM_POLICY_REPRODUCIBLE = 3
} gemm_policy_t;

/* Calls that enqueued a product, by what served them (gemm_explain tells the rules), since the context was created or
 * gemm_reset_statistics. Empty products and calls that failed are not counted. */
typedef struct gemm_statistics {
  uint64_t exact;        /* a kernel of ours, by the table's point of the same problem */
  uint64_t predicted;    /* by the cost model */
  uint64_t nearest;      /* by the nearest point */
  uint64_t fallback;     /* a built-in default kernel */
  uint64_t reproducible; /* the fixed kernel of GEMM_POLICY_REPRODUCIBLE */
  uint64_t cublas;       /* cuBLAS, whichever rule named it */
  uint64_t scaled;       /* C = beta * C only, because k is 0, or alpha on the host is */
  uint64_t new_plans;    /* of all these calls, those for which something had to be chosen first */
} gemm_statistics_t;

/* One GPU with its table, compiled kernels and workspace. */
typedef struct gemm_context gemm_context_t;

/* A CUDA stream: cudaStream_t and CUstream are pointers to this. */
typedef struct CUstream_st* gemm_stream_t;

/* A problem without its matrices, for preparing and asking. Strides lie between the matrices of a batch and are not looked
 * at where batch is 1. */
typedef struct gemm_problem {
  gemm_op_t op_a, op_b;
  int64_t m, n, k;
  int64_t lda, ldb, ldc;
  int64_t batch; /* number of matrices; 1 for a single product */
  int64_t stride_a, stride_b, stride_c;
} gemm_problem_t;

/*
 * Creates a context for CUDA device `device` and loads the first table found: the file that the environment variable
 * GEMM_TABLE names, or else, in the installed share/gemm/configs, the file of this GPU, or else the best matching table of
 * the same compute capability (borrowed). Without a table, or with one that cannot be used (one warning on stderr), built-in
 * default kernels serve. Sets *context to NULL on failure. Release with gemm_destroy.
 * INVALID_ARGUMENT, NO_DEVICE, OUT_OF_MEMORY.
 */
GEMM_API gemm_status_t gemm_create(gemm_context_t** context, int device);

/* Waits for the GPU and frees the context with its workspace. NULL is allowed. */
GEMM_API gemm_status_t gemm_destroy(gemm_context_t* context);

/*
 * Replaces the context's table with the file at `path`: a table, or a bundle of a table with its compiled kernels
 * (gemm-tune --bundle), which needs no compiler. Entries that cannot be used are left out with one warning on stderr; a
 * table of another GPU is borrowed where its kernels may run. A bundle that is damaged, or for another compute capability,
 * is refused. On failure the old table stays. INVALID_ARGUMENT, TABLE_ERROR.
 */
GEMM_API gemm_status_t gemm_load_table(gemm_context_t* context, const char* path);

/*
 * C = alpha * op(A) * op(B) + beta * C, enqueued on `stream`. a, b and c are device pointers to matrices of
 * lda x (k or m), ldb x (n or k) and ldc x n elements. Leading dimensions must be at least the rows of the matrix as stored
 * (m or k for A, k or n for B, m for C) and at least 1. Where alpha is 0 or k is 0, A and B are not read and may be NULL;
 * where beta is 0, C is not read. With m or n 0 nothing happens.
 * INVALID_ARGUMENT, OUT_OF_MEMORY, NOT_SUPPORTED, LAUNCH_FAILED.
 */
GEMM_API gemm_status_t gemm_sgemm(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b, int64_t m,
                                  int64_t n, int64_t k, const float* alpha, const float* a, int64_t lda, const float* b,
                                  int64_t ldb, const float* beta, float* c, int64_t ldc);

/*
 * The same for `batch` products; matrix i of X starts at x + i * stride_x. Strides are 0 or more, and a stride of 0 uses the
 * same A or B for all; the matrices of C must not overlap. With batch 0 nothing happens. Errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_sgemm_strided_batched(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a,
                                                  gemm_op_t op_b, int64_t m, int64_t n, int64_t k, const float* alpha,
                                                  const float* a, int64_t lda, int64_t stride_a, const float* b, int64_t ldb,
                                                  int64_t stride_b, const float* beta, float* c, int64_t ldc,
                                                  int64_t stride_c, int64_t batch);

/*
 * The same for `batch` products whose matrices lie anywhere: a, b and c are arrays in device memory of `batch` device
 * pointers each, read by the kernels when the stream gets there; the caller keeps them until then. They are multiples of 8
 * bytes as addresses. Where alpha is 0 or k is 0, a and b may be NULL. Pointers in a and b may repeat; the matrices of C
 * must not overlap. Errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_sgemm_batched(gemm_context_t* context, gemm_stream_t stream, gemm_op_t op_a, gemm_op_t op_b,
                                          int64_t m, int64_t n, int64_t k, const float* alpha, const float* const* a,
                                          int64_t lda, const float* const* b, int64_t ldb, const float* beta,
                                          float* const* c, int64_t ldc, int64_t batch);

/*
 * gemm_sgemm_strided_batched, with problem->batch products, for alpha and beta on the host or the device. With
 * GEMM_SCALARS_DEVICE, A and B must not be NULL unless k is 0, and alpha and beta are device pointers that are multiples of
 * 4 bytes. Errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_sgemm_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                     gemm_scalars_t scalars, const float* alpha, const float* a, const float* b,
                                     const float* beta, float* c);

/* gemm_sgemm_batched in the same way; the strides of `problem` are not looked at. Errors as gemm_sgemm. */
GEMM_API gemm_status_t gemm_sgemm_batched_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                             gemm_scalars_t scalars, const float* alpha, const float* const* a,
                                             const float* const* b, const float* beta, float* const* c);

/*
 * Workspace on the GPU for products that split k, that copy operands which their kernel would read slowly (at most 96 MiB of
 * copies), or that are served by cuBLAS. By default each stream that needs it gets 136 MiB of its own on first need. With
 * `workspace` NULL, `bytes` replaces that size; 0 means that neither is done, and that cuBLAS takes its own. With less than
 * a product's kernel needs the next best one serves it. Otherwise `workspace` is the caller's device memory of `bytes`
 * bytes, a multiple of 16 as an address; it serves all streams and graphs, so only one stream at a time may run products of
 * the context, replays of graphs included, and the caller must keep the memory until the context is destroyed or gets
 * another workspace. Waits for the GPU, so not while a stream is being captured. INVALID_ARGUMENT.
 */
GEMM_API gemm_status_t gemm_set_workspace(gemm_context_t* context, void* workspace, size_t bytes);

/* Says that the caller is about to destroy `stream`, all of whose work is done: its workspace serves the next new stream. A
 * stream that is not known is fine. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_release_stream(gemm_context_t* context, gemm_stream_t stream);

/* Sets who serves the products from now on, by calls of all threads; AUTO at first. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_set_policy(gemm_context_t* context, gemm_policy_t policy);

/* The policy set above. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_get_policy(gemm_context_t* context, gemm_policy_t* policy);

/* Counts over all threads. A call that runs meanwhile in another thread may be missing. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_get_statistics(gemm_context_t* context, gemm_statistics_t* statistics);

/* Sets all counts to 0. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_reset_statistics(gemm_context_t* context);

/* The size set above. INVALID_ARGUMENT. */
GEMM_API gemm_status_t gemm_get_workspace_size(gemm_context_t* context, size_t* bytes);

/*
 * Bytes of workspace with which the problem gets its best kernel: 0 where that needs none, because it does not split k or
 * splits it within a thread-block cluster. May exceed the size set.
 * INVALID_ARGUMENT.
 */
GEMM_API gemm_status_t gemm_workspace_size(gemm_context_t* context, const gemm_problem_t* problem, size_t* bytes);

/*
 * Does everything that the first product of this kind on `stream` would do except the product: chooses, compiles, allocates
 * workspace. Of a, b and c only the alignment counts: give the pointers of later calls, or NULL for 16-byte aligned ones.
 * Captures take workspace of their own, so for them it only compiles. Errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_prepare(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                    const float* a, const float* b, const float* c);

/* The same for gemm_sgemm_ex, or where `pointer_arrays` is not 0 for gemm_sgemm_batched_ex: then a, b and c are not looked
 * at. */
GEMM_API gemm_status_t gemm_prepare_ex(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                       gemm_scalars_t scalars, int pointer_arrays, const float* a, const float* b,
                                       const float* c);

/*
 * Says in a few lines how the problem is served and why: rule, kernel, split_k, expected time in microseconds, what else was
 * considered. Rules, in the order in which they are tried: exact (the table has the problem), predicted (the calibrated
 * model finds this kernel of the table fastest, or cuBLAS faster than all), nearest (the table's nearest point, with the
 * distance), default (a built-in kernel), cublas; or reproducible, under that policy. It decides as a call would, so it may
 * compile. Writes at most `size` bytes to `text`, the final 0 included; *length, where not NULL, becomes the length of the
 * whole text without the 0. `text` may be NULL where size is 0. Pointers as in gemm_prepare, errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_explain(gemm_context_t* context, const gemm_problem_t* problem, const float* a, const float* b,
                                    const float* c, char* text, size_t size, size_t* length);

/* What went wrong in the calling thread's last function that did not succeed, on any context; "" before the first. The text
 * belongs to the library and stays until the thread's next failure. */
GEMM_API const char* gemm_last_error(void);

/* "GEMM_SUCCESS" and so on; "unknown gemm_status_t" for other values. Static text. */
GEMM_API const char* gemm_status_name(gemm_status_t status);

/* "0.1.0". Static text. */
GEMM_API const char* gemm_version(void);

#ifdef __cplusplus
}
#endif

#endif /* GEMM_GEMM_H */
