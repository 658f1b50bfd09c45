/* Joining of neighbours: a list of symbols and a heap of candidates. Each join adds two candidates at most, so that n
 * symbols cost n log n steps however they are joined. */
#include "text/merge.h"

#include "base/memory.h"

void nib_merger_begin(nib_merger *merger, const char *text) {
    merger->text = text;
    merger->n = 0;
    merger->n_heap = 0;
}

bool nib_merger_add(nib_merger *merger, uint32_t start, uint32_t len, int32_t id) {
    if (!nib_reserve(&merger->symbols, &merger->cap, merger->n + 1, sizeof *merger->symbols)) {
        return false;
    }
    int32_t i = (int32_t)merger->n++;
    merger->symbols[i] = (nib_symbol){.start = start, .len = len, .id = id, .prev = i - 1, .next = -1};
    if (i > 0) {
        merger->symbols[i - 1].next = i;
    }
    return true;
}

static bool heap_push(nib_merger *merger, nib_candidate candidate) {
    if (!nib_reserve(&merger->heap, &merger->cap_heap, merger->n_heap + 1, sizeof *merger->heap)) {
        return false;
    }
    nib_candidate *heap = merger->heap;
    size_t i = merger->n_heap++;
    while (i > 0 && candidate.order < heap[(i - 1) / 2].order) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
        merger->steps++;
    }
    heap[i] = candidate;
    return true;
}

static nib_candidate heap_pop(nib_merger *merger) {
    nib_candidate *heap = merger->heap;
    nib_candidate top = heap[0];
    nib_candidate last = heap[--merger->n_heap];
    size_t n = merger->n_heap;
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1].order < heap[child].order ? 1 : 0;
        if (last.order <= heap[child].order) {
            break;
        }
        heap[i] = heap[child];
        merger->steps++;
    }
    heap[i] = last;
    return top;
}

/* Notes the pair of symbol left and its neighbour, if they can be joined. */
static bool propose(nib_merger *merger, int32_t left, nib_merge_rule *rule, const void *user) {
    if (left < 0 || merger->symbols[left].next < 0) {
        return true;
    }
    const nib_symbol *a = &merger->symbols[left];
    const nib_symbol *b = &merger->symbols[a->next];
    uint32_t rank;
    int32_t id;
    merger->steps++;
    if (!rule(&rank, &id, user, merger->text, a, b)) {
        return true;
    }
    uint64_t order = (uint64_t)rank << 32 | (uint32_t)left;
    return heap_push(merger, (nib_candidate){.order = order, .len = a->len + b->len, .id = id});
}

static void join(nib_merger *merger, int32_t left, int32_t id) {
    nib_symbol *a = &merger->symbols[left];
    nib_symbol *b = &merger->symbols[a->next];
    a->len += b->len;
    a->id = id;
    a->next = b->next;
    b->len = 0;
    if (a->next >= 0) {
        merger->symbols[a->next].prev = left;
    }
}

bool nib_merger_run(nib_merger *merger, nib_merge_rule *rule, const void *user) {
    for (size_t i = 0; i + 1 < merger->n; i++) {
        if (!propose(merger, (int32_t)i, rule, user)) {
            return false;
        }
    }
    while (merger->n_heap > 0) {
        nib_candidate best = heap_pop(merger);
        int32_t left = (int32_t)(uint32_t)best.order;
        const nib_symbol *a = &merger->symbols[left];
        merger->steps++;
        /* Symbols only grow: the same length is the same pair. */
        if (a->len == 0 || a->next < 0 || a->len + merger->symbols[a->next].len != best.len) {
            continue;
        }
        join(merger, left, best.id);
        if (!propose(merger, a->prev, rule, user) || !propose(merger, left, rule, user)) {
            return false;
        }
    }
    return true;
}

void nib_merger_clear(nib_merger *merger) {
    nib_free(merger->symbols);
    nib_free(merger->heap);
    *merger = (nib_merger){0};
}
