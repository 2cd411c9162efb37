/* SPDX-License-Identifier: Apache-2.0 */
#include "aws-settings.h"

#include <stdint.h>

#include "parse-util.h"
#include "string-util.h"

#define IMDS_IPV4 "http://169.254.169.254"
#define IMDS_IPV6 "http://[fd00:ec2::254]"
#define REGION_MAX 64u
#define ENDPOINT_MAX 512u

/* The first variable that is set wins. */
static const struct {
        size_t offset;
        const char *names[2];
} variables[] = {
        { offsetof(AwsSettings, access_key_id), { "AWS_ACCESS_KEY_ID" } },
        { offsetof(AwsSettings, secret_access_key), { "AWS_SECRET_ACCESS_KEY" } },
        { offsetof(AwsSettings, session_token), { "AWS_SESSION_TOKEN" } },
        { offsetof(AwsSettings, role_arn), { "AWS_ROLE_ARN" } },
        { offsetof(AwsSettings, web_identity_token_file), { "AWS_WEB_IDENTITY_TOKEN_FILE" } },
        { offsetof(AwsSettings, role_session_name), { "AWS_ROLE_SESSION_NAME" } },
        { offsetof(AwsSettings, shared_credentials_file), { "AWS_SHARED_CREDENTIALS_FILE" } },
        { offsetof(AwsSettings, profile), { "AWS_PROFILE" } },
        { offsetof(AwsSettings, container_full_uri), { "AWS_CONTAINER_CREDENTIALS_FULL_URI" } },
        { offsetof(AwsSettings, container_relative_uri), { "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI" } },
        { offsetof(AwsSettings, container_token), { "AWS_CONTAINER_AUTHORIZATION_TOKEN" } },
        { offsetof(AwsSettings, container_token_file), { "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE" } },
        { offsetof(AwsSettings, imds_endpoint), { "AWS_EC2_METADATA_SERVICE_ENDPOINT" } },
        { offsetof(AwsSettings, imds_disabled), { "AWS_EC2_METADATA_DISABLED" } },
        { offsetof(AwsSettings, region), { "AWS_REGION", "AWS_DEFAULT_REGION" } },
        { offsetof(AwsSettings, endpoint_ec2), { "AWS_ENDPOINT_URL_EC2", "AWS_ENDPOINT_URL" } },
        { offsetof(AwsSettings, endpoint_autoscaling), { "AWS_ENDPOINT_URL_AUTO_SCALING", "AWS_ENDPOINT_URL" } },
        { offsetof(AwsSettings, endpoint_sts), { "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL" } },
};

/* Partitions by the beginning of their regions' names; longer prefixes before the shorter ones they begin
 * with. */
static const struct {
        const char *prefix;
        const char *suffix;
} partitions[] = {
        { "cn-", "amazonaws.com.cn" },    { "eusc-", "amazonaws.eu" },      { "us-isob-", "sc2s.sgov.gov" },
        { "us-isof-", "csp.hci.ic.gov" }, { "eu-isoe-", "cloud.adc-e.uk" }, { "us-iso-", "c2s.ic.gov" },
        { "", "amazonaws.com" },
};

static char **setting(AwsSettings *s, size_t i) {
        return (char **) (void *) ((char *) s + variables[i].offset);
}

static int read_variables(AwsSettings *s, aws_getenv_t getenv_fn, void *userdata) {
        int r;

        for (size_t i = 0; i < ELEMENTSOF(variables); i++)
                for (size_t k = 0; k < ELEMENTSOF(variables[i].names) && !*setting(s, i); k++) {
                        const char *name = variables[i].names[k];
                        const char *value = name ? getenv_fn(name, userdata) : NULL;

                        if (isempty(value))
                                continue;
                        r = free_and_strdup(setting(s, i), value);
                        if (r < 0)
                                return r;
                }
        return 0;
}

static int set_defaults(AwsSettings *s, aws_getenv_t getenv_fn, void *userdata) {
        const char *home = getenv_fn ? getenv_fn("HOME", userdata) : NULL;
        const char *mode = getenv_fn ? getenv_fn("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", userdata) : NULL;

        if (!s->shared_credentials_file && !isempty(home)) {
                s->shared_credentials_file = strf("%s/.aws/credentials", home);
                if (!s->shared_credentials_file)
                        return -ENOMEM;
        }
        if (!s->imds_endpoint)
                return free_and_strdup(&s->imds_endpoint,
                                       mode && strcasecmp(mode, "IPv6") == 0 ? IMDS_IPV6 : IMDS_IPV4);

        for (size_t n = strlen(s->imds_endpoint); n > 0 && s->imds_endpoint[n - 1] == '/'; n--)
                s->imds_endpoint[n - 1] = 0;
        return 0;
}

int aws_settings_new(aws_getenv_t getenv_fn, void *userdata, AwsSettings **ret) {
        _cleanup_(aws_settings_freep) AwsSettings *s = NULL;
        int r;

        assert(ret);
        s = new0(AwsSettings, 1);
        if (!s)
                return -ENOMEM;
        if (getenv_fn) {
                r = read_variables(s, getenv_fn, userdata);
                if (r < 0)
                        return r;
        }
        r = set_defaults(s, getenv_fn, userdata);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

AwsSettings *aws_settings_free(AwsSettings *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(variables); i++)
                erase_and_free(*setting(s, i), strlen(strempty(*setting(s, i))));
        free(s);
        return NULL;
}

bool aws_imds_is_disabled(const AwsSettings *s) {
        return s->imds_disabled && strcasecmp(s->imds_disabled, "true") == 0;
}

bool aws_region_is_valid(const char *region) {
        size_t n = strlen(strempty(region));

        if (n == 0 || n > REGION_MAX || region[0] == '-' || region[n - 1] == '-')
                return false;
        for (size_t i = 0; i < n; i++) {
                bool letter = region[i] >= 'a' && region[i] <= 'z',
                     digit = region[i] >= '0' && region[i] <= '9';

                if (!letter && !digit && (region[i] != '-' || region[i - 1] == '-'))
                        return false;
        }
        return true;
}

/* A zone is its region and one letter; a local or wavelength zone has "-" and more behind the region. */
bool aws_zone_is_in_region(const char *zone, const char *region) {
        const char *rest = startswith(zone, region);

        if (!rest)
                return false;
        return (rest[0] >= 'a' && rest[0] <= 'z' && !rest[1]) || (rest[0] == '-' && rest[1]);
}

static int endpoint_fill(char *url, char *host, AwsEndpoint *ret) {
        if (!url || !host) {
                free(url);
                free(host);
                return -ENOMEM;
        }
        *ret = (AwsEndpoint){ .url = url, .host = host };
        return 0;
}

int aws_endpoint_for(const char *service, const char *region, AwsEndpoint *ret) {
        const char *suffix = NULL;

        for (size_t i = 0; !suffix; i++)
                if (startswith(region, partitions[i].prefix))
                        suffix = partitions[i].suffix;
        return endpoint_fill(strf("https://%s.%s.%s/", service, region, suffix),
                             strf("%s.%s.%s", service, region, suffix), ret);
}

/* A host name, an IPv4 address or an IPv6 one in brackets, and maybe a port. */
static bool authority_is_valid(const char *s) {
        const char *port = strrchr(s, ':'), *bracket = strrchr(s, ']');
        uint64_t unused;
        size_t n = strlen(s);

        if (n == 0 || n > ENDPOINT_MAX || s[0] == ':')
                return false;
        for (size_t i = 0; i < n; i++) {
                bool alphanumeric = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
                                    (s[i] >= '0' && s[i] <= '9');

                if (!alphanumeric && !strchr("-._:[]", s[i]))
                        return false;
        }
        if ((s[0] == '[') != (bracket != NULL) || (!bracket && port != strchr(s, ':')))
                return false;
        if (bracket &&
            (strchr(s, ']') != bracket || strchr(s + 1, '[') || (bracket[1] && port != bracket + 1)))
                return false;
        if (!port || (bracket && port < bracket))
                return true;
        return parse_uint64_range(port + 1, 1, UINT16_MAX, &unused) >= 0;
}

int aws_endpoint_parse(const char *url, AwsEndpoint *ret) {
        const char *authority = startswith(url, "https://"), *own_port = ":443", *own;
        _cleanup_free_ char *host = NULL;
        size_t size;

        if (!authority) {
                authority = startswith(url, "http://");
                own_port = ":80";
        }
        if (!authority)
                return -EINVAL;
        size = strcspn(authority, "/?#");
        host = memdup_str(authority, size);
        if (!host)
                return -ENOMEM;
        if (!authority_is_valid(host) || (authority[size] && !streq(authority + size, "/")))
                return -EINVAL;
        own = endswith(host, own_port);
        if (own)
                host[own - host] = 0;
        return endpoint_fill(strf("%.*s%s/", (int) (authority - url), url, host), strdup(host), ret);
}

void aws_endpoint_done(AwsEndpoint *e) {
        free(e->url);
        free(e->host);
        *e = (AwsEndpoint){ 0 };
}
