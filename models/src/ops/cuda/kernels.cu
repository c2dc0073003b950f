/* GPU kernels that complement candle's operations and cuBLAS. NVRTC compiles them when a process first
 * computes on a GPU, and a C compiler in models/src/ops/cuda_check.rs, which compares them with the same
 * operations in Rust: so this is C, without headers. Images are channels last, contiguous. */

#ifdef __CUDACC__
#define KERNEL extern "C" __global__
#define FIRST ((unsigned long long)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((unsigned long long)gridDim.x * blockDim.x)
typedef unsigned short half_bits;
static __device__ float widened(half_bits bits) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
static __device__ half_bits narrowed(float value) {
    half_bits bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
/* One thread, which is the first and the last. */
#define KERNEL
#define FIRST 0ULL
#define STEP 1ULL
typedef _Float16 half_bits;
static float widened(half_bits value) { return (float)value; }
static half_bits narrowed(float value) { return (half_bits)value; }
#endif
static
#ifdef __CUDACC__
    __device__
#endif
    float same(float value) { return value; }

/* Windows of images as rows of a matrix, [windows, lines * columns * channels]: value by value of the
 * result, so that neighbouring threads read and write neighbours. */
#define UNFOLD(NAME, T)                                                                            \
    KERNEL void NAME(const T *images, T *rows, unsigned long long count, int height, int width,  \
                     int channels, int lines, int columns, int kernel_y, int kernel_x,             \
                     int stride_y, int stride_x, int top, int left) {                              \
        for (unsigned long long at = FIRST; at < count; at += STEP) {                              \
            unsigned long long rest = at / channels;                                               \
            int channel = (int)(at % channels);                                                    \
            int tap_x = (int)(rest % kernel_x);                                                    \
            rest /= kernel_x;                                                                      \
            int tap_y = (int)(rest % kernel_y);                                                    \
            rest /= kernel_y;                                                                      \
            int column = (int)(rest % columns);                                                    \
            rest /= columns;                                                                       \
            int line = (int)(rest % lines);                                                        \
            unsigned long long image = rest / lines;                                             \
            int y = line * stride_y + tap_y - top;                                                 \
            int x = column * stride_x + tap_x - left;                                              \
            int inside = y >= 0 && y < height && x >= 0 && x < width;                              \
            rows[at] = inside ? images[((image * height + y) * width + x) * channels + channel] \
                              : (T)0;                                                              \
        }                                                                                          \
    }

UNFOLD(unfold_f32, float)
UNFOLD(unfold_f16, half_bits)

/* Bias, residual (if `has_onto`) and ReLU (if `relu`) of a product, in one pass, in place. */
#define FINISH(NAME, T, WIDEN, NARROW)                                                             \
    KERNEL void NAME(T *product, const T *bias, const T *onto, unsigned long long count,           \
                     int channels, int has_onto, int relu) {                                       \
        for (unsigned long long at = FIRST; at < count; at += STEP) {                              \
            float sum = WIDEN(product[at]) + WIDEN(bias[at % channels]);                           \
            if (has_onto) sum += WIDEN(onto[at]);                                                  \
            if (relu && sum < 0.0f) sum = 0.0f;                                                    \
            product[at] = NARROW(sum);                                                             \
        }                                                                                          \
    }

FINISH(finish_f32, float, same, same)
FINISH(finish_f16, half_bits, widened, narrowed)
