/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The API server's own limit: evicts a list of pods as fast as a client can that does nothing else, and says
 * how long it took from the first request to the last answer. Beside it stands what vesper needs for as
 * many: the Nodes are deleted by the same means, so that neither of the two bears what a client in Python
 * costs.
 *
 *      evict-limit --server URL --ca FILE (--cert FILE --key FILE | --token FILE)
 *                  --connections N --streams N [--http1] < lines "NAMESPACE/POD" to evict, "NODE" or "/PATH" to delete
 *
 * One thread and one libcurl multi per connection (HTTP/2, so many streams each; the server may grant
 * fewer), or one multi with so many connections (--http1). So many calls are under way together as connections times
 * streams, until the last of them have left: 4 x 40 is a client held to vesper's own window. All connections stand before the clock starts. A
 * refusal (429, or a 500 for a conflict) is sent again at once, behind the others. Prints one JSON object;
 * "began" is the wall clock's time of the first request.
 */

#include <curl/curl.h>
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define BUFFER_BYTES 4096L
#define TRIES_MAX 1000u
#define WAIT_MSEC 1000

typedef struct Options {
        const char *server, *ca, *cert, *key, *token_path;
        char *authorization; /* header, or NULL */
        unsigned connections, streams;
        bool http1;
} Options;

typedef struct Target {
        char *url, *body; /* body NULL: to be deleted */
        unsigned tries;
} Target;

typedef struct Run {
        const Options *o;
        Target *targets;
        size_t n_targets;
        struct curl_slist *headers;
        pthread_mutex_t lock; /* of what follows */
        size_t next;
        pthread_barrier_t warm;
} Run;

/* What one thread does. */
typedef struct Worker {
        Run *run;
        CURLM *multi;
        unsigned connections, window;
        size_t in_flight;
        pthread_t thread;
        struct timespec first, last;
        struct timespec began; /* `first`, by the wall clock */
        size_t evicted, deleted, refused, failed, sent;
        long http_version;
        char error[CURL_ERROR_SIZE];
} Worker;

static void die(const char *what, const char *why) {
        fprintf(stderr, "evict-limit: %s: %s\n", what, why);
        exit(EXIT_FAILURE);
}

static void *need(void *p) {
        if (!p)
                die("memory", strerror(ENOMEM));
        return p;
}

static double seconds_between(const struct timespec *a, const struct timespec *b) {
        return (double) (b->tv_sec - a->tv_sec) + (double) (b->tv_nsec - a->tv_nsec) / 1e9;
}

static bool is_before(const struct timespec *a, const struct timespec *b) {
        return seconds_between(a, b) > 0;
}

static size_t ignore_body(char *data, size_t size, size_t n, void *userdata) {
        return size * n;
}

/* `target` NULL: a request that only opens a connection. */
static void request_new(Worker *w, Target *target) {
        const Options *o = w->run->o;
        CURL *e = need(curl_easy_init());

        curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(e, CURLOPT_CAINFO, o->ca);
        curl_easy_setopt(e, CURLOPT_SSLCERT, o->cert);
        curl_easy_setopt(e, CURLOPT_SSLKEY, o->key);
        curl_easy_setopt(e, CURLOPT_HTTP_VERSION,
                         (long) (o->http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
        curl_easy_setopt(e, CURLOPT_BUFFERSIZE, BUFFER_BYTES);
        curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, 4 * BUFFER_BYTES);
        curl_easy_setopt(e, CURLOPT_TCP_NODELAY, 1L);
        curl_easy_setopt(e, CURLOPT_NOPROXY, "*");
        curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, ignore_body);
        curl_easy_setopt(e, CURLOPT_ERRORBUFFER, w->error);
        curl_easy_setopt(e, CURLOPT_HTTPHEADER, w->run->headers);
        curl_easy_setopt(e, CURLOPT_PRIVATE, target);
        if (target) {
                curl_easy_setopt(e, CURLOPT_URL, target->url);
                if (target->body)
                        curl_easy_setopt(e, CURLOPT_POSTFIELDS, target->body);
                else
                        curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, "DELETE");
        } else {
                char *url = NULL;

                if (asprintf(&url, "%s/readyz", o->server) < 0)
                        die("memory", strerror(ENOMEM));
                curl_easy_setopt(e, CURLOPT_URL, url);
                free(url);
        }
        if (curl_multi_add_handle(w->multi, e) != CURLM_OK)
                die("curl_multi_add_handle", "refused");
        w->in_flight++;
}

static Target *take_target(Run *r) {
        Target *target = NULL;

        pthread_mutex_lock(&r->lock);
        if (r->next < r->n_targets)
                target = r->targets + r->next++;
        pthread_mutex_unlock(&r->lock);
        return target;
}

/* True if the same target is to be asked for once more. */
static bool judge(Worker *w, Target *target, CURLcode result, long status) {
        if (result == CURLE_OK && (status == 429 || status == 500) && ++target->tries < TRIES_MAX) {
                w->refused++;
                return true;
        }
        if (result == CURLE_OK && target->body && status == 201)
                w->evicted++;
        else if (result == CURLE_OK && !target->body && status == 200)
                w->deleted++;
        else {
                if (w->failed == 0)
                        fprintf(stderr, "evict-limit: %s: HTTP %ld, %s\n", target->url, status,
                                result == CURLE_OK ? "no success" : w->error);
                w->failed++;
        }
        return false;
}

static void collect(Worker *w) {
        CURLMsg *m;
        int left;

        while ((m = curl_multi_info_read(w->multi, &left))) {
                CURL *e = m->easy_handle;
                CURLcode result = m->data.result;
                long status = 0;
                char *private = NULL;
                Target *target;

                curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
                curl_easy_getinfo(e, CURLINFO_PRIVATE, &private);
                curl_easy_getinfo(e, CURLINFO_HTTP_VERSION, &w->http_version);
                curl_multi_remove_handle(w->multi, e);
                target = (Target *) (void *) private;
                if (!target && result != CURLE_OK)
                        die(w->run->o->server, w->error);
                if (target) {
                        clock_gettime(CLOCK_MONOTONIC, &w->last);
                        if (judge(w, target, result, status)) {
                                curl_multi_add_handle(w->multi, e);
                                w->sent++;
                                continue;
                        }
                }
                curl_easy_cleanup(e);
                w->in_flight--;
        }
}

static void turn(Worker *w) {
        int running;

        if (curl_multi_perform(w->multi, &running) != CURLM_OK)
                die("curl_multi_perform", "failed");
        collect(w);
        if (w->in_flight > 0 && curl_multi_poll(w->multi, NULL, 0, WAIT_MSEC, NULL) != CURLM_OK)
                die("curl_multi_poll", "failed");
}

static void *worker_main(void *userdata) {
        Worker *w = userdata;
        Target *target;

        for (unsigned i = 0; i < w->connections; i++)
                request_new(w, NULL);
        while (w->in_flight > 0)
                turn(w);
        pthread_barrier_wait(&w->run->warm);

        clock_gettime(CLOCK_REALTIME, &w->began);
        clock_gettime(CLOCK_MONOTONIC, &w->first);
        w->last = w->first;
        for (;;) {
                while (w->in_flight < w->window && (target = take_target(w->run))) {
                        request_new(w, target);
                        w->sent++;
                }
                if (w->in_flight == 0)
                        return NULL;
                turn(w);
        }
}

static void worker_init(Worker *w, Run *r) {
        const Options *o = r->o;

        w->run = r;
        w->connections = o->http1 ? o->connections : 1;
        w->window = o->http1 ? o->connections : o->streams;
        w->multi = need(curl_multi_init());
        curl_multi_setopt(w->multi, CURLMOPT_PIPELINING, o->http1 ? CURLPIPE_NOTHING : CURLPIPE_MULTIPLEX);
        curl_multi_setopt(w->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long) w->connections);
        curl_multi_setopt(w->multi, CURLMOPT_MAXCONNECTS, (long) w->connections);
        curl_multi_setopt(w->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long) o->streams);
}

/* -- input ---------------------------------------------------------------------------------------------- */

static void target_read(const Options *o, char *line, Target *t) {
        char *slash = strchr(line, '/');

        *t = (Target){};
        if (slash == line) {
                if (asprintf(&t->url, "%s%s", o->server, line) < 0)
                        die("memory", strerror(ENOMEM));
                return;
        }
        if (!slash) {
                if (asprintf(&t->url, "%s/api/v1/nodes/%s", o->server, line) < 0)
                        die("memory", strerror(ENOMEM));
                return;
        }
        *slash = 0;
        if (asprintf(&t->url, "%s/api/v1/namespaces/%s/pods/%s/eviction", o->server, line, slash + 1) < 0 ||
            asprintf(&t->body,
                     "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":"
                     "{\"namespace\":\"%s\",\"name\":\"%s\"}}",
                     line, slash + 1) < 0)
                die("memory", strerror(ENOMEM));
}

static void read_targets(Run *r) {
        size_t allocated = 0, size = 0;
        char *line = NULL;

        while (getline(&line, &size, stdin) > 0) {
                line[strcspn(line, "\n")] = 0;
                if (line[0] == 0)
                        die("a line", "empty");
                if (r->n_targets == allocated) {
                        allocated = allocated ? 2 * allocated : 256;
                        r->targets = need(reallocarray(r->targets, allocated, sizeof(*r->targets)));
                }
                target_read(r->o, line, r->targets + r->n_targets++);
        }
        free(line);
}

static char *read_authorization(const char *path) {
        char *line = NULL, *header = NULL;
        size_t size = 0;
        FILE *f = fopen(path, "re");

        if (!f || getline(&line, &size, f) <= 0)
                die(path, f ? "empty" : strerror(errno));
        line[strcspn(line, "\r\n")] = 0;
        if (asprintf(&header, "Authorization: Bearer %s", line) < 0)
                die("memory", strerror(ENOMEM));
        free(line);
        fclose(f);
        return header;
}

static void parse_options(int argc, char **argv, Options *o) {
        static const struct option table[] = {
                { "server", required_argument, NULL, 's' },
                { "ca", required_argument, NULL, 'a' },
                { "cert", required_argument, NULL, 'c' },
                { "key", required_argument, NULL, 'k' },
                { "token", required_argument, NULL, 't' },
                { "connections", required_argument, NULL, 'n' },
                { "streams", required_argument, NULL, 'm' },
                { "http1", no_argument, NULL, '1' },
                {},
        };
        int c;

        while ((c = getopt_long(argc, argv, "", table, NULL)) != -1)
                switch (c) {
                case 's':
                        o->server = optarg;
                        break;
                case 'a':
                        o->ca = optarg;
                        break;
                case 'c':
                        o->cert = optarg;
                        break;
                case 'k':
                        o->key = optarg;
                        break;
                case 't':
                        o->token_path = optarg;
                        break;
                case 'n':
                        o->connections = (unsigned) atoi(optarg);
                        break;
                case 'm':
                        o->streams = (unsigned) atoi(optarg);
                        break;
                case '1':
                        o->http1 = true;
                        break;
                default:
                        exit(2);
                }
        if (!o->server || !o->ca || (!o->token_path && (!o->cert || !o->key)) || o->connections == 0 ||
            o->streams == 0) {
                fprintf(stderr,
                        "usage: evict-limit --server URL --ca FILE (--cert FILE --key FILE | --token "
                        "FILE) --connections N --streams N [--http1] < NAMESPACE/POD, NODE or /PATH lines\n");
                exit(2);
        }
        if (o->token_path)
                o->authorization = read_authorization(o->token_path);
}

/* -- all of it ------------------------------------------------------------------------------------------ */

static double cpu_seconds(void) {
        struct rusage u;

        getrusage(RUSAGE_SELF, &u);
        return (double) (u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               (double) (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void print_result(const Worker *workers, unsigned n, double cpu) {
        const Worker *began = workers;
        struct timespec last = workers[0].last;
        size_t evicted = 0, deleted = 0, refused = 0, failed = 0, sent = 0;

        for (unsigned i = 0; i < n; i++) {
                if (is_before(&workers[i].first, &began->first))
                        began = workers + i;
                if (is_before(&last, &workers[i].last))
                        last = workers[i].last;
                evicted += workers[i].evicted;
                deleted += workers[i].deleted;
                refused += workers[i].refused;
                failed += workers[i].failed;
                sent += workers[i].sent;
        }
        printf("{\"began\": %lld.%06ld, \"seconds\": %.6f, \"cpu_seconds\": %.6f, \"http\": %d, \"sent\": "
               "%zu, "
               "\"evicted\": %zu, \"deleted\": %zu, \"refused\": %zu, \"failed\": %zu}\n",
               (long long) began->began.tv_sec, began->began.tv_nsec / 1000,
               seconds_between(&began->first, &last), cpu,
               workers[0].http_version == CURL_HTTP_VERSION_2 ? 2 : 1, sent, evicted, deleted, refused,
               failed);
}

int main(int argc, char **argv) {
        Options o = {};
        Run run = { .o = &o };
        unsigned n_workers;
        Worker *workers;
        double cpu;

        parse_options(argc, argv, &o);
        curl_global_init(CURL_GLOBAL_ALL);
        read_targets(&run);
        run.headers = need(curl_slist_append(NULL, "Content-Type: application/json"));
        if (o.authorization)
                run.headers = need(curl_slist_append(run.headers, o.authorization));

        n_workers = o.http1 ? 1 : o.connections;
        workers = need(calloc(n_workers, sizeof(*workers)));
        pthread_mutex_init(&run.lock, NULL);
        pthread_barrier_init(&run.warm, NULL, n_workers + 1);
        for (unsigned i = 0; i < n_workers; i++) {
                worker_init(workers + i, &run);
                if (pthread_create(&workers[i].thread, NULL, worker_main, workers + i) != 0)
                        die("pthread_create", "failed");
        }
        pthread_barrier_wait(&run.warm);
        cpu = cpu_seconds();
        for (unsigned i = 0; i < n_workers; i++)
                pthread_join(workers[i].thread, NULL);
        print_result(workers, n_workers, cpu_seconds() - cpu);

        for (unsigned i = 0; i < n_workers; i++)
                curl_multi_cleanup(workers[i].multi);
        for (size_t i = 0; i < run.n_targets; i++) {
                free(run.targets[i].url);
                free(run.targets[i].body);
        }
        curl_slist_free_all(run.headers);
        free(run.targets);
        free(workers);
        free(o.authorization);
        curl_global_cleanup();
        return 0;
}
