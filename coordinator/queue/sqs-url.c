/* SPDX-License-Identifier: Apache-2.0 */
#include "sqs-url.h"

#include "aws-settings.h"
#include "string-util.h"
#include "strv.h"

#define URL_MAX_BYTES 1024u

void sqs_url_done(SqsUrl *u) {
        free(u->url);
        free(u->endpoint);
        free(u->region);
        free(u->account);
        free(u->name);
        *u = (SqsUrl){ 0 };
}

/* Behind the label that names the service stands the region; before there was one, the other way round. */
static int region_of_host(const char *host, char **ret) {
        _cleanup_strv_free_ char **labels = NULL;
        const char *region = NULL;
        int r;

        r = strv_split(host, ".", &labels);
        if (r < 0)
                return r;
        for (char **l = labels; l && *l && l[1] && !region; l++)
                if (streq(*l, "sqs") || streq(*l, "sqs-fips"))
                        region = l[1];
                else if (streq(l[1], "queue"))
                        region = *l;
        if (!region && startswith(host, "queue.amazonaws.com"))
                region = "us-east-1";
        return free_and_strdup(ret, region && aws_region_is_valid(region) ? region : NULL);
}

static bool is_loopback(const char *host) {
        static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *rest = startswith(host, names[i]);

                if (rest && (!*rest || *rest == ':'))
                        return true;
        }
        return false;
}

/* "/ACCOUNT/NAME", or more of them; nothing that would have to be escaped. */
static const char *name_of_path(const char *path) {
        const char *name = strrchr(path, '/');

        return name && name != path && name[1] &&
                               strspn(path,
                                      "/-_.ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") ==
                                       strlen(path)
                       ? name + 1
                       : NULL;
}

/* Copies the account: the path element before the queue's name. *ret NULL: it is not all digits. */
static int account_of_path(const char *path, const char *name, char **ret) {
        const char *end = name - 1, *begin = end;
        _cleanup_free_ char *account = NULL;

        while (begin > path && begin[-1] != '/')
                begin--;
        account = strf("%.*s", (int) (end - begin), begin);
        if (!account)
                return -ENOMEM;
        return free_and_strdup(ret, *account && !account[strspn(account, "0123456789")] ? account : NULL);
}

static int fill(const char *url, const char *path, const char *name, const AwsEndpoint *e, SqsUrl *u) {
        int r;

        r = free_and_strdup(&u->url, url);
        if (r >= 0)
                r = free_and_strdup(&u->name, name);
        if (r >= 0)
                r = region_of_host(e->host, &u->region);
        if (r >= 0)
                r = account_of_path(path, name, &u->account);
        if (r < 0)
                return r;
        u->endpoint = strf("%.*s", (int) (path - url), url);
        return u->endpoint ? 0 : -ENOMEM;
}

int sqs_url_parse(const char *url, SqsUrl *ret, const char **reterr_why) {
        _cleanup_(aws_endpoint_done) AwsEndpoint e = { 0 };
        _cleanup_(sqs_url_done) SqsUrl u = { 0 };
        _cleanup_free_ char *origin = NULL;
        const char *authority, *path, *name;
        int r;

        assert(url && ret && reterr_why);
        *reterr_why = "it is no URL of a queue (https://sqs.REGION.amazonaws.com/ACCOUNT/NAME)";
        if (strlen(url) > URL_MAX_BYTES)
                return -EINVAL;
        authority = strstr(url, "://");
        path = authority ? strchr(authority + 3, '/') : NULL;
        name = path ? name_of_path(path) : NULL;
        if (!name)
                return -EINVAL;
        origin = strf("%.*s", (int) (path - url), url);
        if (!origin)
                return -ENOMEM;
        r = aws_endpoint_parse(origin, &e);
        if (r < 0)
                return r;
        if (startswith(url, "http://") && !is_loopback(e.host)) {
                *reterr_why = "plain http:// is for an imitation on this machine alone";
                return -EINVAL;
        }
        r = fill(url, path, name, &e, &u);
        if (r < 0)
                return r;
        *ret = u;
        u = (SqsUrl){ 0 };
        return 0;
}
