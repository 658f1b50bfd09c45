/* Prints the hashes of logits that models give, for every mode of computing and type of cache: a program that is built for
 * two processors and must print the same on both. NIB_CPU chooses the instruction set. Needs nothing but the C library:
 * the models have no tokenizer, and pretokenizer_stub.c stands for what needs PCRE2.
 *
 *   hash_logits MODEL..     exit code 0, or 1 with the library's message */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nib/model.h>
#include <nib/session.h>

/* A first pass over one group of the cache and the beginning of the next, then single tokens. */
enum { LENGTH = 70, FIRST_PASS = 66 };

static uint64_t hash_more(uint64_t hash, const void *data, size_t len) {
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

/* The hash of all logits of a text: FIRST_PASS rows at once, the others one by one. */
static nib_status hash_session(uint64_t *hash, nib_session *session, int64_t V, nib_error *err) {
    float *logits = calloc((size_t)(FIRST_PASS * V), sizeof *logits);
    if (logits == NULL) {
        perror("hash_logits");
        exit(1);
    }
    int32_t ids[LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        ids[i] = (int32_t)((7919 * i + 13) % V);
    }
    nib_status status = nib_session_logits(logits, session, ids, FIRST_PASS, 0, err);
    *hash = hash_more(0xcbf29ce484222325u, logits, (size_t)(FIRST_PASS * V) * sizeof *logits);
    for (size_t n = FIRST_PASS + 1; n <= LENGTH && status == NIB_OK; n++) {
        status = nib_session_logits(logits, session, ids, n, n - 1, err);
        *hash = hash_more(*hash, logits, (size_t)V * sizeof *logits);
    }
    free(logits);
    return status;
}

/* One line. */
static nib_status run_session(nib_model *model, const char *path, int cache_type, nib_error *err) {
    nib_session_options options = NIB_SESSION_OPTIONS_INIT;
    options.cache_type = cache_type;
    options.threads = 2;
    nib_model_info info = {.size = sizeof info};
    nib_session *session;
    uint64_t hash;
    nib_status status = nib_model_get_info(&info, model, err);
    status = status != NIB_OK ? status : nib_session_new(&session, model, &options, err);
    if (status != NIB_OK) {
        return status;
    }
    status = hash_session(&hash, session, info.V, err);
    nib_session_free(session);
    if (status == NIB_OK) {
        printf("%s, compute %s, cache %s: %016llx\n", path, info.compute == NIB_COMPUTE_FAST ? "fast" : "exact",
               cache_type == NIB_CACHE_TYPE_F16 ? "f16" : "f32", (unsigned long long)hash);
    }
    return status;
}

/* The first model says with which instruction set. */
static nib_status run_model(const char *path, int compute, bool first, nib_error *err) {
    nib_model_options options = NIB_MODEL_OPTIONS_INIT;
    options.compute = compute;
    nib_model_info info = {.size = sizeof info};
    nib_model *model;
    nib_status status = nib_model_open(&model, path, &options, err);
    if (status != NIB_OK) {
        return status;
    }
    status = nib_model_get_info(&info, model, err);
    if (status == NIB_OK && first) {
        printf("cpu %s\n", info.cpu);
    }
    status = status != NIB_OK ? status : run_session(model, path, NIB_CACHE_TYPE_F32, err);
    status = status != NIB_OK ? status : run_session(model, path, NIB_CACHE_TYPE_F16, err);
    nib_model_free(model);
    return status;
}

int main(int argc, char **argv) {
    static const int computes[] = {NIB_COMPUTE_EXACT, NIB_COMPUTE_FAST};
    for (int i = 1; i < argc; i++) {
        for (int j = 0; j < 2; j++) {
            nib_error err;
            if (run_model(argv[i], computes[j], i == 1 && j == 0, &err) != NIB_OK) {
                fprintf(stderr, "hash_logits: %s: %s\n", argv[i], err.message);
                return 1;
            }
        }
    }
    return 0;
}
