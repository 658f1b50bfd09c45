/* The block function: one for all architectures, steered by the table row. Rules: docs/numerics.md, 4 and 5. */
#include "model/forward.h"

#include <math.h>
#include <string.h>

#include "base/maths.h"

/* The list, with what every step needs at hand. */
typedef struct pass {
    const nib_forward_context *context;
    const nib_config *c;
    const nib_kernels *k;
    nib_work *w;
    const nib_forward_row *rows;
    int64_t n;
} pass;

static void product(const pass *p, float *y, int64_t y_stride, const nib_linear *linear, const float *x,
                    int64_t x_stride) {
    p->k->matmul(y, y_stride, &linear->w, 0, linear->w.rows, x, x_stride, p->n, linear->bias);
}

static void norm_row(const pass *p, float *y, const float *x, const nib_norm *norm, int64_t n) {
    if (p->c->arch->norm == NIB_NORM_RMS) {
        p->k->rmsnorm(y, x, norm->weight, n, p->c->eps);
    } else {
        p->k->layernorm(y, x, norm->weight, norm->bias, n, p->c->eps);
    }
}

/* Norm of rows [n][D]; y and x may be the same. */
static void norm_rows(const pass *p, float *y, int64_t y_stride, const float *x, const nib_norm *norm) {
    for (int64_t t = 0; t < p->n; t++) {
        norm_row(p, y + t * y_stride, x + t * p->c->D, norm, p->c->D);
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

static void embed(const pass *p) {
    const nib_weights *weights = p->context->weights;
    const nib_config *c = p->c;
    for (int64_t t = 0; t < p->n; t++) {
        float *x = p->w->x + t * c->D;
        p->k->dequantize(x, &weights->embedding, p->rows[t].token);
        if (c->arch->scale_embedding) {
            p->k->scale(x, __builtin_sqrtf((float)c->D), c->D);
        }
        if (c->arch->position == NIB_POSITION_LEARNED) {
            p->k->dequantize(p->w->y, &weights->positions, p->rows[t].pos);
            p->k->add(x, p->w->y, c->D);
        } else if (c->arch->position == NIB_POSITION_SINUSOIDAL) {
            add_sinusoids(x, p->rows[t].pos, c->D);
        }
    }
}

/* The angles of every row, once for all layers: global frequencies first, then those of windowed layers. */
static void make_angles(const pass *p) {
    int64_t half = p->c->rope_dim / 2;
    int64_t kinds = p->c->arch->window_period > 0 ? 2 : 1;
    for (int64_t kind = 0; kind < kinds; kind++) {
        for (int64_t t = 0; t < p->n; t++) {
            int64_t at = (kind * p->n + t) * half;
            for (int64_t i = 0; i < half; i++) {
                double angle = (double)p->rows[t].pos * p->w->freq[kind * half + i];
                p->w->cos[at + i] = (float)nib_cos(angle);
                p->w->sin[at + i] = (float)nib_sin(angle);
            }
        }
    }
}

/* Norm and rotation of the heads of one row, in place. */
static void turn_heads(const pass *p, float *x, int64_t heads, const nib_norm *norm, const float *cos,
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

/* q, k and v of all rows; k and v go into the cache before any row attends. */
static void make_qkv(const pass *p, int64_t index) {
    const nib_config *c = p->c;
    const nib_layer *layer = &p->context->weights->layers[index];
    nib_work *w = p->w;
    int64_t half = c->rope_dim / 2;
    int64_t kind = nib_config_is_global(c, index) || c->arch->window_period == 0 ? 0 : 1;
    product(p, w->q, c->H * c->E, &layer->q, w->h, NIB_PAD16(c->D));
    product(p, w->k, c->K * c->E, &layer->k, w->h, NIB_PAD16(c->D));
    product(p, w->v, c->K * c->E, &layer->v, w->h, NIB_PAD16(c->D));
    for (int64_t t = 0; t < p->n; t++) {
        const float *cos = w->cos + (kind * p->n + t) * half;
        const float *sin = w->sin + (kind * p->n + t) * half;
        float *q = w->q + t * c->H * c->E;
        float *k = w->k + t * c->K * c->E;
        turn_heads(p, q, c->H, &layer->q_norm, cos, sin);
        turn_heads(p, k, c->K, &layer->k_norm, cos, sin);
        p->k->scale(q, c->q_scale, c->H * c->E);
        nib_kv_store(p->rows[t].kv, index, p->rows[t].pos, k, w->v + t * c->K * c->E);
    }
}

/* All query heads of one kv head and row, group after group. */
static void attend(const pass *p, int64_t index, int64_t t, int64_t kv_head) {
    const nib_config *c = p->c;
    const nib_forward_row *row = &p->rows[t];
    int64_t n_q = c->H / c->K;
    float *sum = p->w->a + t * NIB_PAD16(c->H * c->E) + kv_head * n_q * c->E;
    const float *q = p->w->q + (t * c->H + kv_head * n_q) * c->E;
    int64_t first = nib_config_is_global(c, index) || row->pos < c->window ? 0 : row->pos - c->window + 1;
    nib_attn_state running[64], group[64];
    for (int64_t done = 0; done < n_q; done += 64) {
        int64_t m = n_q - done < 64 ? n_q - done : 64;
        for (int64_t h = 0; h < m; h++) {
            running[h] = (nib_attn_state){-INFINITY, 0.0f};
        }
        memset(sum + done * c->E, 0, (size_t)(m * c->E) * sizeof(float));
        for (int64_t g = first / NIB_GROUP; g <= row->pos / NIB_GROUP; g++) {
            int64_t start = g * NIB_GROUP;
            nib_attn_shape shape = {c->E, first > start ? first - start : 0,
                                    row->pos - start < NIB_GROUP ? row->pos - start : NIB_GROUP - 1, 0.0f};
            p->k->attn_group(group, p->w->group_o, c->E, q + done * c->E, c->E, m,
                             nib_kv_keys(row->kv, index, kv_head, g), nib_kv_values(row->kv, index, kv_head, g),
                             &shape);
            for (int64_t h = 0; h < m; h++) {
                p->k->attn_merge(&running[h], sum + (done + h) * c->E, &group[h], p->w->group_o + h * c->E, c->E);
            }
        }
        for (int64_t h = 0; h < m; h++) {
            p->k->attn_finish(sum + (done + h) * c->E, running[h].l, c->E);
        }
    }
}

static void attention(const pass *p, int64_t index) {
    make_qkv(p, index);
    for (int64_t t = 0; t < p->n; t++) {
        for (int64_t kv_head = 0; kv_head < p->c->K; kv_head++) {
            attend(p, index, t, kv_head);
        }
    }
    product(p, p->w->y, p->c->D, &p->context->weights->layers[index].o, p->w->a, NIB_PAD16(p->c->H * p->c->E));
}

static void activate(const pass *p, float *gate, const float *up) {
    switch (p->c->arch->ffn) {
    case NIB_FFN_SILU_GATED: p->k->silu(gate, up, p->c->F); return;
    case NIB_FFN_GELU_TANH_GATED: p->k->gelu_tanh(gate, up, p->c->F); return;
    case NIB_FFN_GELU_TANH: p->k->gelu_tanh(gate, NULL, p->c->F); return;
    case NIB_FFN_GELU_ERF: p->k->gelu_erf(gate, NULL, p->c->F); return;
    }
}

static void feed_forward(const pass *p, int64_t index) {
    const nib_layer *layer = &p->context->weights->layers[index];
    nib_work *w = p->w;
    int64_t F = p->c->F, stride = NIB_PAD16(p->c->F);
    bool gated = layer->gate.w.data != NULL;
    product(p, w->gate, stride, gated ? &layer->gate : &layer->up, w->h, NIB_PAD16(p->c->D));
    if (gated) {
        product(p, w->up, F, &layer->up, w->h, NIB_PAD16(p->c->D));
    }
    for (int64_t t = 0; t < p->n; t++) {
        activate(p, w->gate + t * stride, gated ? w->up + t * F : NULL);
    }
    product(p, w->y, p->c->D, &layer->down, w->gate, stride);
}

/* One sub-block with its norms and residual. */
static void sub_block(const pass *p, int64_t index, void (*compute)(const pass *, int64_t), const nib_norm *norm,
                      const nib_norm *post) {
    const nib_config *c = p->c;
    int64_t stride = NIB_PAD16(c->D);
    if (c->arch->place == NIB_NORM_AFTER) {
        for (int64_t t = 0; t < p->n; t++) {
            memcpy(p->w->h + t * stride, p->w->x + t * c->D, (size_t)c->D * sizeof(float));
        }
    } else {
        norm_rows(p, p->w->h, stride, p->w->x, norm);
    }
    compute(p, index);
    if (c->arch->place == NIB_NORM_AROUND) {
        norm_rows(p, p->w->y, c->D, p->w->y, post);
    }
    p->k->add(p->w->x, p->w->y, p->n * c->D);
    if (c->arch->place == NIB_NORM_AFTER) {
        norm_rows(p, p->w->x, c->D, p->w->x, norm);
    }
}

/* Logits of the rows that want them. Rows whose logits lie one after the other go through the head together. */
static void head(const pass *p) {
    const nib_weights *weights = p->context->weights;
    const nib_config *c = p->c;
    int64_t stride = NIB_PAD16(c->D);
    for (int64_t t = 0; t < p->n;) {
        int64_t m = 0;
        while (t + m < p->n && p->rows[t].logits != NULL && p->rows[t + m].logits == p->rows[t].logits + m * c->V) {
            const float *x = p->w->x + (t + m) * c->D;
            if (c->arch->place == NIB_NORM_AFTER) {
                memcpy(p->w->h + m * stride, x, (size_t)c->D * sizeof(float));
            } else {
                norm_row(p, p->w->h + m * stride, x, &weights->last_norm, c->D);
            }
            m++;
        }
        if (m > 0) {
            p->k->matmul(p->rows[t].logits, c->V, &weights->head.w, 0, c->V, p->w->h, stride, m, weights->head.bias);
        }
        t += m > 0 ? m : 1;
    }
}

bool nib_forward(const nib_forward_context *context, const nib_forward_row *rows, int64_t n) {
    pass p = {context, context->config, context->kernels, context->work, rows, n};
    embed(&p);
    if (p.c->rope_dim > 0) {
        make_angles(&p);
    }
    for (int64_t i = 0; i < p.c->L; i++) {
        const nib_layer *layer = &context->weights->layers[i];
        if (atomic_load_explicit(context->cancel, memory_order_relaxed) != 0) {
            return false;
        }
        sub_block(&p, i, attention, &layer->attn_norm, &layer->attn_post_norm);
        sub_block(&p, i, feed_forward, &layer->ffn_norm, &layer->ffn_post_norm);
    }
    head(&p);
    return true;
}
