/* How many threads are worth starting. */
#ifndef NIB_BASE_CPU_COUNT_H
#define NIB_BASE_CPU_COUNT_H

#include <sched.h>
#include <stddef.h>

/* The least of: the processors the calling thread may run on (affinity, which the threads it starts inherit), the quota
 * of its cgroups rounded down (version 1 and 2, of every ancestor), and the physical cores among those processors; at
 * least 1, at most 256. What the system does not tell counts as no limit. */
int nib_cpu_count(void);

/* The same without the physical cores: how many threads can run at once, if two share a core. */
int nib_cpu_slots(void);

/* For tests: the same for the processors in allowed, of size_bytes, with /proc and /sys under root. */
int nib_cpu_count_at(const char *root, const cpu_set_t *allowed, size_t size_bytes);
int nib_cpu_slots_at(const char *root, const cpu_set_t *allowed, size_t size_bytes);

#endif
