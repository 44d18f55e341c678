/*
 * libdispatch: single-precision matrix products on NVIDIA GPUs, with kernels chosen from a tuned table.
 *
 *   C = alpha * op(A) * op(B) + beta * C        op(A) is m x k, op(B) is k x n, C is m x n
 *
 * Layout. Matrices are column-major as in BLAS: element (row, column) of X lies at x[row + column * ldx]. For row-major
 * matrices swap A with B and m with n (gemm.hpp does it). All sizes, leading dimensions and strides count elements of 4
 * bytes. Matrices are device pointers that are multiples of 4 bytes; alpha and beta are host pointers, read before the call
 * returns. The caller owns all matrices and must keep them until the stream has done the work; C must not overlap A or B.
 *
 * Arithmetic is FP32 throughout, without TF32. The same call with the same table, workspace size and GPU gives the same
 * bits.
 *
 * Streams. Products are enqueued on the caller's stream and return before they are done. NULL is the legacy default stream.
 * The first call for a new kind of problem compiles its kernel (about a second; later processes take it from the disk cache)
 * and the first on a stream that splits k or uses cuBLAS allocates workspace; call gemm_prepare before a time-critical
 * section or before capturing a CUDA graph. A graph that holds a product with split k uses the workspace of the stream it
 * was captured on.
 *
 * Threads. Every function may be called from any thread at any time, also with the same context, except that a context may
 * not be destroyed while another thread uses it.
 *
 * Errors. Every function returns a status and leaves the caller's memory untouched where it is not GEMM_SUCCESS, except
 * GEMM_LAUNCH_FAILED; gemm_last_error has the story. No function throws, aborts or prints, except for warnings on stderr,
 * each once: a table that cannot be used as it is, no memory for workspace, no kernel that can be compiled.
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

#ifdef __cplusplus
extern "C" {
#endif

/* What a function reports. */
typedef enum gemm_status {
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
typedef enum gemm_op { GEMM_OP_N = 0, GEMM_OP_T = 1, GEMM_OP_C = 2 } gemm_op_t;

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
 * Workspace on the GPU for products that split k or are served by cuBLAS. By default each stream that needs it gets 64 MiB
 * of its own on first need. With `workspace` NULL, `bytes` replaces that size; 0 means that k is never split, and that
 * cuBLAS takes its own. Otherwise `workspace` is the caller's device memory of `bytes` bytes, a multiple of 16 as an
 * address; it serves all streams, so only one stream at a time may use the context, and the caller must keep the memory
 * until the context is destroyed or gets another workspace. Waits for the GPU. INVALID_ARGUMENT.
 */
GEMM_API gemm_status_t gemm_set_workspace(gemm_context_t* context, void* workspace, size_t bytes);

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
 * Errors as gemm_sgemm.
 */
GEMM_API gemm_status_t gemm_prepare(gemm_context_t* context, gemm_stream_t stream, const gemm_problem_t* problem,
                                    const float* a, const float* b, const float* c);

/*
 * Says in a few lines how the problem is served and why: rule, kernel, split_k, expected time in microseconds, what else was
 * considered. Rules, in the order in which they are tried: exact (the table has the problem), predicted (the cost model
 * finds this kernel of the table fastest), nearest (the table's nearest point, with the distance), default (a built-in
 * kernel), cublas. Where cuBLAS won at a very near point, that point comes before predicted. It decides as a call would, so
 * it may compile. Writes at most `size` bytes to `text`, the final 0 included; *length, where not NULL, becomes the length
 * of the whole text without the 0. `text` may be NULL where size is 0. Pointers as in gemm_prepare, errors as gemm_sgemm.
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
