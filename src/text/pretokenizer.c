/* Pre-tokenizers: for each name a list of patterns. The first cuts the text into its matches and what lies between, the
 * next cuts each piece again, and so on. The patterns are those of the vocabularies' own files, with three changes that
 * leave the matches as they are: white space is spelled out (Unicode's White_Space; PCRE2's \s has U+180E besides), runs
 * are possessive where nothing behind them could take a character back, and \s+$ looks behind itself, since from inside
 * a run it can only match if it matched from the run's beginning: without that a run of n spaces costs n * n. */
#include "text/pretokenizer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/memory.h"

#define SPACES  "\\t-\\r \\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SPACE   "[" SPACES "]"
#define NOSPACE "[^" SPACES "]"

#define CONTRACTION        "'s|'t|'re|'ve|'m|'ll|'d"
#define CONTRACTION_NOCASE "(?i:" CONTRACTION ")"
#define BLANKS             SPACE "*[\\r\\n]+|" SPACE "+(?!" NOSPACE ")|" SPACE "+"

#define GPT2 CONTRACTION "| ?\\p{L}++| ?\\p{N}++| ?[^" SPACES "\\p{L}\\p{N}]++|" SPACE "+(?!" NOSPACE ")|" SPACE "+"

/* Letters with an optional character before them, digits by the given count, the rest. */
#define LLAMA3(digits)                                                                                                 \
    CONTRACTION_NOCASE "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" digits "| ?[^" SPACES "\\p{L}\\p{N}]++[\\r\\n]*+|" BLANKS

#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define TEKKEN                                                                                                         \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "++|[^\\r\\n\\p{L}\\p{N}]?" UPPER "++" LOWER "*+|\\p{N}"                  \
    "| ?[^" SPACES "\\p{L}\\p{N}]++[\\r\\n/]*+|" BLANKS

/* DeepSeek's list of cased letters: it follows no property of Unicode. */
#define CASED                                                                                                          \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}"   \
    "\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}"     \
    "\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"       \
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"                  \
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"                  \
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}" \
    "\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"                  \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}" \
    "\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}" \
    "\\x{2183}\\x{2184}\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}" \
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"                  \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"                \
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"        \
    "\\x{1e900}-\\x{1e943}"
#define DEEPSEEK_PUNCTUATION "!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}"
#define DEEPSEEK_CJK         "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]++"

#define DEEPSEEK_V3                                                                                                    \
    "[!-/:-@\\[-`{-~][A-Za-z]++|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]++| ?[\\p{P}\\p{S}]++[\\r\\n]*+|" BLANKS

#define SMOLLM_PATTERNS                                                                                                \
    { "\\p{N}", GPT2 }

static const nib_pretokenizer_kind kinds[] = {
    {.name = "gpt-2", .patterns = {GPT2}},
    {.name = "llama-bpe", .patterns = {LLAMA3("\\p{N}{1,3}+")}, .whole_words = true},
    {.name = "llama3", .patterns = {LLAMA3("\\p{N}{1,3}+")}, .whole_words = true},
    {.name = "llama-v3", .patterns = {LLAMA3("\\p{N}{1,3}+")}, .whole_words = true},
    {.name = "smollm", .patterns = SMOLLM_PATTERNS},
    {.name = "starcoder", .patterns = SMOLLM_PATTERNS},
    {.name = "refact", .patterns = SMOLLM_PATTERNS},
    {.name = "qwen2", .patterns = {LLAMA3("\\p{N}")}, .nfc = true},
    {.name = "tekken", .patterns = {TEKKEN}, .whole_words = true},
    {.name = "deepseek-llm",
     .patterns = {"[\\r\\n]", SPACE "?[" CASED "]++", SPACE "?[" DEEPSEEK_PUNCTUATION "]++",
                  "(?<!" SPACE ")" SPACE "++\\z", DEEPSEEK_CJK, "\\p{N}"}},
    {.name = "deepseek-coder", .patterns = {"[\\r\\n]", SPACE "?\\p{L}++", SPACE "?\\p{P}++", DEEPSEEK_CJK, "\\p{N}"}},
    {.name = "deepseek-v3", .patterns = {"\\p{N}{1,3}+", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]++", DEEPSEEK_V3}},
};

struct nib_pretokenizer {
    const nib_pretokenizer_kind *kind;
    pcre2_general_context *general;
    pcre2_code *codes[NIB_MAX_PATTERNS]; /* [n] */
    size_t n;
    bool compiled; /* all of them to machine code */
};

struct nib_cutter {
    const nib_pretokenizer *pretokenizer;
    pcre2_match_context *context;
    pcre2_match_data *matches[NIB_MAX_PATTERNS]; /* [n] of the pretokenizer */
    nib_word_handler *handler;
    void *user;
};

const nib_pretokenizer_kind *nib_pretokenizer_find(const char *name) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (name != NULL && strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static nib_status fail_unknown(const char *name, nib_error *err) {
    char known[256] = "";
    size_t len = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && len < sizeof known; i++) {
        int n = snprintf(known + len, sizeof known - len, "%s%s", i == 0 ? "" : ", ", kinds[i].name);
        len += n > 0 ? (size_t)n : 0;
    }
    return nib_fail(err, NIB_EUNSUPPORTED, "pre-tokenizer '%.60s' is not known, expected one of %s",
                    name == NULL ? "" : name, known);
}

static void *pcre_alloc(size_t size_bytes, void *user) {
    (void)user;
    return nib_alloc(size_bytes, 1);
}

static void pcre_free(void *array, void *user) {
    (void)user;
    nib_free(array);
}

/* Compile each pattern of the kind. The patterns are ours: only memory can be wrong. */
static bool compile_patterns(nib_pretokenizer *pretokenizer) {
    pcre2_compile_context *context = pcre2_compile_context_create(pretokenizer->general);
    if (context == NULL) {
        return false;
    }
    pretokenizer->compiled = true;
    bool ok = true;
    const char *const *patterns = pretokenizer->kind->patterns;
    for (size_t i = 0; i < NIB_MAX_PATTERNS && patterns[i] != NULL && ok; i++) {
        int error;
        size_t offset;
        pcre2_code *code = pcre2_compile((PCRE2_SPTR)patterns[i], PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, context);
        ok = code != NULL;
        if (ok) {
            pretokenizer->codes[pretokenizer->n++] = code;
            pretokenizer->compiled &= pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
        }
    }
    pcre2_compile_context_free(context);
    return ok;
}

nib_status nib_pretokenizer_new(nib_pretokenizer **out, const char *name, nib_error *err) {
    *out = NULL;
    const nib_pretokenizer_kind *kind = nib_pretokenizer_find(name);
    if (kind == NULL) {
        return fail_unknown(name, err);
    }
    nib_pretokenizer *pretokenizer = nib_alloc_zero(1, sizeof *pretokenizer);
    if (pretokenizer == NULL) {
        return nib_fail_memory(err, sizeof *pretokenizer, "the pre-tokenizer");
    }
    pretokenizer->kind = kind;
    pretokenizer->general = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    if (pretokenizer->general == NULL || !compile_patterns(pretokenizer)) {
        nib_pretokenizer_free(pretokenizer);
        return nib_fail(err, NIB_ENOMEM, "no memory for the patterns of pre-tokenizer %s", name);
    }
    *out = pretokenizer;
    return NIB_OK;
}

void nib_pretokenizer_free(nib_pretokenizer *pretokenizer) {
    if (pretokenizer == NULL) {
        return;
    }
    for (size_t i = 0; i < pretokenizer->n; i++) {
        pcre2_code_free(pretokenizer->codes[i]);
    }
    pcre2_general_context_free(pretokenizer->general);
    nib_free(pretokenizer);
}

const nib_pretokenizer_kind *nib_pretokenizer_get_kind(const nib_pretokenizer *pretokenizer) {
    return pretokenizer->kind;
}

void nib_pretokenizer_interpret(nib_pretokenizer *pretokenizer) {
    pretokenizer->compiled = false;
}

nib_cutter *nib_cutter_new(const nib_pretokenizer *pretokenizer) {
    nib_cutter *cutter = nib_alloc_zero(1, sizeof *cutter);
    if (cutter == NULL) {
        return NULL;
    }
    cutter->pretokenizer = pretokenizer;
    cutter->context = pcre2_match_context_create(pretokenizer->general);
    bool ok = cutter->context != NULL;
    for (size_t i = 0; i < pretokenizer->n && ok; i++) {
        cutter->matches[i] = pcre2_match_data_create(1, pretokenizer->general);
        ok = cutter->matches[i] != NULL;
    }
    if (!ok) {
        nib_cutter_free(cutter);
        return NULL;
    }
    /* The default of ten million would stop the interpreter inside a run of that many spaces; the patterns are linear. */
    pcre2_set_match_limit(cutter->context, UINT32_MAX);
    return cutter;
}

void nib_cutter_free(nib_cutter *cutter) {
    if (cutter == NULL) {
        return;
    }
    for (size_t i = 0; i < NIB_MAX_PATTERNS; i++) {
        pcre2_match_data_free(cutter->matches[i]);
    }
    pcre2_match_context_free(cutter->context);
    nib_free(cutter);
}

/* The next match of pattern i at or behind from: its beginning and end in *begin, *end. 1 found, 0 none, -1 no memory. */
static int next_match(size_t *begin, size_t *end, nib_cutter *cutter, size_t i, const char *text, size_t len,
                      size_t from) {
    const nib_pretokenizer *pretokenizer = cutter->pretokenizer;
    const pcre2_code *code = pretokenizer->codes[i];
    pcre2_match_data *match = cutter->matches[i];
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    int found = PCRE2_ERROR_JIT_STACKLIMIT;
    if (pretokenizer->compiled) {
        found = pcre2_jit_match(code, subject, len, from, PCRE2_NO_UTF_CHECK, match, cutter->context);
    }
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
        found = pcre2_match(code, subject, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, cutter->context);
    }
    if (found < 0) {
        return found == PCRE2_ERROR_NOMATCH ? 0 : -1;
    }
    const size_t *bounds = pcre2_get_ovector_pointer(match);
    *begin = bounds[0];
    *end = bounds[1];
    return 1;
}

/* Cuts text by pattern i and those behind it: a recursion NIB_MAX_PATTERNS deep. */
static bool cut(nib_cutter *cutter, size_t i, const char *text, size_t len) {
    if (len == 0) {
        return true;
    }
    if (i == cutter->pretokenizer->n) {
        return cutter->handler(cutter->user, text, len);
    }
    for (size_t from = 0; from < len;) {
        size_t begin = len;
        size_t end = len;
        if (next_match(&begin, &end, cutter, i, text, len, from) < 0) {
            return false;
        }
        if (!cut(cutter, i + 1, text + from, begin - from) || !cut(cutter, i + 1, text + begin, end - begin)) {
            return false;
        }
        from = end;
    }
    return true;
}

bool nib_cutter_run(nib_cutter *cutter, const char *text, size_t len, nib_word_handler *handler, void *user) {
    cutter->handler = handler;
    cutter->user = user;
    return cut(cutter, 0, text, len);
}
