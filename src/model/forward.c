/* The block function: one for all architectures, steered by the table row. Rules: docs/numerics.md, 4 and 5.
 *
 * A pass is a row of stages, each a number of units for the pool's threads; a stage reads only what stages before it wrote,
 * and its units write apart. Layer after layer: rows in (residual, norm, int8), q k v, rotation and cache, attention,
 * its groups merged, int8, output product; rows in, gate and up with the activation, int8, down product. */
#include "model/forward.h"

#include <string.h>

#include "base/maths.h"
#include "kernel/pack.h"
#include "model/pass.h"

typedef enum stage {
    STAGE_EMBED,
    STAGE_ATTN_IN,
    STAGE_QKV,
    STAGE_TURN,
    STAGE_ATTEND,
    STAGE_MERGE,
    STAGE_ATTN_INT8,
    STAGE_ATTN_OUT,
    STAGE_FFN_IN,
    STAGE_GATE_UP,
    STAGE_FFN_INT8,
    STAGE_DOWN,
    STAGE_HEAD_IN,
    STAGE_HEAD
} stage;

/* Rows of a unit that works on rows: a group of quantised tokens. */
enum { UNIT_ROWS = NIB_QUANT_TOKENS };

/* Elements below which work on rows is not worth sharing: 1 to 2 microseconds. */
enum { SMALL_ELEMENTS = 4096 };

static void norm_row(const nib_pass *p, float *y, const float *x, const nib_norm *norm, int64_t n) {
    if (p->c->arch->norm == NIB_NORM_RMS) {
        p->k->rmsnorm(y, x, norm->weight, n, p->c->eps);
    } else {
        p->k->layernorm(y, x, norm->weight, norm->bias, n, p->c->eps);
    }
}

/* sin and cos in turn: element 2i is sin(pos / 10000^(2i/D)), 2i+1 its cos; added in binary32. */
static void add_sinusoids(float *x, int64_t pos, int64_t D) {
    for (int64_t e = 0; e < D; e++) {
        double freq = (double)(float)nib_pow(10000.0, -(double)(e - e % 2) / (double)D);
        double angle = (double)pos * freq;
        x[e] += (float)(e % 2 == 0 ? nib_sin(angle) : nib_cos(angle));
    }
}

/* The first of three products with the same input that wants it as int8; a if none. */
static const nib_linear *any_packed(const nib_linear *a, const nib_linear *b, const nib_linear *c) {
    return a->w.packed ? a : b->w.packed ? b : c->w.packed ? c : a;
}

/* ---- Work on rows. */

static void embed_row(const nib_pass *p, const nib_matrix *w, int64_t row, float *y) {
    if (w->packed) {
        nib_packed_row(y, w, row);
    } else {
        p->k->dequantize(y, w, row);
    }
}

/* The angles of row t: global frequencies first, then those of windowed layers. `like`: a row of the same position whose
 * angles are there, or -1. */
static void make_angles(const nib_pass *p, int64_t t, int64_t like) {
    int64_t half = p->c->rope_dim / 2;
    int64_t kinds = p->c->arch->window_period > 0 ? 2 : 1;
    for (int64_t kind = 0; kind < kinds && half > 0; kind++) {
        float *cos = p->w->cos + (kind * p->n + t) * half, *sin = p->w->sin + (kind * p->n + t) * half;
        if (like >= 0) {
            memcpy(cos, p->w->cos + (kind * p->n + like) * half, (size_t)half * sizeof *cos);
            memcpy(sin, p->w->sin + (kind * p->n + like) * half, (size_t)half * sizeof *sin);
            continue;
        }
        for (int64_t i = 0; i < half; i++) {
            double angle = (double)p->rows[t].pos * p->w->freq[kind * half + i];
            cos[i] = (float)(nib_cos(angle) * p->w->magnitude[kind]);
            sin[i] = (float)(nib_sin(angle) * p->w->magnitude[kind]);
        }
    }
}

static int64_t end_of_unit(const nib_pass *p, int64_t first) {
    return p->n - first < UNIT_ROWS ? p->n : first + UNIT_ROWS;
}

static void embed(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    const nib_config *c = p->c;
    int64_t first = (int64_t)unit * UNIT_ROWS, end = end_of_unit(p, first);
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        float *x = p->w->x + t * c->D;
        embed_row(p, &p->weights->embedding, p->rows[t].token, x);
        if (c->arch->scale_embedding) {
            p->k->scale(x, __builtin_sqrtf((float)c->D), c->D);
        }
        if (c->arch->position == NIB_POSITION_LEARNED) {
            float *y = p->w->y + t * c->D;
            embed_row(p, &p->weights->positions, p->rows[t].pos, y);
            p->k->add(x, y, c->D);
        } else if (c->arch->position == NIB_POSITION_SINUSOIDAL) {
            add_sinusoids(x, p->rows[t].pos, c->D);
        }
        make_angles(p, t, t > first && p->rows[t].pos == p->rows[t - 1].pos ? t - 1 : -1);
    }
}

/* Add to x what the sub-block before gave: `post` is the norm of models that have one around it or after it. */
static void add_residual(const nib_pass *p, int64_t t, const nib_norm *post) {
    const nib_config *c = p->c;
    float *x = p->w->x + t * c->D, *y = p->w->y + t * c->D;
    if (c->arch->place == NIB_NORM_AROUND) {
        norm_row(p, y, y, post, c->D);
    }
    p->k->add(x, y, c->D);
    if (c->arch->place == NIB_NORM_AFTER) {
        norm_row(p, x, x, post, c->D);
    }
}

/* h [m] = what a sub-block (or the head) reads of row t. */
static void enter_row(const nib_pass *p, int64_t m, int64_t t, const nib_norm *norm) {
    const nib_config *c = p->c;
    float *h = p->w->h + m * NIB_PAD16(c->D);
    const float *x = p->w->x + t * c->D;
    if (c->arch->place == NIB_NORM_AFTER) {
        memcpy(h, x, (size_t)c->D * sizeof *h);
    } else {
        norm_row(p, h, x, norm, c->D);
    }
}

/* The group of rows that begins with `first` as int8, if the product that reads them wants it so. */
static void quantize_rows(const nib_pass *p, const nib_linear *linear, const float *x, int64_t x_stride, int64_t first,
                          int64_t end) {
    if (linear->w.packed) {
        unsigned char *q = (unsigned char *)p->w->quant + nib_quant_bytes(first, linear->w.cols);
        p->k->quantize(q, x + first * x_stride, x_stride, end - first, linear->w.cols);
    }
}

/* The norm that follows a sub-block: after it, or around it. */
static const nib_norm *post_norm(const nib_pass *p, const nib_norm *after, const nib_norm *around) {
    return p->c->arch->place == NIB_NORM_AFTER ? after : around;
}

static void enter_attention(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t first = (int64_t)unit * UNIT_ROWS, end = end_of_unit(p, first);
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        if (p->index > 0) {
            const nib_layer *before = p->layer - 1;
            add_residual(p, t, post_norm(p, &before->ffn_norm, &before->ffn_post_norm));
        }
        enter_row(p, t, t, &p->layer->attn_norm);
    }
    quantize_rows(p, any_packed(&p->layer->q, &p->layer->k, &p->layer->v), p->w->h, NIB_PAD16(p->c->D), first, end);
}

static void enter_feed_forward(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t first = (int64_t)unit * UNIT_ROWS, end = end_of_unit(p, first);
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        add_residual(p, t, post_norm(p, &p->layer->attn_norm, &p->layer->attn_post_norm));
        enter_row(p, t, t, &p->layer->ffn_norm);
    }
    quantize_rows(p, any_packed(&p->layer->up, &p->layer->gate, &p->layer->up), p->w->h, NIB_PAD16(p->c->D), first,
                  end);
}

static void quantize_attention(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t first = (int64_t)unit * UNIT_ROWS;
    (void)thread;
    quantize_rows(p, &p->layer->o, p->w->a, NIB_PAD16(p->c->H * p->c->E), first, end_of_unit(p, first));
}

static void quantize_gate(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t first = (int64_t)unit * UNIT_ROWS;
    (void)thread;
    quantize_rows(p, &p->layer->down, p->w->gate, NIB_PAD16(p->c->F), first, end_of_unit(p, first));
}

/* Norm and rotation of the heads of one row, in place. */
static void turn_heads(const nib_pass *p, float *x, int64_t heads, const nib_norm *norm, const float *cos,
                       const float *sin) {
    const nib_config *c = p->c;
    for (int64_t h = 0; h < heads; h++) {
        float *head = x + h * c->E;
        if (c->arch->qk_norm) {
            norm_row(p, head, head, norm, c->E);
        }
        if (c->arch->position == NIB_POSITION_ROPE_PAIRS) {
            p->k->rope_pairs(head, cos, sin, c->rope_dim / 2);
        } else if (c->arch->position == NIB_POSITION_ROPE_HALVES) {
            p->k->rope_halves(head, cos, sin, c->rope_dim / 2);
        }
    }
}

/* k and v go into the cache before any row attends. */
static void turn(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    const nib_config *c = p->c;
    nib_work *w = p->w;
    int64_t half = c->rope_dim / 2, first = (int64_t)unit * UNIT_ROWS, end = end_of_unit(p, first);
    int64_t kind = nib_config_is_global(c, p->index) || c->arch->window_period == 0 ? 0 : 1;
    (void)thread;
    for (int64_t t = first; t < end; t++) {
        const float *cos = w->cos + (kind * p->n + t) * half;
        const float *sin = w->sin + (kind * p->n + t) * half;
        float *q = w->q + t * c->H * c->E;
        float *k = w->k + t * c->K * c->E;
        turn_heads(p, q, c->H, &p->layer->q_norm, cos, sin);
        turn_heads(p, k, c->K, &p->layer->k_norm, cos, sin);
        p->k->scale(q, c->q_scale, c->H * c->E);
        nib_kv_put(p->rows[t].kv, p->k, p->index, p->rows[t].pos, k, w->v + t * c->K * c->E);
    }
}

/* ---- Products: units are runs of strips of 16 rows, of several matrices one after the other, and of tokens. */

/* y of rows row0 .. row1-1 for tokens t .. t+n-1. */
static void product(const nib_pass *p, float *y, int64_t y_stride, const nib_linear *linear, int64_t row0, int64_t row1,
                    const float *x, int64_t x_stride, int64_t t, int64_t n) {
    const nib_matrix *w = &linear->w;
    y += t * y_stride;
    if (w->packed) {
        const unsigned char *q = (const unsigned char *)p->w->quant + nib_quant_bytes(t, w->cols);
        p->k->packed_matmul(y, y_stride, w, row0, row1, q, n, linear->bias);
    } else {
        p->k->matmul(y, y_stride, w, row0, row1, x + t * x_stride, x_stride, n, linear->bias);
    }
}

/* What a unit of a product stage covers: strips first .. first + n - 1 of all its matrices, tokens t .. t + n_t - 1. */
typedef struct share {
    int64_t strip, n_strips, t, n_t;
} share;

/* Threads take units by turns; so that each goes through neighbouring pieces, and what it asked for ahead is what it reads
 * next, turn u of T threads is piece u / T of the T-th part that is its own. */
static int64_t piece_of_turn(int64_t turn, int64_t pieces, int64_t threads) {
    int64_t each = pieces / threads;
    return turn < each * threads ? turn % threads * each + turn / threads : turn;
}

static share share_of(const nib_pass *p, int unit, int64_t strips, int64_t tokens) {
    int64_t pieces = (strips + p->unit_strips - 1) / p->unit_strips, part = unit / pieces;
    int64_t piece = piece_of_turn(unit % pieces, pieces, nib_pool_n(p->context->pool));
    share s = {piece * p->unit_strips, p->unit_strips, part * p->unit_tokens, p->unit_tokens};
    s.n_strips = strips - s.strip < s.n_strips ? strips - s.strip : s.n_strips;
    s.n_t = tokens - s.t < s.n_t ? tokens - s.t : s.n_t;
    return s;
}

/* The part of a share that falls on a matrix whose strips begin at `base`: its rows; false when there is none. */
static bool rows_of_share(int64_t *row0, int64_t *row1, const share *s, const nib_linear *linear, int64_t base) {
    int64_t strips = nib_strips(linear->w.rows), from = s->strip - base, to = from + s->n_strips;
    from = from > 0 ? from : 0;
    to = to < strips ? to : strips;
    *row0 = from * NIB_STRIP;
    *row1 = to * NIB_STRIP < linear->w.rows ? to * NIB_STRIP : linear->w.rows;
    return from < to;
}

static int64_t strips_of(const nib_linear *linear) {
    return nib_strips(linear->w.rows);
}

static void qkv(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    const nib_config *c = p->c;
    const nib_linear *linears[] = {&p->layer->q, &p->layer->k, &p->layer->v};
    float *const outs[] = {p->w->q, p->w->k, p->w->v};
    const int64_t strides[] = {c->H * c->E, c->K * c->E, c->K * c->E};
    share s = share_of(p, unit, strips_of(linears[0]) + strips_of(linears[1]) + strips_of(linears[2]), p->n);
    int64_t base = 0;
    (void)thread;
    for (int i = 0; i < 3; base += strips_of(linears[i]), i++) {
        int64_t row0, row1;
        if (rows_of_share(&row0, &row1, &s, linears[i], base)) {
            product(p, outs[i], strides[i], linears[i], row0, row1, p->w->h, NIB_PAD16(c->D), s.t, s.n_t);
        }
    }
}

static void attention_out(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    share s = share_of(p, unit, strips_of(&p->layer->o), p->n);
    int64_t row0, row1;
    (void)thread;
    (void)rows_of_share(&row0, &row1, &s, &p->layer->o, 0);
    product(p, p->w->y, p->c->D, &p->layer->o, row0, row1, p->w->a, NIB_PAD16(p->c->H * p->c->E), s.t, s.n_t);
}

static void activate(const nib_pass *p, float *gate, const float *up, int64_t n) {
    switch (p->c->arch->ffn) {
    case NIB_FFN_SILU_GATED: p->k->silu(gate, up, n); return;
    case NIB_FFN_GELU_TANH_GATED: p->k->gelu_tanh(gate, up, n); return;
    case NIB_FFN_GELU_TANH: p->k->gelu_tanh(gate, NULL, n); return;
    case NIB_FFN_GELU_ERF: p->k->gelu_erf(gate, NULL, n); return;
    }
}

/* The same rows of gate and up, and the activation of them. */
static void gate_up(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t F = p->c->F, stride = NIB_PAD16(F), h_stride = NIB_PAD16(p->c->D);
    bool gated = p->layer->gate.w.data != NULL;
    const nib_linear *first = gated ? &p->layer->gate : &p->layer->up;
    share s = share_of(p, unit, strips_of(first), p->n);
    int64_t row0, row1;
    (void)thread;
    (void)rows_of_share(&row0, &row1, &s, first, 0);
    product(p, p->w->gate, stride, first, row0, row1, p->w->h, h_stride, s.t, s.n_t);
    if (gated) {
        product(p, p->w->up, F, &p->layer->up, row0, row1, p->w->h, h_stride, s.t, s.n_t);
    }
    for (int64_t t = s.t; t < s.t + s.n_t; t++) {
        activate(p, p->w->gate + t * stride + row0, gated ? p->w->up + t * F + row0 : NULL, row1 - row0);
    }
}

static void down(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    share s = share_of(p, unit, strips_of(&p->layer->down), p->n);
    int64_t row0, row1;
    (void)thread;
    (void)rows_of_share(&row0, &row1, &s, &p->layer->down, 0);
    product(p, p->w->y, p->c->D, &p->layer->down, row0, row1, p->w->gate, NIB_PAD16(p->c->F), s.t, s.n_t);
}

/* ---- The head: for rows head_first .. head_first + head_n - 1, whose logits lie one after the other. */

static void enter_head(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    int64_t first = (int64_t)unit * UNIT_ROWS;
    int64_t end = p->head_n - first < UNIT_ROWS ? p->head_n : first + UNIT_ROWS;
    (void)thread;
    for (int64_t m = first; m < end; m++) {
        const nib_layer *last = &p->weights->layers[p->c->L - 1];
        add_residual(p, p->head_first + m, post_norm(p, &last->ffn_norm, &last->ffn_post_norm));
        enter_row(p, m, p->head_first + m, &p->weights->last_norm);
    }
    quantize_rows(p, &p->weights->head, p->w->h, NIB_PAD16(p->c->D), first, end);
}

static void head(void *pass, int unit, int thread) {
    const nib_pass *p = pass;
    share s = share_of(p, unit, strips_of(&p->weights->head), p->head_n);
    int64_t row0, row1;
    (void)thread;
    (void)rows_of_share(&row0, &row1, &s, &p->weights->head, 0);
    product(p, p->rows[p->head_first].logits, p->c->V, &p->weights->head, row0, row1, p->w->h, NIB_PAD16(p->c->D), s.t,
            s.n_t);
}

/* The next run of wanted rows behind those of before; false when there is none. */
static bool next_head(nib_pass *p) {
    int64_t t = p->head_first + p->head_n, n = 0;
    while (t < p->n && p->rows[t].logits == NULL) {
        t++;
    }
    while (t + n < p->n && p->rows[t + n].logits == p->rows[t].logits + n * p->c->V) {
        n++;
    }
    p->head_first = t;
    p->head_n = n;
    return n > 0;
}

/* ---- Stages. */

/* A stage over rows, for n of them. */
static nib_step rows_step(void (*run)(void *, int, int), int64_t n, int64_t width) {
    return (nib_step){(int)((n + UNIT_ROWS - 1) / UNIT_ROWS), n * width < SMALL_ELEMENTS, run};
}

/* A stage of products over so many strips of `linear`'s kind (times `matrices` that a unit computes at once), for n
 * tokens. A unit takes about 2 microseconds or more, but there should be several for each thread. */
static nib_step product_step(nib_pass *p, void (*run)(void *, int, int), const nib_linear *linear, int64_t strips,
                             int64_t matrices, int64_t n) {
    enum { UNIT_PRODUCTS = 1 << 19, UNIT_BYTES = 1 << 17, UNITS_A_THREAD = 3 };
    int64_t threads = nib_pool_n(p->context->pool);
    int64_t products = NIB_STRIP * linear->w.cols * n * matrices;
    int64_t bytes = NIB_STRIP * (int64_t)linear->w.row_bytes * matrices;
    int64_t by_products = UNIT_PRODUCTS / products, by_bytes = UNIT_BYTES / bytes;
    int64_t size = by_products < by_bytes ? by_products : by_bytes;
    int64_t most = strips / (UNITS_A_THREAD * threads);
    size = size < most ? size : most;
    size = size > 1 ? size : 1;
    size = strips / size > NIB_STEP_UNITS ? strips / NIB_STEP_UNITS + 1 : size;
    int64_t pieces = (strips + size - 1) / size, parts = 1;
    if (pieces < 4 * threads && n >= 4 * NIB_QUANT_TOKENS) {
        parts = 4 * threads / pieces;
    }
    int64_t tokens = (n + parts - 1) / parts;
    tokens = (tokens + NIB_QUANT_TOKENS - 1) / NIB_QUANT_TOKENS * NIB_QUANT_TOKENS;
    p->unit_strips = size;
    p->unit_tokens = tokens;
    return (nib_step){(int)(pieces * ((n + tokens - 1) / tokens)), false, run};
}

static nib_step stage_step(nib_pass *p) {
    const nib_config *c = p->c;
    const nib_layer *layer = p->layer;
    nib_step none = {0, true, NULL};
    switch ((stage)p->stage) {
    case STAGE_EMBED: return rows_step(embed, p->n, 8 * c->D);
    case STAGE_ATTN_IN: return rows_step(enter_attention, p->n, c->D);
    case STAGE_QKV:
        return product_step(p, qkv, &layer->q, strips_of(&layer->q) + strips_of(&layer->k) + strips_of(&layer->v), 1,
                            p->n);
    case STAGE_TURN: return rows_step(turn, p->n, (c->H + 2 * c->K) * c->E);
    case STAGE_ATTEND: {
        int units = nib_attend_plan_layer(p, nib_pool_n(p->context->pool));
        return (nib_step){units, nib_attend_is_small(p), nib_attend};
    }
    case STAGE_MERGE:
        return p->plan.runs == 1 ? none : (nib_step){(int)(p->n * c->K), p->n * c->K == 1, nib_attend_merge};
    case STAGE_ATTN_INT8: return layer->o.w.packed ? rows_step(quantize_attention, p->n, c->H * c->E) : none;
    case STAGE_ATTN_OUT: return product_step(p, attention_out, &layer->o, strips_of(&layer->o), 1, p->n);
    case STAGE_FFN_IN: return rows_step(enter_feed_forward, p->n, c->D);
    case STAGE_GATE_UP: {
        int64_t matrices = layer->gate.w.data != NULL ? 2 : 1;
        return product_step(p, gate_up, &layer->up, strips_of(&layer->up), matrices, p->n);
    }
    case STAGE_FFN_INT8: return layer->down.w.packed ? rows_step(quantize_gate, p->n, c->F) : none;
    case STAGE_DOWN: return product_step(p, down, &layer->down, strips_of(&layer->down), 1, p->n);
    case STAGE_HEAD_IN: return rows_step(enter_head, p->head_n, c->D);
    case STAGE_HEAD: return product_step(p, head, &p->weights->head, strips_of(&p->weights->head), 1, p->head_n);
    }
    return none;
}

/* Moves the pass to its next stage; false at the end. */
static bool advance(nib_pass *p) {
    if (p->stage == STAGE_DOWN && p->index + 1 < p->c->L) {
        p->index++;
        p->stage = STAGE_ATTN_IN;
    } else if (p->stage == STAGE_DOWN || p->stage == STAGE_HEAD) {
        p->stage = STAGE_HEAD_IN;
        return next_head(p);
    } else {
        p->stage++;
    }
    if (p->stage == STAGE_ATTN_IN) {
        p->layer = &p->weights->layers[p->index];
        p->cancelled = atomic_load_explicit(p->context->cancel, memory_order_relaxed) != 0;
    }
    return !p->cancelled;
}

static bool next_step(nib_step *step, void *arg) {
    nib_pass *p = arg;
    if (!advance(p)) {
        return false;
    }
    *step = stage_step(p);
    return true;
}

nib_status nib_forward(const nib_forward_context *context, const nib_forward_row *rows, int64_t n, nib_error *err) {
    const nib_config *c = context->config;
    int threads = nib_pool_n(context->pool);
    nib_pass p = {.context = context,
                  .c = c,
                  .k = context->kernels,
                  .weights = context->weights,
                  .w = context->work,
                  .rows = rows,
                  .n = n,
                  .stage = STAGE_EMBED - 1};
    nib_status status = nib_work_reserve(context->work, c, n, threads, err);
    if (status != NIB_OK) {
        return status;
    }
    p.n_tiles = nib_attend_tiles(context->work, c, rows, n);
    status = nib_work_reserve_kept(context->work, nib_attend_kept_bytes(c, p.n_tiles, rows, n, threads), err);
    if (status != NIB_OK) {
        return status;
    }
    nib_pool_run(context->pool, next_step, &p);
    if (context->kv_bytes != NULL) {
        *context->kv_bytes += p.kv_bytes;
    }
    return p.cancelled ? NIB_ECANCELLED : NIB_OK;
}
