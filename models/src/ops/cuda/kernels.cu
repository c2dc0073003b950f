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
typedef struct __align__(16) { unsigned int parts[4]; } sixteen_bytes;
typedef struct __align__(16) { float parts[4]; } four_f32;
typedef struct __align__(8) { half_bits parts[4]; } four_f16;
#else
/* One thread, which is the first and the last. */
#define KERNEL
#define FIRST 0ULL
#define STEP 1ULL
typedef _Float16 half_bits;
static float widened(half_bits value) { return (float)value; }
static half_bits narrowed(float value) { return (half_bits)value; }
typedef struct { unsigned int parts[4]; } sixteen_bytes;
typedef struct { float parts[4]; } four_f32;
typedef struct { half_bits parts[4]; } four_f16;
#endif
static
#ifdef __CUDACC__
    __device__
#endif
    float same(float value) { return value; }

/* A thread's values of the result, one after another, so that neighbouring threads read and write
 * neighbours. A GPU divides 64 bits many times slower than 32, which suffice for nearly every batch. */
#define EACH(BODY)                                                                                 \
    if (count >> 32)                                                                               \
        for (unsigned long long at = FIRST; at < count; at += STEP) BODY(unsigned long long)       \
    else                                                                                           \
        for (unsigned long long at = FIRST; at < count; at += STEP) BODY(unsigned int)

/* Windows of images as rows of a matrix, [windows, lines * columns * channels]. Values are only copied:
 * T is a word of any type, and `channels` are the words of a position. */
#define UNFOLD_ONE(INDEX)                                                                          \
    {                                                                                              \
        INDEX rest = (INDEX)at;                                                                    \
        unsigned int channel = (unsigned int)(rest % channels);                                    \
        rest /= channels;                                                                          \
        int tap_x = (int)(rest % kernel_x);                                                        \
        rest /= kernel_x;                                                                          \
        int tap_y = (int)(rest % kernel_y);                                                        \
        rest /= kernel_y;                                                                          \
        int column = (int)(rest % columns);                                                        \
        rest /= columns;                                                                           \
        int line = (int)(rest % lines);                                                            \
        unsigned long long image = rest / lines;                                                   \
        int y = line * stride_y + tap_y - top;                                                     \
        int x = column * stride_x + tap_x - left;                                                  \
        int inside = y >= 0 && y < height && x >= 0 && x < width;                                  \
        rows[at] = inside ? images[((image * height + y) * width + x) * channels + channel]        \
                          : outside;                                                               \
    }

#define UNFOLD(NAME, T)                                                                            \
    KERNEL void NAME(const T *images, T *rows, unsigned long long count, int height, int width,    \
                     unsigned int channels, unsigned int lines, unsigned int columns,              \
                     unsigned int kernel_y, unsigned int kernel_x, int stride_y, int stride_x,     \
                     int top, int left) {                                                          \
        T outside = {0};                                                                           \
        EACH(UNFOLD_ONE)                                                                           \
    }

UNFOLD(unfold_2, unsigned short)
UNFOLD(unfold_4, unsigned int)
UNFOLD(unfold_16, sixteen_bytes)

/* A loop over the positions of a window of a single channel: TAKE sees each `value` inside the image,
 * and the number `tap` of its position. */
#define WINDOW(INDEX, WIDEN, TAKE)                                                                 \
    INDEX rest = (INDEX)at;                                                                        \
    unsigned int channel = (unsigned int)(rest % channels);                                        \
    rest /= channels;                                                                              \
    int column = (int)(rest % columns);                                                            \
    rest /= columns;                                                                               \
    int line = (int)(rest % lines);                                                                \
    unsigned long long image = rest / lines;                                                       \
    for (int tap = 0; tap < kernel_y * kernel_x; tap += 1) {                                       \
        int y = line * stride_y + tap / kernel_x - top;                                            \
        int x = column * stride_x + tap % kernel_x - left;                                         \
        if (y < 0 || y >= height || x < 0 || x >= width) continue;                                 \
        float value = WIDEN(images[((image * height + y) * width + x) * channels + channel]);      \
        TAKE                                                                                       \
    }

/* The largest value of each window and channel; positions outside the image count as 0. A value that is
 * no number is the largest. */
#define POOL_ONE(INDEX, WIDEN, NARROW)                                                             \
    {                                                                                              \
        float largest = 0.0f;                                                                      \
        WINDOW(INDEX, WIDEN, if (value > largest || value != value) largest = value;)              \
        onto[at] = NARROW(largest);                                                                \
    }

/* The product of each channel's window with the channel's weights, [positions + 1, channels], whose last
 * row is the bias. */
#define DEPTHWISE_ONE(INDEX, WIDEN, NARROW)                                                        \
    {                                                                                              \
        float sum = 0.0f;                                                                          \
        WINDOW(INDEX, WIDEN, sum += value * WIDEN(weights[tap * channels + channel]);)             \
        sum += WIDEN(weights[kernel_y * kernel_x * channels + channel]);                           \
        onto[at] = NARROW(sum);                                                                    \
    }

#define WINDOWS                                                                                    \
    unsigned long long count, int height, int width, unsigned int channels, unsigned int lines,    \
        unsigned int columns, int kernel_y, int kernel_x, int stride_y, int stride_x, int top,     \
        int left

/* Bias, residual (if `has_onto`) and ReLU (if `relu`) of a product, in one pass, in place. */
#define FINISH_ONE(INDEX, WIDEN, NARROW)                                                           \
    {                                                                                              \
        float sum = WIDEN(product[at]) + WIDEN(bias[(INDEX)at % channels]);                        \
        if (has_onto) sum += WIDEN(onto[at]);                                                      \
        if (relu && sum < 0.0f) sum = 0.0f;                                                        \
        product[at] = NARROW(sum);                                                                 \
    }

/* The same for groups of four values: `count` and `channels` are groups. */
#define FINISH_FOUR(INDEX, FOUR, WIDEN, NARROW)                                                    \
    {                                                                                              \
        unsigned int channel = (unsigned int)((INDEX)at % channels);                               \
        FOUR group = product[at], more = bias[channel];                                            \
        FOUR residual = has_onto ? onto[at] : more;                                                \
        for (int i = 0; i < 4; i += 1) {                                                           \
            float sum = WIDEN(group.parts[i]) + WIDEN(more.parts[i]);                              \
            if (has_onto) sum += WIDEN(residual.parts[i]);                                         \
            if (relu && sum < 0.0f) sum = 0.0f;                                                    \
            group.parts[i] = NARROW(sum);                                                          \
        }                                                                                          \
        product[at] = group;                                                                       \
    }

#define POOL_FULL(INDEX) POOL_ONE(INDEX, same, same)
#define POOL_HALF(INDEX) POOL_ONE(INDEX, widened, narrowed)
#define DEPTHWISE_FULL(INDEX) DEPTHWISE_ONE(INDEX, same, same)
#define DEPTHWISE_HALF(INDEX) DEPTHWISE_ONE(INDEX, widened, narrowed)
#define FINISH_FULL(INDEX) FINISH_ONE(INDEX, same, same)
#define FINISH_HALF(INDEX) FINISH_ONE(INDEX, widened, narrowed)
#define FOUR_FULL(INDEX) FINISH_FOUR(INDEX, four_f32, same, same)
#define FOUR_HALF(INDEX) FINISH_FOUR(INDEX, four_f16, widened, narrowed)

#define KERNELS(T, SUFFIX, SIZE)                                                                   \
    KERNEL void max_pool_##SUFFIX(const T *images, T *onto, WINDOWS) { EACH(POOL_##SIZE) }         \
    KERNEL void depthwise_##SUFFIX(const T *images, const T *weights, T *onto, WINDOWS) {          \
        EACH(DEPTHWISE_##SIZE)                                                                     \
    }                                                                                              \
    KERNEL void finish_##SUFFIX(T *product, const T *bias, const T *onto,                          \
                                unsigned long long count, unsigned int channels, int has_onto,     \
                                int relu) {                                                        \
        EACH(FINISH_##SIZE)                                                                        \
    }                                                                                              \
    KERNEL void finish_four_##SUFFIX(four_##SUFFIX *product, const four_##SUFFIX *bias,            \
                                     const four_##SUFFIX *onto, unsigned long long count,          \
                                     unsigned int channels, int has_onto, int relu) {              \
        EACH(FOUR_##SIZE)                                                                          \
    }

KERNELS(float, f32, FULL)
KERNELS(half_bits, f16, HALF)
