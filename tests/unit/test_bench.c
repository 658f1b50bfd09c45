/* Timing: every run gets its time; what is read and computed is what the shapes say; what cannot be timed is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "table_model.h"

static nib_model *open_model(const char *path, int compute) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    nib_model *model;
    nib_error err;
    options.compute = compute;
    must(nib_model_open(&model, path, &options, &err), &err);
    return model;
}

static nib_bench_work work_of(int what, size_t batch, size_t depth, size_t tokens) {
    nib_bench_work work = NIB_BENCH_WORK_INIT;
    work.what = what;
    work.batch = batch;
    work.depth = depth;
    work.tokens = tokens;
    work.repeat = 2;
    return work;
}

/* Runs the work and returns what it cost; each run took some time. */
static nib_bench_cost cost_of(nib_model *model, const nib_session_options *options, nib_bench_work work) {
    nib_bench_cost cost = {.size = sizeof cost};
    double seconds[2] = {-1.0, -1.0};
    nib_error err;
    must(nib_bench_run(seconds, &cost, model, options, &work, &err), &err);
    assert_true(seconds[0] > 0.0 && seconds[0] < 60.0);
    assert_true(seconds[1] > 0.0 && seconds[1] < 60.0);
    return cost;
}

static nib_session_options options_with(int cache_type, int64_t chunk) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.cache_type = cache_type;
    options.prefill_chunk = chunk;
    options.threads = 1;
    return options;
}

/* llama-tiny: D 64, L 2, H 4, K 2, E 16, V 256, feed-forward 128. Weights of a layer: q and o 64 x 64, k and v 32 x 64,
 * gate, up and down 128 x 64; the head 256 x 64. */
enum { LAYERS = 2, LAYER_WEIGHTS = 36864, HEAD_WEIGHTS = 16384, KV_WIDTH = 32, Q_WIDTH = 64 };

static void decoding_reads_the_weights_once_a_pass_and_the_cache_once_a_sequence(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_COMPUTE_EXACT);
    nib_session_options options = options_with(NIB_CACHE_TYPE_F32, 256);
    nib_bench_cost cost = cost_of(model, &options, work_of(NIB_BENCH_DECODE, 3, 3, 2));
    const double weights = LAYERS * LAYER_WEIGHTS + HEAD_WEIGHTS;
    const double keys = 4 + 5; /* that the two steps see */
    assert_int_equal(cost.passes, 2);
    assert_true(cost.read_bytes == 2 * weights * 4 + 3 * LAYERS * keys * 2 * KV_WIDTH * 4);
    assert_true(cost.f32_operations == 2 * 3 * 2 * weights + 3 * LAYERS * keys * 4 * Q_WIDTH);
    assert_true(cost.int8_operations == 0.0);
    assert_int_equal(cost.cache_type, NIB_CACHE_TYPE_F32);
    nib_model_free(model);
}

static void a_prefill_reads_the_head_in_its_last_chunk_only(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_COMPUTE_FAST);
    nib_session_options options = options_with(NIB_CACHE_TYPE_AUTO, 4);
    nib_bench_cost cost = cost_of(model, &options, work_of(NIB_BENCH_PREFILL, 1, 0, 10));
    const double seen = 55.0;         /* 1 + 2 + .. + 10 keys */
    const double passed = 4 + 8 + 10; /* keys there are at the end of each chunk */
    assert_int_equal(cost.passes, 3);
    assert_int_equal(cost.cache_type, NIB_CACHE_TYPE_F16);
    assert_true(cost.read_bytes ==
                4.0 * (3 * LAYERS * LAYER_WEIGHTS + HEAD_WEIGHTS) + LAYERS * passed * 2 * KV_WIDTH * 2);
    assert_true(cost.f32_operations ==
                2.0 * (10 * LAYERS * LAYER_WEIGHTS + HEAD_WEIGHTS) + LAYERS * seen * 4 * Q_WIDTH);
    options.prefill_chunk = 0;
    assert_int_equal(cost_of(model, &options, work_of(NIB_BENCH_PREFILL, 2, 5, 10)).passes, 2);
    nib_model_free(model);
}

static void quantised_products_count_as_int8_when_they_are(void **state) {
    (void)state;
    nib_bench_work work = work_of(NIB_BENCH_DECODE, 2, 0, 3);
    nib_model *model = open_model(NIB_TEST_GOLDEN "/tiny/llama-quants.gguf", NIB_COMPUTE_EXACT);
    nib_bench_cost exact = cost_of(model, NULL, work);
    nib_model_free(model);
    model = open_model(NIB_TEST_GOLDEN "/tiny/llama-quants.gguf", NIB_COMPUTE_FAST);
    nib_bench_cost fast = cost_of(model, NULL, work);
    nib_model_free(model);
    assert_true(exact.int8_operations == 0.0);
    assert_true(fast.int8_operations > 0.5 * exact.f32_operations);
    assert_true(fast.int8_operations + fast.f32_operations == exact.f32_operations);
}

/* gemma3-window8: 8 layers, every sixth of which sees all; one kv head of 16. */
static void a_window_ends_what_is_read(void **state) {
    (void)state;
    nib_model *model = open_model(NIB_TEST_GOLDEN "/tiny/gemma3-window8-f16.gguf", NIB_COMPUTE_FAST);
    nib_session_options options = options_with(NIB_CACHE_TYPE_F16, 256);
    double a = cost_of(model, &options, work_of(NIB_BENCH_DECODE, 1, 6, 1)).read_bytes;
    double b = cost_of(model, &options, work_of(NIB_BENCH_DECODE, 1, 7, 1)).read_bytes;
    double c = cost_of(model, &options, work_of(NIB_BENCH_DECODE, 1, 8, 1)).read_bytes;
    const double key_and_value = 2 * 16 * 2;
    assert_true(b - a == 8 * key_and_value);
    assert_true(c - b == 1 * key_and_value);
    nib_model_free(model);
}

static void threads_are_those_of_the_options(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_COMPUTE_FAST);
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_bench_limits limits = {.size = sizeof limits};
    nib_error err;
    options.threads = 3;
    assert_int_equal(cost_of(model, &options, work_of(NIB_BENCH_DECODE, 1, 0, 1)).threads, 3);
    must(nib_bench_measure_limits(&limits, model, &options, &err), &err);
    assert_int_equal(limits.threads, 3);
    assert_int_equal(limits.span_bytes, 32 << 20); /* the model has less */
    assert_true(limits.read_bytes_s > 1e7 && limits.f32_operations_s > 1e6 && limits.int8_operations_s > 1e6);
    nib_model_free(model);
}

static void refuse(nib_model *model, nib_bench_work work, const nib_session_options *options, nib_status expected,
                   const char *texts) {
    double seconds[2];
    nib_error err = {NIB_OK, ""};
    must_fail(nib_bench_run(seconds, NULL, model, options, &work, &err), expected, &err, texts);
}

static void counts_out_of_range_are_refused_by_name(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_COMPUTE_FAST);
    nib_bench_work work = work_of(NIB_BENCH_DECODE, 0, 0, 1);
    refuse(model, work, NULL, NIB_EINVAL, "batch|0|1 to 65536");
    refuse(model, work_of(NIB_BENCH_DECODE, 65537, 0, 1), NULL, NIB_EINVAL, "batch|65537");
    refuse(model, work_of(NIB_BENCH_DECODE, 1, 0, 0), NULL, NIB_EINVAL, "tokens|0");
    refuse(model, work_of(2, 1, 0, 1), NULL, NIB_EINVAL, "what|2");
    work = work_of(NIB_BENCH_DECODE, 1, 0, 1);
    work.repeat = 0;
    refuse(model, work, NULL, NIB_EINVAL, "repeat|0");
    work.size = 4;
    refuse(model, work, NULL, NIB_EINVAL, "nib_bench_work.size|4");
    refuse(model, work_of(NIB_BENCH_DECODE, 1, 100, 29), NULL, NIB_EFULL, "depth 100|29 tokens|128");
    refuse(model, work_of(NIB_BENCH_PREFILL, 1, SIZE_MAX, SIZE_MAX), NULL, NIB_EFULL, "128");
    nib_model_free(model);
}

static void options_are_checked(void **state) {
    (void)state;
    nib_model *model = open_model("random:llama-tiny", NIB_COMPUTE_FAST);
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    nib_bench_limits limits = {.size = sizeof limits};
    nib_bench_cost cost = {.size = 1};
    double seconds[2];
    nib_bench_work work = work_of(NIB_BENCH_DECODE, 1, 0, 1);
    nib_error err = {NIB_OK, ""};
    must_fail(nib_bench_run(seconds, &cost, model, NULL, &work, &err), NIB_EINVAL, &err, "nib_bench_cost.size|1");
    options.threads = 257;
    refuse(model, work, &options, NIB_EINVAL, "threads|257");
    must_fail(nib_bench_measure_limits(&limits, model, &options, &err), NIB_EINVAL, &err, "threads|257");
    options.threads = 1;
    options.max_cache_len = 64;
    refuse(model, work, &options, NIB_EINVAL, "max_cache_len");
    must_fail(nib_bench_measure_limits(&limits, model, &options, &err), NIB_EINVAL, &err, "max_cache_len");
    limits.size = 2;
    must_fail(nib_bench_measure_limits(&limits, model, NULL, &err), NIB_EINVAL, &err, "nib_bench_limits.size|2");
    nib_model_free(model);
}

static void a_model_of_the_callers_is_not_timed(void **state) {
    (void)state;
    table_model table = TABLE_MODEL_INIT;
    nib_model *model = table_model_open(&table, TABLE_FORWARD);
    refuse(model, work_of(NIB_BENCH_DECODE, 1, 0, 1), NULL, NIB_EUNSUPPORTED, "custom model");
    assert_int_equal(table.n_forward, 0);
    nib_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_reads_the_weights_once_a_pass_and_the_cache_once_a_sequence),
        cmocka_unit_test(a_prefill_reads_the_head_in_its_last_chunk_only),
        cmocka_unit_test(quantised_products_count_as_int8_when_they_are),
        cmocka_unit_test(a_window_ends_what_is_read),
        cmocka_unit_test(threads_are_those_of_the_options),
        cmocka_unit_test(counts_out_of_range_are_refused_by_name),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(a_model_of_the_callers_is_not_timed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
