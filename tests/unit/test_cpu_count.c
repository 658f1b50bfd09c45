/* The count of processors, on machines made of files in a directory and on this one. */
#include "base/cpu_count.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_ROOM = 1024 };

static char root[64]; /* of the machine of the present test */

/* Makes the directories above path. */
static void make_parents(const char *path) {
    char dir[PATH_ROOM];
    (void)snprintf(dir, sizeof dir, "%s", path);
    for (char *slash = strchr(dir + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(dir, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

static void write_file(const char *name, const char *text) {
    char path[PATH_ROOM];
    (void)snprintf(path, sizeof path, "%s%s", root, name);
    make_parents(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Like the hosts of today: 16 cores, processor i + 16 being the other half of core i; one mount of version 2. */
static int make_machine(void **state) {
    (void)state;
    (void)snprintf(root, sizeof root, "/tmp/nib-cpu-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (int cpu = 0; cpu < 32; cpu++) {
        char name[128], text[32];
        (void)snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        (void)snprintf(text, sizeof text, "%d,%d\n", cpu % 16, cpu % 16 + 16);
        write_file(name, text);
    }
    write_file("/proc/self/cgroup", "0::/box/inner\n");
    write_file("/proc/self/mountinfo",
               "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
               "31 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    return 0;
}

static int remove_machine(void **state) {
    (void)state;
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) == 0 ? 0 : -1;
}

/* Processors first .. first + n - 1. */
static cpu_set_t cpus(int first, int n) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = first; i < first + n; i++) {
        CPU_SET((size_t)i, &set);
    }
    return set;
}

static int count(cpu_set_t set) {
    return nib_cpu_count_at(root, &set, sizeof set);
}

static int slots(cpu_set_t set) {
    return nib_cpu_slots_at(root, &set, sizeof set);
}

static void a_host_without_limits_gives_its_cores(void **state) {
    (void)state;
    assert_int_equal(count(cpus(0, 32)), 16);
    assert_int_equal(slots(cpus(0, 32)), 32);
}

static void two_processors_by_affinity_give_two(void **state) {
    (void)state;
    assert_int_equal(count(cpus(0, 2)), 2);
    assert_int_equal(count(cpus(20, 2)), 2);
    assert_int_equal(slots(cpus(0, 2)), 2);
}

static void two_threads_of_a_core_give_one(void **state) {
    (void)state;
    cpu_set_t set = cpus(3, 1);
    CPU_SET(3 + 16, &set);
    assert_int_equal(count(set), 1);
    assert_int_equal(slots(set), 2);
    CPU_SET(4, &set);
    assert_int_equal(count(set), 2);
}

static void a_quota_is_rounded_down_and_at_least_one(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int count;
    } cases[] = {{"200000 100000\n", 2}, {"max 100000\n", 16}, {"150000 100000\n", 1},   {"50000 100000\n", 1},
                 {"0 100000\n", 1},      {"200000 100000", 2}, {"1990000 100000\n", 16}, {"25000 10000\n", 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_file("/sys/fs/cgroup/box/inner/cpu.max", cases[i].text);
        assert_int_equal(count(cpus(0, 32)), cases[i].count);
    }
    assert_int_equal(slots(cpus(0, 32)), 2);
}

static void a_quota_of_any_ancestor_counts(void **state) {
    (void)state;
    write_file("/sys/fs/cgroup/box/inner/cpu.max", "900000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 9);
    write_file("/sys/fs/cgroup/box/cpu.max", "300000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 3);
    write_file("/sys/fs/cgroup/cpu.max", "200000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 2);
    write_file("/sys/fs/cgroup/box/cpu.max", "max 100000\n");
    write_file("/sys/fs/cgroup/box/inner/cpu.max", "100000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 1);
}

static void a_quota_of_another_cgroup_does_not_count(void **state) {
    (void)state;
    write_file("/sys/fs/cgroup/box/other/cpu.max", "100000 100000\n");
    write_file("/sys/fs/cpu.max", "100000 100000\n");
    write_file("/sys/fs/cgroup/inner/cpu.max", "100000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 16);
}

static void what_is_not_understood_is_no_limit(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "\n",
                                        "garbage",
                                        "200000",
                                        "200000 \n",
                                        "-1 100000\n",
                                        "200000 0\n",
                                        "200000 100000 1\n",
                                        "200000x 100000\n",
                                        "200000 100000x\n",
                                        " 200000 100000\n",
                                        "99999999999999999999999 100000\n",
                                        "9223372036854775807 1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file("/sys/fs/cgroup/box/inner/cpu.max", texts[i]);
        assert_int_equal(count(cpus(0, 32)), 16);
    }
    write_file("/sys/fs/cgroup/box/cpu.max/here", ""); /* a directory in the file's place */
    assert_int_equal(count(cpus(0, 32)), 16);
}

static void garbage_in_the_lists_is_no_limit(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "garbage\n:\n0:\n0::\n::\n\n");
    write_file("/proc/self/mountinfo", "garbage\n - \n1 2 3 - cgroup2\n1 2 3 4 5 - cgroup2 x\n - cgroup2 a b\n\n");
    for (int cpu = 0; cpu < 32; cpu++) {
        char name[128];
        (void)snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        write_file(name, cpu % 2 == 0 ? "garbage\n" : "99999999999999999999999\n");
    }
    assert_int_equal(count(cpus(0, 32)), 32);
}

static void an_empty_machine_gives_the_affinity(void **state) {
    (void)state;
    cpu_set_t set = cpus(0, 5), none = cpus(0, 0);
    assert_int_equal(nib_cpu_count_at("/nonexistent", &set, sizeof set), 5);
    assert_int_equal(nib_cpu_count_at("/nonexistent", &none, sizeof none), 1);
    assert_int_equal(nib_cpu_slots_at("/nonexistent", &none, sizeof none), 1);
}

static void a_large_machine_gives_at_most_256(void **state) {
    (void)state;
    cpu_set_t sets[4]; /* 4096 processors */
    memset(sets, 0xff, sizeof sets);
    assert_int_equal(nib_cpu_count_at("/nonexistent", sets, sizeof sets), 256);
    assert_int_equal(nib_cpu_slots_at("/nonexistent", sets, sizeof sets), 256);
    memset(sets, 0, sizeof sets);
    CPU_SET_S(2000, sizeof sets, sets);
    CPU_SET_S(4000, sizeof sets, sets);
    assert_int_equal(nib_cpu_count_at("/nonexistent", sets, sizeof sets), 2);
}

/* The mount shows the process's own cgroup as its top, while the path is told as the host sees it. */
static void a_container_sees_its_own_cgroup_as_the_top(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "0::/docker/abc/inner\n");
    write_file("/proc/self/mountinfo", "31 24 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    write_file("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 4);
    write_file("/sys/fs/cgroup/inner/cpu.max", "300000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 3);
    write_file("/proc/self/cgroup", "0::/docker/abcd\n"); /* not below the top */
    assert_int_equal(count(cpus(0, 32)), 4);
    write_file("/proc/self/cgroup", "0::/../abcd\n");
    assert_int_equal(count(cpus(0, 32)), 4);
}

static void the_mount_is_found_where_it_is(void **state) {
    (void)state;
    char info[5200];
    memset(info, 'x', sizeof info); /* a line longer than any buffer, in which no mount begins */
    (void)snprintf(info + 4990, sizeof info - 4990, "%s",
                   " 1 2 3 / /wrong rw - cgroup2 a b\n31 24 0:26 / /groups rw shared:4 master:2 - cgroup2 cgroup rw\n"
                   "32 24 0:26 / /again rw - cgroup2 cgroup rw\n");
    write_file("/proc/self/mountinfo", info);
    write_file("/groups/box/cpu.max", "500000 100000\n");
    write_file("/wrong/box/cpu.max", "100000 100000\n");
    write_file("/sys/fs/cgroup/box/cpu.max", "100000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 5);
    write_file("/proc/self/mountinfo", "");
    assert_int_equal(count(cpus(0, 32)), 1);
}

static void the_quota_of_version_1_counts(void **state) {
    (void)state;
    write_file("/proc/self/cgroup", "9:name=systemd:/\n5:cpuset:/none\n4:cpuacct,cpu:/box/inner\n0::/\n");
    write_file("/proc/self/mountinfo", "31 24 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                       "32 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                                       "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/box/inner/cpu.cfs_quota_us", "350000\n");
    assert_int_equal(count(cpus(0, 32)), 16);
    write_file("/sys/fs/cgroup/cpu,cpuacct/box/inner/cpu.cfs_period_us", "100000\n");
    assert_int_equal(count(cpus(0, 32)), 3);
    write_file("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "200000\n");
    write_file("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    assert_int_equal(count(cpus(0, 32)), 2);
    write_file("/sys/fs/cgroup/unified/cpu.max", "100000 100000\n");
    assert_int_equal(count(cpus(0, 32)), 1);
}

static void this_process_restricted_to_one_processor_gives_one(void **state) {
    (void)state;
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        skip();
    }
    int before = nib_cpu_count();
    assert_in_range(before, 1, 256);
    assert_true(before <= CPU_COUNT(&all) && before <= nib_cpu_slots());
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int count_of_one = nib_cpu_count(), slots_of_one = nib_cpu_slots();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(count_of_one, 1);
    assert_int_equal(slots_of_one, 1);
    assert_int_equal(nib_cpu_count(), before);
}

#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)

int main(void) {
    const struct CMUnitTest tests[] = {
        ON_A_MACHINE(a_host_without_limits_gives_its_cores),
        ON_A_MACHINE(two_processors_by_affinity_give_two),
        ON_A_MACHINE(two_threads_of_a_core_give_one),
        ON_A_MACHINE(a_quota_is_rounded_down_and_at_least_one),
        ON_A_MACHINE(a_quota_of_any_ancestor_counts),
        ON_A_MACHINE(a_quota_of_another_cgroup_does_not_count),
        ON_A_MACHINE(what_is_not_understood_is_no_limit),
        ON_A_MACHINE(garbage_in_the_lists_is_no_limit),
        cmocka_unit_test(an_empty_machine_gives_the_affinity),
        cmocka_unit_test(a_large_machine_gives_at_most_256),
        ON_A_MACHINE(a_container_sees_its_own_cgroup_as_the_top),
        ON_A_MACHINE(the_mount_is_found_where_it_is),
        ON_A_MACHINE(the_quota_of_version_1_counts),
        cmocka_unit_test(this_process_restricted_to_one_processor_gives_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
