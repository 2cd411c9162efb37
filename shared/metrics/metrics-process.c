/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "alloc-util.h"
#include "file-util.h"
#include "metrics-internal.h"

/* The process_* figures that every Prometheus client has, by the names of its guidelines. Read at each
 * scrape. */

#define STAT_MAX_BYTES (64u * 1024u)

typedef struct ProcessStat {
        uint64_t cpu_ticks, start_ticks, virtual_bytes, resident_pages;
} ProcessStat;

/* /proc/self/stat (proc(5)). The second field is the program's name, which may hold spaces and brackets:
 * the fields are counted from the last bracket on. */
static int read_stat(ProcessStat *ret) {
        _cleanup_free_ char *text = NULL;
        uint64_t user, system;
        const char *p;
        int r;

        r = read_file("/proc/self/stat", STAT_MAX_BYTES, &text, NULL);
        if (r < 0)
                return r;
        p = strrchr(text, ')');
        /* 14 utime, 15 stime, 22 starttime, 23 vsize, 24 rss */
        if (!p || sscanf(p + 1,
                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                         " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNu64,
                         &user, &system, &ret->start_ticks, &ret->virtual_bytes, &ret->resident_pages) != 5)
                return -EBADMSG;
        ret->cpu_ticks = user + system;
        return 0;
}

/* Wall clock of the machine's start, in seconds. */
static int read_boot_time(uint64_t *ret) {
        _cleanup_free_ char *text = NULL;
        const char *line;
        int r;

        /* A line per interrupt: large on large machines. */
        r = read_file("/proc/stat", 16 * STAT_MAX_BYTES, &text, NULL);
        if (r < 0)
                return r;
        line = strstr(text, "\nbtime ");
        return line && sscanf(line, "\nbtime %" SCNu64, ret) == 1 ? 0 : -EBADMSG;
}

static int count_descriptors(uint64_t *ret) {
        struct dirent *d;
        uint64_t n = 0;
        DIR *folder;

        folder = opendir("/proc/self/fd");
        if (!folder)
                return -errno;
        while ((d = readdir(folder)))
                if (d->d_name[0] != '.')
                        n++;
        (void) closedir(folder);
        *ret = n - 1; /* the folder's own */
        return 0;
}

static void add_figure(StrBuf *b, const char *name, const char *type, const char *help, double value) {
        metrics_add_header(b, name, type, help);
        strbuf_addf(b, "%s ", name);
        metrics_add_number(b, value);
        strbuf_add_char(b, '\n');
}

static void add_stat(StrBuf *b) {
        double ticks = (double) sysconf(_SC_CLK_TCK);
        ProcessStat stat;
        uint64_t boot;

        if (read_stat(&stat) < 0)
                return;
        add_figure(b, "process_cpu_seconds_total", "counter", "CPU time spent, user and system, in seconds.",
                   (double) stat.cpu_ticks / ticks);
        add_figure(b, "process_virtual_memory_bytes", "gauge", "Virtual memory.",
                   (double) stat.virtual_bytes);
        add_figure(b, "process_resident_memory_bytes", "gauge", "Resident memory.",
                   (double) stat.resident_pages * (double) sysconf(_SC_PAGESIZE));
        if (read_boot_time(&boot) >= 0)
                add_figure(b, "process_start_time_seconds", "gauge",
                           "Start of the process, in seconds since the epoch.",
                           (double) boot + (double) stat.start_ticks / ticks);
}

void metrics_add_process(StrBuf *b) {
        struct rlimit limit;
        uint64_t n = 0;

        add_stat(b);
        if (count_descriptors(&n) >= 0)
                add_figure(b, "process_open_fds", "gauge", "Open file descriptors.", (double) n);
        if (getrlimit(RLIMIT_NOFILE, &limit) >= 0)
                add_figure(b, "process_max_fds", "gauge", "File descriptors that may be open.",
                           (double) limit.rlim_cur);
}
