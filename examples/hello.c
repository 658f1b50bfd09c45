/* The smallest whole program: opens a model, continues a text and prints it as it comes.
 *
 *   hello MODEL [TEXT]
 *
 * MODEL is a GGUF file, or random:llama-tiny for a model without a file; that one has no tokenizer, so ids go in and
 * come out. */
#include <nib/nib.h>
#include <stdio.h>
#include <string.h>

static int fail(const nib_error *err) {
    fprintf(stderr, "hello: %s\n", err->message);
    return 1;
}

/* Called after each token: its text where there is a tokenizer, else its id. */
static int print(const nib_token *token, void *user) {
    FILE *out = user;
    if (token->text != NULL)
        fwrite(token->text, 1, token->text_len, out);
    else if (token->id >= 0)
        fprintf(out, "%d ", (int)token->id);
    return fflush(out); /* anything but 0 ends the generation */
}

static int generate(nib_model *model, const int32_t *ids, size_t n, nib_error *err) {
    nib_session *session;
    nib_result *result;
    nib_prompt prompt = {ids, n};
    nib_generate_options options = NIB_GENERATE_OPTIONS_INIT;
    nib_status status;

    options.max_new_tokens = 40;
    options.has_seed = 1; /* seed 0: the same words on every run and every machine */
    status = nib_session_new(&session, model, NULL, err);
    if (status != NIB_OK)
        return fail(err);
    status = nib_generate(&result, session, &prompt, 1, &options, print, stdout, err);
    nib_session_free(session);
    if (status != NIB_OK)
        return fail(err);
    nib_result_free(result);
    return putchar('\n') == EOF;
}

int main(int argc, char **argv) {
    static const int32_t some_ids[] = {1, 2, 3};
    const char *text = argc > 2 ? argv[2] : "Once upon a time";
    const nib_tokenizer *tokenizer;
    nib_model *model;
    nib_error err;
    int32_t *ids = NULL;
    size_t n = 0;
    int answer;

    if (argc < 2) {
        fputs("usage: hello MODEL [TEXT]\n", stderr);
        return 2;
    }
    if (nib_model_open(&model, argv[1], NULL, &err) != NIB_OK)
        return fail(&err);
    tokenizer = nib_model_tokenizer(model);
    if (tokenizer == NULL)
        answer = generate(model, some_ids, 3, &err);
    else if (nib_tokenizer_encode(&ids, &n, tokenizer, text, strlen(text), NIB_TOKENIZE_ADD_BOS, &err) == NIB_OK)
        answer = generate(model, ids, n, &err);
    else
        answer = fail(&err);
    nib_free(ids);
    nib_model_free(model);
    return answer;
}
