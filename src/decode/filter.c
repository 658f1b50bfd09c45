/* The filters, which take tokens away before one is drawn. Each computes its probabilities over the tokens that the
 * ones before it left, and leaves one at least. Nothing sorts the whole vocabulary unless the mass needs it.
 * docs/sampling.md for the rules, docs/numerics.md, rule 5, for the sums. */
#include <math.h> /* INFINITY */

#include "base/maths.h"
#include "decode/order.h"
#include "decode/sampler_parts.h"

enum {
    BLOCK = NIB_SAMPLER_BLOCK,
    SORT_FIRST = 256 /* tokens sorted before the first look at their mass */
};

/* ---- the list of kept tokens ---- */

/* Writes the list into kept, and looks at it from now on. Without a list all is as it is. */
static void show(nib_sampler *s) {
    if (!s->listed || s->shown) {
        return;
    }
    s->now.max = -INFINITY;
    for (size_t i = 0; i < s->n_key; i++) {
        int32_t id = nib_order_id(s->key[i]);
        float l = s->all[id];
        s->kept[id] = l;
        s->kept_max[id / BLOCK] = l > s->kept_max[id / BLOCK] ? l : s->kept_max[id / BLOCK];
        s->now.max = l > s->now.max ? l : s->now.max;
    }
    s->now.l = s->kept;
    s->now.block_max = s->kept_max;
    s->shown = true;
}

void nib_sampler_hide(nib_sampler *s) {
    for (size_t i = 0; i < s->n_key && s->shown; i++) {
        int32_t id = nib_order_id(s->key[i]);
        s->kept[id] = -INFINITY;
        s->kept_max[id / BLOCK] = -INFINITY;
    }
    s->shown = false;
}

/* Lists the tokens of logits with l >= low and l > -infinity, in id order. */
static void list_logits(nib_sampler *s, const nib_logits *logits, double low) {
    size_t n = 0;
    for (int64_t b = 0; b < s->blocks; b++) {
        float max = logits->block_max[b];
        if (!((double)max >= low) || !(max > -INFINITY)) {
            continue;
        }
        int64_t first = b * BLOCK, end = first + BLOCK < s->V ? first + BLOCK : s->V;
        for (int64_t id = first; id < end; id++) {
            float l = logits->l[id];
            s->key[n] = nib_order_key(l, (int32_t)id); /* n <= id, so there is room */
            n += (double)l >= low && l > -INFINITY;
        }
    }
    s->n_key = n;
}

/* Makes a list of the tokens with l >= low, where there is none, and lets it be changed. */
static void list_above(nib_sampler *s, double low) {
    nib_sampler_hide(s);
    if (!s->listed) {
        list_logits(s, &s->now, low);
        s->listed = true;
    }
}

static void list_all(nib_sampler *s) {
    list_above(s, -INFINITY);
}

/* A logit that at least `want` tokens reach: the want-th largest of the blocks' largest. -infinity when there are fewer
 * blocks. For a want far below V it leaves a few times want tokens, found by one look at each block. */
static double reached_by(nib_sampler *s, const nib_logits *logits, size_t want) {
    if (want >= (size_t)s->blocks) {
        return -INFINITY;
    }
    for (int64_t b = 0; b < s->blocks; b++) {
        s->key[b] = nib_order_key(logits->block_max[b], (int32_t)b);
    }
    nib_order_select(s->key, (size_t)s->blocks, want);
    float low = INFINITY;
    for (size_t i = 0; i < want; i++) {
        float max = nib_order_logit(s->key[i]);
        low = max < low ? max : low;
    }
    return (double)low;
}

void nib_sampler_list_top(nib_sampler *s, const nib_logits *logits, size_t n) {
    list_logits(s, logits, reached_by(s, logits, n));
    if (s->n_key > n) {
        nib_order_select(s->key, s->n_key, n);
        s->n_key = n;
    }
}

/* ---- sums over what may be drawn ---- */

static float tempered(const nib_sampler *s, float l, double T) {
    return nib_tempered(l, s->now.max, T);
}

/* Sum of exp(x). */
static double mass(nib_sampler *s, double T) {
    nib_logsum sum;
    show(s);
    nib_logsum_tempered(&sum, s->sum_m, s->sum_s, s->kernels, &s->now, T);
    return sum.total;
}

/* Sum of exp(x) x, in double, ids ascending: divided by the mass it is the mean of x, and log(mass) minus that is the
 * entropy. *n counts the tokens. */
static double weighted_sum(size_t *n, nib_sampler *s, double T) {
    double sum = 0;
    show(s);
    *n = 0;
    for (int64_t id = 0; id < s->V; id++) {
        if (!(s->now.block_max[id / BLOCK] > -INFINITY)) {
            id += BLOCK - 1 - id % BLOCK;
            continue;
        }
        *n += s->now.l[id] > -INFINITY;
        double x = (double)tempered(s, s->now.l[id], T), e = nib_exp(x);
        sum += e > 0 ? e * x : 0;
    }
    return sum;
}

/* The standard deviation of the logits, of which there are n: ids ascending, mean first. */
static double deviation(nib_sampler *s) {
    double mean = 0, squares = 0;
    size_t n = 0;
    show(s);
    for (int turn = 0; turn < 2; turn++) {
        for (int64_t id = 0; id < s->V; id++) {
            double l = (double)s->now.l[id];
            if (!(l > (double)-INFINITY)) {
                continue;
            }
            mean += turn == 0 ? l : 0;
            n += turn == 0;
            squares += turn == 1 ? (l - mean) * (l - mean) : 0;
        }
        mean = turn == 0 ? mean / (double)n : mean;
    }
    return __builtin_sqrt(squares / (double)n);
}

/* ---- the filters ---- */

static void keep_top_k(nib_sampler *s, size_t k, bool ties) {
    list_above(s, s->listed ? -INFINITY : reached_by(s, &s->now, k));
    if (s->n_key <= k) {
        return;
    }
    nib_order_select(s->key, s->n_key, k);
    size_t n = k;
    float low = INFINITY;
    for (size_t i = 0; i < k && ties; i++) {
        float l = s->all[nib_order_id(s->key[i])];
        low = l < low ? l : low;
    }
    for (size_t i = k; i < s->n_key && ties; i++) {
        if (s->all[nib_order_id(s->key[i])] == low) {
            s->key[n++] = s->key[i];
        }
    }
    s->n_key = n;
}

/* Cuts the list, largest key first, where the mass before a token has reached limit; the first token stays in any case.
 * The list is sorted a stretch at a time. False when the whole list does not reach it. */
static bool cut_at_mass(nib_sampler *s, double limit, double T) {
    double before = 0;
    size_t sorted = 0, stretch = SORT_FIRST;
    for (size_t i = 0; i < s->n_key; i++) {
        if (i > 0 && !(before < limit)) {
            s->n_key = i;
            return true;
        }
        if (i == sorted) {
            size_t left = s->n_key - sorted, n = stretch < left ? stretch : left;
            nib_order_select(s->key + sorted, left, n);
            nib_order_sort(s->key + sorted, n);
            sorted += n;
            stretch = 3 * sorted;
        }
        before += nib_exp((double)tempered(s, s->all[nib_order_id(s->key[i])], T));
    }
    return !(before < limit);
}

/* The smallest set of best tokens whose mass reaches p. */
static void keep_top_p(nib_sampler *s, double p, double T) {
    double total = mass(s, T), limit = p * total;
    if (s->listed) {
        list_all(s);
        (void)cut_at_mass(s, limit, T);
        return;
    }
    /* Mostly a list above the middle one of the blocks' largest will do. If not, tokens of less than (1 - p) Z / V have
     * no more than (1 - p) Z together, so the others reach p Z, but for the rounding: then all of them. */
    double rest = 0.999 * (1 - p) * total / (double)s->V;
    const double low[] = {reached_by(s, &s->now, (size_t)s->blocks / 2 + 1), (double)s->now.max + T * nib_log(rest),
                          -INFINITY};
    for (size_t i = 0; i < sizeof low / sizeof *low; i++) {
        s->listed = false;
        list_above(s, low[i]);
        if (cut_at_mass(s, limit, T)) {
            return;
        }
    }
}

/* Keeps exp(x) >= least, the best having exp(x) = 1 >= least. Two bounds around log(least), wider apart than any
 * rounding of x, spare most tokens the exponential. */
static void keep_likely(nib_sampler *s, double least, double T) {
    double log_p = nib_log(least), slack = 1e-6 * (1 - log_p);
    show(s);
    double l_max = (double)s->now.max;
    list_above(s, l_max + T * (log_p - slack) - 1e-6 * (l_max < 0 ? -l_max : l_max));
    size_t n = 0;
    for (size_t i = 0; i < s->n_key; i++) {
        double x = (double)tempered(s, s->all[nib_order_id(s->key[i])], T);
        if (x > log_p + slack || (x > log_p - slack && nib_exp(x) >= least)) {
            s->key[n++] = s->key[i];
        }
    }
    s->n_key = n;
}

/* Keeps tokens of probability p and more, and the best. */
static void keep_probable(nib_sampler *s, double p, double T) {
    double least = p * mass(s, T);
    if (least > 0) {
        keep_likely(s, least < 1 ? least : 1, T);
    }
}

static void keep_eta(nib_sampler *s, double epsilon, double T) {
    size_t n;
    double total = mass(s, T), entropy = nib_log(total) - weighted_sum(&n, s, T) / total;
    double eta = __builtin_sqrt(epsilon) * nib_exp(-entropy);
    keep_probable(s, eta < epsilon ? eta : epsilon, T);
}

/* The smallest set of the tokens nearest to the mean information whose mass reaches p. A token's distance from it is
 * that of its x from the mean of x, rounded to binary32; ties to the lower id. */
static void keep_typical(nib_sampler *s, double p, double T) {
    size_t n;
    double total = mass(s, T), mean = weighted_sum(&n, s, T) / total;
    list_all(s);
    for (size_t i = 0; i < s->n_key; i++) {
        int32_t id = nib_order_id(s->key[i]);
        double shift = mean - (double)tempered(s, s->all[id], T);
        s->key[i] = nib_order_key((float)(shift < 0 ? shift : -shift), id);
    }
    (void)cut_at_mass(s, p * total, T);
    for (size_t i = 0; i < s->n_key; i++) {
        int32_t id = nib_order_id(s->key[i]);
        s->key[i] = nib_order_key(s->all[id], id);
    }
}

/* Keeps logits of n standard deviations below the largest and above. */
static void keep_top_n_sigma(nib_sampler *s, double n) {
    double low = -n * deviation(s);
    low += (double)s->now.max;
    list_above(s, low);
    size_t kept = 0;
    for (size_t i = 0; i < s->n_key; i++) {
        if ((double)s->all[nib_order_id(s->key[i])] >= low) {
            s->key[kept++] = s->key[i];
        }
    }
    s->n_key = kept;
}

/* "Exclude top choices": of the tokens of probability `threshold` and more only the least likely stays, whenever the
 * place's own number says so. */
static void exclude_top(nib_sampler *s, const nib_sample_params *params, const nib_noise *noise, double T) {
    if (params->xtc_threshold > 0.5 || nib_noise_uniform(noise, NIB_NOISE_XTC) > params->xtc_probability) {
        return;
    }
    double least = params->xtc_threshold * mass(s, T);
    list_all(s);
    uint64_t last = UINT64_MAX;
    size_t n = 0;
    for (size_t i = 0; i < s->n_key; i++) {
        if (nib_exp((double)tempered(s, s->all[nib_order_id(s->key[i])], T)) >= least) {
            last = s->key[i] < last ? s->key[i] : last;
        }
    }
    for (size_t i = 0; i < s->n_key; i++) {
        if (s->key[i] <= last) {
            s->key[n++] = s->key[i];
        }
    }
    s->n_key = n;
}

/* ---- the order ---- */

/* Between temperature - range and + range, by how even the distribution is. */
static double dynamic_temperature(nib_sampler *s, const nib_sample_params *params) {
    double T = params->temperature, range = params->dynatemp_range;
    double total = range > 0 ? mass(s, 1) : 1;
    size_t n = 1;
    double sum = range > 0 ? weighted_sum(&n, s, 1) : 0;
    if (n <= 1) {
        return T;
    }
    double even = (nib_log(total) - sum / total) / nib_log((double)n);
    even = even > 0 ? even < 1 ? even : 1 : 0;
    double low = T > range ? T - range : 0;
    double dynamic = low + (T + range - low) * (even > 0 ? nib_pow(even, params->dynatemp_exponent) : 0);
    return dynamic > 1e-30 ? dynamic : 1e-30; /* as good as greedy, and no division by zero */
}

static void filter_top_k(nib_sampler *s, const nib_sample_params *params) {
    if (params->top_k > 0 && params->top_k < s->V) {
        keep_top_k(s, (size_t)params->top_k, params->top_k_ties);
    }
}

static void filter_typical(nib_sampler *s, const nib_sample_params *params, double T) {
    if (params->typical_p < 1) {
        keep_typical(s, params->typical_p, T);
    }
}

static void filter_top_and_min_p(nib_sampler *s, const nib_sample_params *params, double T) {
    if (params->top_p < 1) {
        keep_top_p(s, params->top_p, T);
    }
    if (params->min_p > 0) {
        keep_likely(s, params->min_p, T);
    }
}

static void filter_cutoffs(nib_sampler *s, const nib_sample_params *params, double T) {
    if (params->epsilon_cutoff > 0) {
        keep_probable(s, params->epsilon_cutoff, T);
    }
    if (params->eta_cutoff > 0) {
        keep_eta(s, params->eta_cutoff, T);
    }
}

static void filter_top_n_sigma(nib_sampler *s, const nib_sample_params *params) {
    if (params->top_n_sigma > 0) {
        keep_top_n_sigma(s, params->top_n_sigma);
    }
}

static void filter_xtc(nib_sampler *s, const nib_sample_params *params, const nib_noise *noise, double T) {
    if (params->xtc_probability > 0) {
        exclude_top(s, params, noise, T);
    }
}

double nib_sampler_filter(nib_sampler *s, const nib_sample_params *params, const nib_noise *noise) {
    double T = 1;
    if (params->llama_order) {
        filter_top_n_sigma(s, params);
        filter_top_k(s, params);
        filter_typical(s, params, T);
        filter_top_and_min_p(s, params, T);
        filter_cutoffs(s, params, T);
        filter_xtc(s, params, noise, T);
        T = dynamic_temperature(s, params);
    } else {
        T = dynamic_temperature(s, params);
        filter_top_k(s, params);
        filter_top_and_min_p(s, params, T);
        filter_typical(s, params, T);
        filter_cutoffs(s, params, T);
        filter_top_n_sigma(s, params);
        filter_xtc(s, params, noise, T);
    }
    show(s);
    return T;
}
