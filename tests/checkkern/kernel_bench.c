/* Speeds of the kernels: the best of several runs of at least 10 ms of this thread's own time, so that other processes
 * disturb less, on data that lies in the second or third level cache; packed products also on weights that come from
 * memory. Beside each stands the part of what this machine can do at most, measured before. */
#include "kernel_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernel/pack.h"
#include "kernel_data.h"

static const nib_kernels *kernels;

/* Larger than the caches: read from memory, whole and over again. */
enum { STREAM_BYTES = 256 << 20 };
static unsigned char *stream;

/* What one second is worth on this machine. */
static struct { double read, f32, int8; } limits;

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
    const void *k, *v;        /* a group of shape.type */
    const float *const *rows; /* [tokens] queries */
    float *const *sums;       /* [tokens] */
    void *q;                  /* quantised activations */
    size_t w_bytes;           /* of w, whose copies fill the stream */
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

/* What a call reads and writes, and computes. */
typedef enum unit { ELEMENTS, F32_OPERATIONS, INT8_OPERATIONS } unit;
typedef struct cost {
    double bytes, operations;
    unit unit;
    bool streamed; /* the bytes come from memory */
} cost;

/* The part of the limit that binds: the time that the bytes take at least, or the operations. */
static void print_part(double seconds, const cost *c) {
    double reading = c->streamed ? c->bytes / limits.read : 0.0;
    double computing = c->operations / (c->unit == INT8_OPERATIONS ? limits.int8 : limits.f32);
    int gap = c->unit == INT8_OPERATIONS ? 3 : 1; /* GOP/s is shorter than GFLOP/s */
    if (c->unit == ELEMENTS) {
        printf("\n");
    } else if (reading > computing) {
        printf("%*s%5.1f %% of read\n", gap, "", 100.0 * reading / seconds);
    } else {
        printf("%*s%5.1f %% of %s\n", gap, "", 100.0 * computing / seconds,
               c->unit == INT8_OPERATIONS ? "int8" : "f32");
    }
}

static void print_line(const char *name, double seconds, cost c) {
    static const char *const units[] = {"G/s", "GFLOP/s", "GOP/s"};
    printf("%-38s %12.0f ns %8.2f GB/s %8.2f %s", name, 1e9 * seconds, 1e-9 * c.bytes / seconds,
           1e-9 * c.operations / seconds, units[c.unit]);
    print_part(seconds, &c);
}

static float sink;
static double operations_done;

static void call_limit_f32(const work *b) {
    sink = 0.5f;
    operations_done = kernels->limit_f32(&sink, b->n);
}

static void call_limit_int8(const work *b) {
    sink = 0.5f;
    operations_done = kernels->limit_int8(&sink, b->n);
}

static void call_limit_read(const work *b) {
    (void)b;
    kernels->limit_read(&sink, stream, STREAM_BYTES);
}

static void measure_limits(void) {
    memset(stream, 0x3f, STREAM_BYTES); /* ordinary floats: sums of subnormal ones would be slow */
    const work b = {.n = 1 << 14};
    limits.read = STREAM_BYTES / seconds_a_call(call_limit_read, &b);
    double seconds = seconds_a_call(call_limit_f32, &b);
    limits.f32 = operations_done / seconds;
    seconds = seconds_a_call(call_limit_int8, &b);
    limits.int8 = operations_done / seconds;
    printf("limit read %10.2f GB/s, %d MiB\nlimit f32  %10.2f GFLOP/s\nlimit int8 %10.2f GOP/s\n", 1e-9 * limits.read,
           STREAM_BYTES >> 20, 1e-9 * limits.f32, 1e-9 * limits.int8);
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

enum { MOST_ROWS = 24, ROOM = 64 * 256 };

static void call_to_f16(const work *b) {
    kernels->to_f16((uint16_t *)(void *)b->y, b->x, b->n);
}

static void call_quantize(const work *b) {
    kernels->quantize(b->q, b->x, b->n, b->tokens, b->n);
}

/* The next copy of the matrix: none is in a cache when its turn comes again. */
static void call_packed(const work *b) {
    static size_t turn;
    nib_matrix w = b->w;
    turn = (turn + 1) % (STREAM_BYTES / b->w_bytes);
    w.data = stream + turn * b->w_bytes;
    kernels->packed_matmul(b->y, w.rows, &w, 0, w.rows, b->q, b->tokens, NULL);
}

static void call_attn_group(const work *b) {
    nib_attn_state state[MOST_ROWS];
    kernels->attn_group(state, b->y, b->shape.E, b->rows, b->tokens, b->k, b->v, &b->shape);
}

static void call_attn_merge(const work *b) {
    nib_attn_state state[8], group[8];
    for (int i = 0; i < 8; i++) {
        state[i] = (nib_attn_state){0.0f, 1.0f};
        group[i] = (nib_attn_state){0.5f, 1.0f};
    }
    kernels->attn_merge(state, b->sums, group, b->x, b->n / 8, 8, b->n / 8);
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
                print_line(name, seconds_a_call(call_matmul, &b),
                           (cost){bytes, 2.0 * products * (double)tokens, F32_OPERATIONS, false});
            }
            if (j == 1 && wanted(function, "dequantize")) {
                (void)snprintf(name, sizeof name, "dequantize %s %dx%d", traits->name, (int)rows, (int)cols);
                print_line(name, seconds_a_call(call_dequantize, &b), (cost){bytes, products, ELEMENTS, false});
            }
        }
    }
}

/* The stream full of copies of a packed matrix; returns the bytes of one. */
static size_t fill_stream(const nib_matrix *w) {
    size_t strip = nib_strip_bytes(w->dtype, w->cols), bytes = (size_t)nib_strips(w->rows) * strip;
    for (int64_t i = 0; i < nib_strips(w->rows); i++) {
        nib_pack_strip(stream + (size_t)i * strip, w, i);
    }
    for (size_t at = bytes; at + bytes <= STREAM_BYTES; at += bytes) {
        memcpy(stream + at, stream, bytes);
    }
    return bytes;
}

static const float *fractions(int64_t n) {
    float *x = block((size_t)n * sizeof *x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = full_fraction(i);
    }
    return x;
}

static void bench_packed(check *c, const char *function) {
    static const nib_dtype types[] = {NIB_Q8_0, NIB_Q4_0, NIB_Q4_1, NIB_Q5_0, NIB_Q5_1, NIB_Q4_K, NIB_Q5_K, NIB_Q6_K};
    enum { ROWS = 512, COLS = 2048, TOKENS = 256 };
    for (size_t i = 0; i < sizeof types / sizeof *types && wanted(function, "packed_matmul"); i++) {
        blocks_release();
        draw_ordinary(c);
        work b = {.w = draw_matrix(c, types[i], ROWS, COLS), .x = fractions(TOKENS * COLS)};
        b.w_bytes = fill_stream(&b.w);
        b.w.packed = true;
        b.q = block(nib_quant_bytes(TOKENS, COLS));
        b.y = block((size_t)TOKENS * ROWS * sizeof *b.y);
        for (b.tokens = 1; b.tokens <= TOKENS; b.tokens *= b.tokens == 1 ? 8 : 32) {
            char name[80];
            kernels->quantize(b.q, b.x, COLS, b.tokens, COLS);
            (void)snprintf(name, sizeof name, "packed %s %dx%d, %d tokens", nib_dtype_find((uint32_t)types[i])->name,
                           ROWS, COLS, (int)b.tokens);
            cost each = {(double)b.w_bytes, 2.0 * ROWS * COLS * (double)b.tokens, INT8_OPERATIONS, true};
            print_line(name, seconds_a_call(call_packed, &b), each);
        }
    }
}

static void bench_quantize(const char *function) {
    enum { COLS = 2048, TOKENS = 8 };
    blocks_release();
    work b = {.x = fractions(TOKENS * COLS), .n = COLS, .q = block(nib_quant_bytes(TOKENS, COLS))};
    for (b.tokens = 1; b.tokens <= TOKENS && wanted(function, "quantize"); b.tokens *= TOKENS) {
        char name[80];
        double n = (double)(b.tokens * COLS);
        (void)snprintf(name, sizeof name, "quantize %d, %d tokens", COLS, (int)b.tokens);
        print_line(name, seconds_a_call(call_quantize, &b), (cost){n * 4 + n / 32 * 44, n, ELEMENTS, false});
    }
}

static void bench_attention_rows(work *b, int64_t E, int64_t n_q, nib_kv_type type) {
    const float *rows[MOST_ROWS];
    for (int i = 0; i < n_q; i++) {
        rows[i] = b->x + i * E;
    }
    b->rows = rows;
    b->tokens = n_q;
    b->shape = (nib_attn_shape){.E = E, .hi = NIB_GROUP - 1, .type = type};
    char name[80];
    (void)snprintf(name, sizeof name, "attn_group %s E=%d, %d rows", type == NIB_KV_F16 ? "f16" : "f32", (int)E,
                   (int)n_q);
    double pairs = (double)(NIB_GROUP * E), bytes = 2.0 * pairs * (type == NIB_KV_F16 ? 2 : 4);
    print_line(name, seconds_a_call(call_attn_group, b),
               (cost){bytes, (double)n_q * 4.0 * pairs, F32_OPERATIONS, false});
}

/* Query heads that share a kv head at one position, and at eight. */
static void bench_attention(work b, const char *function) {
    uint16_t *k = block(ROOM * sizeof *k), *v = block(ROOM * sizeof *v);
    kernels->to_f16(k, b.x, ROOM);
    kernels->to_f16(v, b.z, ROOM);
    for (int type = NIB_KV_F32; type <= NIB_KV_F16 && wanted(function, "attn_group"); type++) {
        b.k = type == NIB_KV_F32 ? (const void *)b.x : k;
        b.v = type == NIB_KV_F32 ? (const void *)b.z : v;
        for (int64_t E = 64; E <= 256; E *= 2) {
            bench_attention_rows(&b, E, 3, (nib_kv_type)type);
            bench_attention_rows(&b, E, MOST_ROWS, (nib_kv_type)type);
        }
    }
}

/* One row after the other, in the cache. `arrays`: how many are read or written. */
static void bench_rows(work b, const char *function) {
    static const struct {
        const char *name;
        work_fn call;
        double arrays;
    } rows[] = {{"rmsnorm", call_rmsnorm, 4},
                {"layernorm", call_layernorm, 6},
                {"add", call_add, 3},
                {"rope_halves", call_rope, 3},
                {"silu", call_silu, 3},
                {"gelu_tanh", call_gelu_tanh, 3},
                {"gelu_erf", call_gelu_erf, 3},
                {"exp", call_exp, 2},
                {"lse_block", call_lse, 2},
                {"to_f16", call_to_f16, 1.5},
                {"attn_merge", call_attn_merge, 3}};
    float *sums[8];
    for (int i = 0; i < 8; i++) {
        sums[i] = b.y + i * b.n / 8;
    }
    b.sums = sums;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (wanted(function, rows[i].name)) {
            double n = (double)b.n;
            print_line(rows[i].name, seconds_a_call(rows[i].call, &b),
                       (cost){rows[i].arrays * 4.0 * n, n, ELEMENTS, false});
        }
    }
}

static void map_stream(void) {
    stream = mmap(NULL, STREAM_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stream == MAP_FAILED) {
        perror("mmap");
        exit(7);
    }
}

void bench(const nib_kernels *table, const char *function) {
    kernels = table;
    check c = {.kernels = table, .function = "bench"};
    map_stream();
    measure_limits();
    bench_matmul(&c, function);
    bench_packed(&c, function);
    bench_quantize(function);
    blocks_release();
    float *x = block(ROOM * sizeof *x), *z = block(ROOM * sizeof *z);
    for (int i = 0; i < ROOM; i++) {
        x[i] = 2.0f * full_fraction(i);
        z[i] = full_fraction(i + 77777);
    }
    work b = {.x = x, .z = z, .y = block(ROOM * sizeof *b.y), .n = 2048};
    memset(b.y, 0, ROOM * sizeof *b.y);
    bench_rows(b, function);
    bench_attention(b, function);
    (void)munmap(stream, STREAM_BYTES);
}
