/* A custom model whose logits are known. */
#include "table_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"

static void fill_logits(float *logits, const table_model *table, uint64_t hash, size_t n) {
    if (table->table != NULL) {
        size_t row = n - 1 < table->n_rows ? n - 1 : table->n_rows - 1;
        memcpy(logits, table->table + row * (size_t)table->V, (size_t)table->V * sizeof logits[0]);
        return;
    }
    for (int64_t id = 0; id < table->V; id++) {
        logits[id] = (float)(nib_mix64(hash, (uint64_t)id) >> 40) * 0x1p-21f - 4.0f;
    }
}

static uint64_t hash_prefix(const int32_t *prefix, size_t n) {
    uint64_t hash = 0;
    for (size_t i = 0; i < n; i++) {
        hash = nib_mix64(hash, (uint64_t)prefix[i]);
    }
    return hash;
}

void table_model_logits(float *logits, const table_model *table, const int32_t *prefix, size_t n) {
    fill_logits(logits, table, hash_prefix(prefix, n), n);
}

/* What a call answers; it may have to cancel. */
static int answer(table_model *table) {
    size_t call = table->n_forward + table->n_step;
    if (table->cancel != NULL && call == table->cancel_at) {
        nib_session_cancel(table->cancel);
    }
    return call == table->fail_at ? 7 : 0;
}

static int forward(float *logits, const int32_t *prefix, size_t rows, size_t n, void *user) {
    table_model *table = user;
    table->n_forward++;
    table->longest = n > table->longest ? n : table->longest;
    table->n = n < TABLE_ROOM ? n : TABLE_ROOM;
    memcpy(table->tokens, prefix, table->n * sizeof prefix[0]);
    for (size_t row = 0; row < rows; row++) {
        table_model_logits(logits + row * (size_t)table->V, table, prefix + row * n, n);
    }
    return answer(table);
}

static int step(float *logits, int32_t token, size_t row, size_t position, void *user) {
    table_model *table = user;
    assert_true(row < TABLE_ROWS);
    assert_true(position <= table->n_row[row] && position < TABLE_ROOM);
    if (table->n_step < TABLE_ROOM) {
        table->positions[table->n_step] = position;
        table->rows[table->n_step] = row;
    }
    table->n_step++;
    table->hashes[row][position + 1] = nib_mix64(table->hashes[row][position], (uint64_t)token);
    table->n_row[row] = position + 1;
    if (row == 0) {
        table->tokens[position] = token;
        table->n = position + 1;
    }
    fill_logits(logits, table, table->hashes[row][position + 1], position + 1);
    return answer(table);
}

nib_model *table_model_open(table_model *table, table_functions functions) {
    nib_custom_model custom = NIB_CUSTOM_MODEL_INIT;
    nib_model *model;
    nib_error err;
    custom.V = table->V;
    custom.context = table->context > 0 ? table->context : TABLE_ROOM;
    custom.pad_id = table->pad_id;
    custom.start_id = table->start_id;
    custom.end_id = table->end_id;
    custom.forward = (functions & TABLE_FORWARD) != 0 ? forward : NULL;
    custom.step = (functions & TABLE_STEP) != 0 ? step : NULL;
    custom.user = table;
    must(nib_model_custom(&model, &custom, &err), &err);
    return model;
}

void must(nib_status status, const nib_error *err) {
    if (status != NIB_OK) {
        fail_msg("%s: %s", nib_status_name(status), err->message);
    }
}

void must_fail(nib_status status, nib_status expected, const nib_error *err, const char *texts) {
    if (status != expected) {
        fail_msg("%s, expected %s for %s", nib_status_name(status), nib_status_name(expected), texts);
    }
    assert_int_equal(err->code, expected);
    while (*texts != '\0') {
        char text[128];
        size_t n = strcspn(texts, "|");
        assert_true(n < sizeof text);
        memcpy(text, texts, n);
        text[n] = '\0';
        if (strstr(err->message, text) == NULL) {
            fail_msg("\"%s\" does not name \"%s\"", err->message, text);
        }
        texts += texts[n] == '|' ? n + 1 : n;
    }
}

nib_session *new_session(nib_model *model) {
    nib_session *session;
    nib_error err;
    must(nib_session_new(&session, model, NULL, &err), &err);
    return session;
}

nib_result *generate_one(nib_session *session, const int32_t *ids, size_t n, const nib_generate_options *options) {
    nib_result *result;
    nib_error err;
    nib_prompt prompt = {ids, n};
    must(nib_generate(&result, session, &prompt, 1, options, NULL, NULL, &err), &err);
    return result;
}

void check_same_row(const nib_row *a, const nib_row *b) {
    assert_int_equal(a->n_prompt, b->n_prompt);
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->ids, b->ids, (a->n_prompt + a->n) * sizeof a->ids[0]);
    if (a->n > 0) {
        assert_memory_equal(a->logprobs, b->logprobs, a->n * sizeof a->logprobs[0]);
    }
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->text == NULL, b->text == NULL);
    assert_int_equal(a->text_len, b->text_len);
    if (a->text_len > 0) {
        assert_memory_equal(a->text, b->text, a->text_len);
    }
}
