/* Speeds of the kernels: the best of several runs of at least 10 ms of this thread's own time, so that other processes
 * disturb less, on data that lies in the second or third level cache. */
#include "kernel_bench.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kernel_data.h"

static const nib_kernels *kernels;

static double now(void) {
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a timed call works on. */
typedef struct work {
    nib_matrix w;
    const float *x, *z;
    float *y;
    int64_t n, tokens;
    nib_attn_shape shape;
} work;

typedef void (*work_fn)(const work *b);

static double seconds_a_call(work_fn f, const work *b) {
    double best = 1e9;
    long n = 1;
    for (int run = 0; run < 5;) {
        double start = now();
        for (long i = 0; i < n; i++) {
            f(b);
        }
        double took = now() - start;
        if (took < 0.01) {
            n *= 2;
            continue;
        }
        best = took / (double)n < best ? took / (double)n : best;
        run++;
    }
    return best;
}

static void print_line(const char *name, double seconds, double bytes, double operations) {
    printf("%-34s %12.0f ns %8.2f GB/s %8.2f GFLOP/s\n", name, 1e9 * seconds, 1e-9 * bytes / seconds,
           1e-9 * operations / seconds);
}

static void call_matmul(const work *b) {
    kernels->matmul(b->y, b->w.rows, &b->w, 0, b->w.rows, b->x, b->w.cols, b->tokens, NULL);
}

static void call_dequantize(const work *b) {
    for (int64_t r = 0; r < b->w.rows; r++) {
        kernels->dequantize(b->y, &b->w, r);
    }
}

static void call_rmsnorm(const work *b) {
    kernels->rmsnorm(b->y, b->x, b->z, b->n, 1e-5f);
}

static void call_layernorm(const work *b) {
    kernels->layernorm(b->y, b->x, b->z, b->z, b->n, 1e-5f);
}

static void call_add(const work *b) {
    kernels->add(b->y, b->x, b->n);
}

/* What overwrites its input would tend to subnormal numbers, which are slow: fresh ones each time. */
static void call_rope(const work *b) {
    memcpy(b->y, b->x, (size_t)b->n * sizeof *b->y);
    kernels->rope_halves(b->y, b->x, b->z, b->n / 2);
}

static void call_silu(const work *b) {
    memcpy(b->y, b->x, (size_t)b->n * sizeof *b->y);
    kernels->silu(b->y, b->z, b->n);
}

static void call_gelu_tanh(const work *b) {
    memcpy(b->y, b->x, (size_t)b->n * sizeof *b->y);
    kernels->gelu_tanh(b->y, b->z, b->n);
}

static void call_gelu_erf(const work *b) {
    memcpy(b->y, b->x, (size_t)b->n * sizeof *b->y);
    kernels->gelu_erf(b->y, b->z, b->n);
}

static void call_exp(const work *b) {
    kernels->exp(b->y, b->x, b->n);
}

static void call_lse(const work *b) {
    for (int64_t i = 0; i + 256 <= b->n; i += 256) {
        (void)kernels->lse_block(&b->y[0], &b->y[1], b->x + i, 256);
    }
}

static void call_attn_group(const work *b) {
    nib_attn_state state[4];
    kernels->attn_group(state, b->y, b->shape.E, b->x, b->shape.E, b->tokens, b->x, b->z, &b->shape);
}

static void call_attn_merge(const work *b) {
    nib_attn_state state = {0.0f, 1.0f}, group = {0.5f, 1.0f};
    kernels->attn_merge(&state, b->y, &group, b->x, b->n);
}

/* In [-1, 1), all bits in use: sums of rounder numbers meet more ties, which cost rung base time. */
static float full_fraction(int64_t i) {
    return (float)((int32_t)((uint32_t)(i + 1) * 2654435761u) >> 7) * 0x1p-24f;
}

static bool wanted(const char *function, const char *name) {
    return function == NULL || strcmp(function, name) == 0;
}

/* A seed whose first matrix has no gaps and ordinary numbers: draw_matrix asks for them in this order. */
static void draw_ordinary(check *c) {
    do {
        c->seed++;
        c->n_draws = 0;
    } while (draw(c, 3) != 0 || draw(c, 9) != 0);
    c->n_draws = 0;
}

static void bench_matmul(check *c, const char *function) {
    static const nib_dtype types[] = {NIB_F32,  NIB_F16,  NIB_BF16, NIB_Q8_0, NIB_Q4_0, NIB_Q4_1,
                                      NIB_Q5_0, NIB_Q5_1, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K};
    static const int64_t shapes[][3] = {
        {512, 576, 1}, {512, 2048, 1}, {512, 2048, 4}, {512, 576, 256}, {512, 2048, 256}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const nib_dtype_traits *traits = nib_dtype_find((uint32_t)types[i]);
        for (size_t j = 0; j < sizeof shapes / sizeof *shapes; j++) {
            int64_t rows = shapes[j][0], cols = shapes[j][1] / traits->block * traits->block, tokens = shapes[j][2];
            blocks_release();
            draw_ordinary(c);
            work b = {.w = draw_matrix(c, types[i], rows, cols), .tokens = tokens};
            float *x = block((size_t)(tokens * cols) * sizeof *x);
            for (int64_t k = 0; k < tokens * cols; k++) {
                x[k] = full_fraction(k);
            }
            b.x = x;
            b.y = block((size_t)(tokens * rows + cols) * sizeof *b.y);
            char name[80];
            double bytes = (double)rows * (double)b.w.row_bytes, products = (double)(rows * cols);
            (void)snprintf(name, sizeof name, "matmul %s %dx%d, %d tokens", traits->name, (int)rows, (int)cols,
                           (int)tokens);
            if (wanted(function, "matmul")) {
                print_line(name, seconds_a_call(call_matmul, &b), bytes, 2.0 * products * (double)tokens);
            }
            if (j == 1 && wanted(function, "dequantize")) {
                (void)snprintf(name, sizeof name, "dequantize %s %dx%d", traits->name, (int)rows, (int)cols);
                print_line(name, seconds_a_call(call_dequantize, &b), bytes, products);
            }
        }
    }
}

static void bench_attention(const work *rows, const char *function) {
    static const int64_t widths[] = {64, 128, 256};
    for (size_t i = 0; i < 3 && wanted(function, "attn_group"); i++) {
        work b = *rows;
        b.tokens = 3; /* query heads that share a kv head */
        b.shape = (nib_attn_shape){widths[i], 0, NIB_GROUP - 1, 0.0f};
        char name[80];
        (void)snprintf(name, sizeof name, "attn_group E=%d, 3 heads", (int)widths[i]);
        double pairs = 64.0 * (double)widths[i];
        print_line(name, seconds_a_call(call_attn_group, &b), 8.0 * pairs, 3 * 4.0 * pairs);
    }
}

void bench(const nib_kernels *table, const char *function) {
    static const struct {
        const char *name;
        work_fn call;
        double arrays; /* read or written */
    } rows[] = {{"rmsnorm", call_rmsnorm, 4},   {"layernorm", call_layernorm, 6},
                {"add", call_add, 3},           {"rope_halves", call_rope, 3},
                {"silu", call_silu, 3},         {"gelu_tanh", call_gelu_tanh, 3},
                {"gelu_erf", call_gelu_erf, 3}, {"exp", call_exp, 2},
                {"lse_block", call_lse, 2},     {"attn_merge", call_attn_merge, 3}};
    enum { N = 2048, ROOM = 64 * 256 };
    kernels = table;
    check c = {.kernels = table, .function = "bench"};
    bench_matmul(&c, function);
    blocks_release();
    float *x = block(ROOM * sizeof *x), *z = block(ROOM * sizeof *z);
    for (int i = 0; i < ROOM; i++) {
        x[i] = 2.0f * full_fraction(i);
        z[i] = full_fraction(i + 77777);
    }
    work b = {.x = x, .z = z, .y = block(ROOM * sizeof *b.y), .n = N};
    memset(b.y, 0, ROOM * sizeof *b.y);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (wanted(function, rows[i].name)) {
            print_line(rows[i].name, seconds_a_call(rows[i].call, &b), rows[i].arrays * 4.0 * N, N);
        }
    }
    bench_attention(&b, function);
}
