/* How many threads are worth starting. */
#ifndef NIB_BASE_CPU_COUNT_H
#define NIB_BASE_CPU_COUNT_H

/* The least of: the processors this process may run on (affinity), the quota of its cgroups rounded down (version 1 and
 * 2, of every ancestor), and the physical cores among those processors; at least 1, at most 256. What the system does not
 * tell counts as no limit. */
int nib_cpu_count(void);

#endif
