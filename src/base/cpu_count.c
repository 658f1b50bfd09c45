/* How many threads are worth starting: affinity, cgroup quotas (Documentation/admin-guide/cgroup-v2.rst and
 * scheduler/sched-bwc.rst of Linux) and physical cores. A file that is missing or not understood is no limit. */
#include "base/cpu_count.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_COUNT = 256, LINE_LEN = 4096, MAX_SETS = 64 };

/* Up to room - 1 bytes of the file at root + dir + name as text; false when it cannot be read. */
static bool read_text(char *text, size_t room, const char *root, const char *dir, const char *name) {
    char path[PATH_MAX];
    int len = snprintf(path, sizeof path, "%s%s/%s", root, dir, name);
    if (len < 0 || (size_t)len >= sizeof path) {
        return false;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    size_t n = fread(text, 1, room - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    return n > 0;
}

/* Reads a line into line [LINE_LEN] without its end; of a longer one only the beginning. */
static bool read_line(char *line, FILE *file) {
    if (fgets(line, LINE_LEN, file) == NULL) {
        return false;
    }
    size_t len = strcspn(line, "\n");
    if (line[len] == '\0') {
        for (int c = getc(file); c != EOF && c != '\n'; c = getc(file)) {
        }
    }
    line[len] = '\0';
    return true;
}

/* Reads digits at *at and moves past them; false when there are none or too many. */
static bool read_digits(long long *value, const char **at) {
    const char *start = *at;
    *value = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*value > (LLONG_MAX - 9) / 10) {
            return false;
        }
        *value = *value * 10 + (**at - '0');
    }
    return *at > start;
}

/* The quotient of "quota period\n", at least 1; INT_MAX for anything else. */
static int quota_of(const char *text) {
    long long quota, period;
    const char *at = text;
    if (!read_digits(&quota, &at) || *at++ != ' ' || !read_digits(&period, &at)) {
        return INT_MAX;
    }
    bool ends = *at == '\0' || (*at == '\n' && at[1] == '\0');
    if (!ends || period == 0) {
        return INT_MAX;
    }
    long long cpus = quota / period;
    return cpus < 1 ? 1 : cpus > INT_MAX ? INT_MAX : (int)cpus;
}

static int quota_v2(const char *root, const char *dir) {
    char text[64];
    return read_text(text, sizeof text, root, dir, "cpu.max") ? quota_of(text) : INT_MAX;
}

static int quota_v1(const char *root, const char *dir) {
    char quota[64], period[64], both[130];
    if (!read_text(quota, sizeof quota, root, dir, "cpu.cfs_quota_us") ||
        !read_text(period, sizeof period, root, dir, "cpu.cfs_period_us")) {
        return INT_MAX;
    }
    quota[strcspn(quota, "\n")] = '\0';
    (void)snprintf(both, sizeof both, "%s %s", quota, period);
    return quota_of(both);
}

/* Whether word stands in a list with commas. */
static bool in_list(const char *list, const char *word) {
    size_t len = strlen(word);
    for (const char *at = list; *at != '\0';) {
        size_t n = strcspn(at, ",");
        if (n == len && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + (at[n] == ',');
    }
    return false;
}

/* One hierarchy of cgroups: where its root is seen, and where in it this process is. */
typedef struct hierarchy {
    int version;
    bool found;           /* the mount */
    char path[LINE_LEN];  /* of /proc/self/cgroup; "" when not known */
    char top[LINE_LEN];   /* which cgroup is mounted */
    char mount[LINE_LEN]; /* where */
} hierarchy;

/* A line "number:controllers:path": version 2 has no controllers. */
static void find_path(hierarchy *h, char *line) {
    char *controllers = strchr(line, ':');
    char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
    if (path == NULL) {
        return;
    }
    controllers++;
    *path++ = '\0';
    if (h->version == 2 ? *controllers == '\0' : in_list(controllers, "cpu")) {
        memcpy(h->path, path, strlen(path) + 1);
    }
}

/* A line "id parent device top mount options.. - type source options". */
static void find_mount(hierarchy *h, char *line) {
    char *end = strstr(line, " - ");
    if (end == NULL) {
        return;
    }
    *end = '\0';
    char *save = NULL, *fields[5] = {0};
    char *field = strtok_r(line, " ", &save);
    for (int i = 0; i < 5 && field != NULL; i++, field = strtok_r(NULL, " ", &save)) {
        fields[i] = field;
    }
    const char *type = strtok_r(end + 3, " ", &save);
    const char *source = strtok_r(NULL, " ", &save);
    const char *options = strtok_r(NULL, " ", &save);
    if (h->found || fields[4] == NULL || source == NULL || options == NULL) {
        return;
    }
    if (h->version == 2 ? strcmp(type, "cgroup2") == 0 : strcmp(type, "cgroup") == 0 && in_list(options, "cpu")) {
        h->found = true;
        memcpy(h->top, fields[3], strlen(fields[3]) + 1);
        memcpy(h->mount, fields[4], strlen(fields[4]) + 1);
    }
}

static void each_line(hierarchy *h, const char *root, const char *name, void (*find)(hierarchy *, char *)) {
    char path[PATH_MAX], line[LINE_LEN];
    int len = snprintf(path, sizeof path, "%s%s", root, name);
    FILE *file = len < 0 || (size_t)len >= sizeof path ? NULL : fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (read_line(line, file)) {
        find(h, line);
    }
    (void)fclose(file);
}

/* The cgroup's path below what is mounted. A container may see only its own cgroup, mounted as the top, and be told the
 * path from the host's; what does not lie below the top is not visible. */
static const char *below_top(const hierarchy *h) {
    size_t len = strcmp(h->top, "/") == 0 ? 0 : strlen(h->top);
    bool below = strncmp(h->path, h->top, len) == 0 && (h->path[len] == '/' || h->path[len] == '\0');
    return below && strncmp(h->path + len, "/..", 3) != 0 ? h->path + len : "";
}

/* The least quota of the process's cgroup and all above it. */
static int hierarchy_quota(const char *root, int version) {
    hierarchy h = {version, false, "", "/", ""};
    const char *usual = version == 2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    memcpy(h.mount, usual, strlen(usual) + 1);
    each_line(&h, root, "/proc/self/cgroup", find_path);
    each_line(&h, root, "/proc/self/mountinfo", find_mount);
    char dir[2 * LINE_LEN];
    size_t top_len = strlen(h.mount);
    (void)snprintf(dir, sizeof dir, "%s%s", h.mount, below_top(&h));
    int least = INT_MAX;
    for (;;) {
        int quota = version == 2 ? quota_v2(root, dir) : quota_v1(root, dir);
        least = quota < least ? quota : least;
        char *slash = strrchr(dir, '/');
        if (slash == NULL || slash < dir + top_len) {
            return least;
        }
        *slash = '\0';
    }
}

/* The lowest processor of the core that has this one; itself when the system does not say. */
static int core_of(const char *root, int cpu) {
    char dir[80], text[64];
    (void)snprintf(dir, sizeof dir, "/sys/devices/system/cpu/cpu%d/topology", cpu);
    const char *at = text;
    long long first;
    if (!read_text(text, sizeof text, root, dir, "thread_siblings_list") || !read_digits(&first, &at) || first > cpu) {
        return cpu;
    }
    return (int)first;
}

/* Distinct cores of the allowed processors, at most MAX_COUNT. Numbers of cores and packages would not do: on some ARM
 * machines each cluster counts its cores from 0. */
static int count_cores(const char *root, const cpu_set_t *allowed, size_t size_bytes) {
    int cores[MAX_COUNT], n = 0;
    for (int cpu = 0; cpu < (int)(8 * size_bytes) && n < MAX_COUNT; cpu++) {
        if (!CPU_ISSET_S((size_t)cpu, size_bytes, allowed)) {
            continue;
        }
        int core = core_of(root, cpu), i = 0;
        while (i < n && cores[i] != core) {
            i++;
        }
        if (i == n) {
            cores[n++] = core;
        }
    }
    return n;
}

static int least_of(int a, int b) {
    return a < b ? a : b;
}

int nib_cpu_slots_at(const char *root, const cpu_set_t *allowed, size_t size_bytes) {
    int n = least_of(CPU_COUNT_S(size_bytes, allowed), MAX_COUNT);
    n = least_of(n, hierarchy_quota(root, 1));
    n = least_of(n, hierarchy_quota(root, 2));
    return n < 1 ? 1 : n;
}

int nib_cpu_count_at(const char *root, const cpu_set_t *allowed, size_t size_bytes) {
    int n = least_of(nib_cpu_slots_at(root, allowed, size_bytes), count_cores(root, allowed, size_bytes));
    return n < 1 ? 1 : n;
}

/* Calls count for this thread's processors. Room for 65536 of them: one cpu_set_t, 1024, is too small for some
 * machines, and the system then refuses. */
static int count_here(int (*count)(const char *, const cpu_set_t *, size_t)) {
    cpu_set_t allowed[MAX_SETS];
    memset(allowed, 0, sizeof allowed);
    if (sched_getaffinity(0, sizeof allowed, allowed) != 0) {
        long online = sysconf(_SC_NPROCESSORS_ONLN);
        for (size_t cpu = 0; (long)cpu < online && cpu < 8 * sizeof allowed; cpu++) {
            CPU_SET_S(cpu, sizeof allowed, allowed);
        }
    }
    return count("", allowed, sizeof allowed);
}

int nib_cpu_count(void) {
    return count_here(nib_cpu_count_at);
}

int nib_cpu_slots(void) {
    return count_here(nib_cpu_slots_at);
}
