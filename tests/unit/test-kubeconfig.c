/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmocka-test.h"
#include "kubeconfig.h"
#include "string-util.h"
#include "strv.h"

/* The beginning that most rows share; a cluster's and a user's members follow with this indentation. */
#define HEAD \
        "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n  context: " \
        "{cluster: c, user: u}\n"
#define CLUSTER "clusters:\n- name: c\n  cluster:\n    server: https://api:6443\n"
#define PLAIN "clusters:\n- name: c\n  cluster:\n    server: http://api:8080\n"
#define USER "users:\n- name: u\n  user:\n"

TEST_CASE(test_good) {
        static const struct {
                const char *what, *text;
                const char *server, *ca_file, *cert_file, *key_file, *token, *token_file, *namespace;
        } rows[] = {
                { "a kubelet's",
                  HEAD CLUSTER
                  "    certificate-authority: /pki/ca.crt\n" USER
                  "    client-certificate: /pki/current.pem\n    client-key: /pki/current.pem\n",
                  "https://api:6443", "/pki/ca.crt", "/pki/current.pem", "/pki/current.pem", NULL, NULL,
                  NULL },
                { "relative paths are taken from the file's folder",
                  HEAD CLUSTER "    certificate-authority: ca.crt\n" USER "    tokenFile: sub/token\n",
                  "https://api:6443", "/etc/vesper/ca.crt", NULL, NULL, NULL, "/etc/vesper/sub/token",
                  NULL },
                { "JSON is YAML",
                  "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\","
                  "\"user\":\"u\","
                  "\"namespace\":\"shop\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://"
                  "127.0.0.1:8080/\"}}],"
                  "\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"abc\"}}]}",
                  "http://127.0.0.1:8080", NULL, NULL, NULL, "abc", NULL, "shop" },
                { "the current one of several contexts",
                  "current-context: b\ncontexts:\n- {name: a, context: {cluster: ca, user: ua}}\n"
                  "- {name: b, context: {cluster: cb, user: ub}}\nclusters:\n- {name: ca, cluster: {server: "
                  "'https://a'}}\n"
                  "- {name: cb, cluster: {server: 'https://b'}}\nusers:\n- {name: ua, user: {token: a}}\n"
                  "- {name: ub, user: {token: b}}\n",
                  "https://b", NULL, NULL, NULL, "b", NULL, NULL },
                { "no user at all: as anonymous",
                  "current-context: a\ncontexts:\n- {name: a, context: {cluster: c}}\n" CLUSTER,
                  "https://api:6443", NULL, NULL, NULL, NULL, NULL, NULL },
                { "a user without a credential", HEAD CLUSTER "users:\n- name: u\n  user: {}\n",
                  "https://api:6443", NULL, NULL, NULL, NULL, NULL, NULL },
                { "null and empty are unset",
                  HEAD CLUSTER "    certificate-authority: null\n    proxy-url: ''\n" USER
                               "    token: ''\n    tokenFile: ~\n    username:\n",
                  "https://api:6443", NULL, NULL, NULL, NULL, NULL, NULL },
                { "unknown keys are passed over",
                  HEAD CLUSTER "    extensions: [{name: x, extension: {a: b}}]\n" USER
                               "    token: t\npreferences: {colors: true}\n",
                  "https://api:6443", NULL, NULL, NULL, "t", NULL, NULL },
                { "a token of digits is a text", HEAD CLUSTER USER "    token: 12345\n", "https://api:6443",
                  NULL, NULL, NULL, "12345", NULL, NULL },
                { "a path in the address",
                  "current-context: a\ncontexts: [{name: a, context: {cluster: c}}]\n"
                  "clusters: [{name: c, cluster: {server: 'https://rancher/k8s/clusters/c-1//'}}]\n",
                  "https://rancher/k8s/clusters/c-1", NULL, NULL, NULL, NULL, NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL;
                _cleanup_free_ char *message = NULL;

                print_message("%s\n", rows[i].what);
                if (kubeconfig_parse(rows[i].text, strlen(rows[i].text), "/etc/vesper", &c, &message) < 0)
                        fail_msg("%s", message);
                assert_return_code(kubeconfig_copy(c, &copy), 0);
                assert_string_equal(copy->server, rows[i].server);
                assert_true(streq_ptr(copy->ca_file, rows[i].ca_file));
                assert_true(streq_ptr(copy->cert_file, rows[i].cert_file));
                assert_true(streq_ptr(copy->key_file, rows[i].key_file));
                assert_true(streq_ptr(copy->token, rows[i].token));
                assert_true(streq_ptr(copy->token_file, rows[i].token_file));
                assert_true(streq_ptr(copy->namespace, rows[i].namespace));
                assert_null(copy->exec_command);
        }
}

TEST_CASE(test_embedded) {
        static const char text[] =
                HEAD CLUSTER "    certificate-authority: /ignored\n    certificate-authority-data: Y2E=\n   "
                             " tls-server-name: kubernetes\n" USER
                             "    client-certificate: /ignored\n    client-certificate-data: Y2VydA==\n    "
                             "client-key: /ignored\n    client-key-data: a2V5\n";
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL;

        assert_return_code(kubeconfig_parse(text, strlen(text), NULL, &c, NULL), 0);
        assert_return_code(kubeconfig_copy(c, &copy), 0);
        assert_null(copy->ca_file);
        assert_null(copy->cert_file);
        assert_null(copy->key_file);
        assert_int_equal(copy->ca_data_size, 2);
        assert_memory_equal(copy->ca_data, "ca", 2);
        assert_memory_equal(copy->cert_data, "cert", copy->cert_data_size);
        assert_memory_equal(copy->key_data, "key", copy->key_data_size);
        assert_string_equal(copy->tls_server_name, "kubernetes");
        assert_string_equal(copy->user_name, "u");
}

TEST_CASE(test_risks) {
        static const struct {
                const char *what, *text;
                const char *risk, *remedy; /* part of what is said; NULL: nothing */
        } rows[] = {
                { "a CA and a token", HEAD CLUSTER USER "    token: t\n", NULL, NULL },
                { "no check of the server",
                  HEAD CLUSTER "    insecure-skip-tls-verify: true\n" USER "    token: t\n",
                  "insecure-skip-tls-verify is set", "certificate-authority" },
                { "nor with a certificate",
                  HEAD CLUSTER "    insecure-skip-tls-verify: true\n" USER
                               "    client-certificate: /c\n    client-key: /k\n",
                  "answer in its place", "Take insecure-skip-tls-verify out" },
                { "a check that is asked for",
                  HEAD CLUSTER "    insecure-skip-tls-verify: false\n" USER "    token: t\n", NULL, NULL },
                { "a token over http", HEAD PLAIN USER "    token: t\n", "over http://", "https://" },
                { "one of a file", HEAD PLAIN USER "    tokenFile: /t\n", "over http://", "https://" },
                { "one of a plugin",
                  HEAD PLAIN USER "    exec: {apiVersion: client.authentication.k8s.io/v1, command: c, "
                                  "interactiveMode: Never}\n",
                  "over http://", "https://" },
                { "http without a credential", HEAD PLAIN USER "    token: ''\n", NULL, NULL },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;
                const char *risk, *remedy = NULL;

                print_message("%s\n", rows[i].what);
                assert_return_code(kubeconfig_parse(rows[i].text, strlen(rows[i].text), "/etc", &c, NULL),
                                   0);
                risk = kubeconfig_risk(c, &remedy);
                assert_int_equal(!risk, !rows[i].risk);
                if (!risk)
                        continue;
                assert_non_null(strstr(risk, rows[i].risk));
                assert_non_null(strstr(remedy, rows[i].remedy));
        }
}

/* From nowhere, as from standard input: a relative path stays what it is. */
TEST_CASE(test_without_a_folder) {
        static const char text[] = HEAD CLUSTER "    certificate-authority: ca.crt\n" USER
                                               "    exec: {apiVersion: client.authentication.k8s.io/v1, "
                                               "command: ./login}\n";
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;

        assert_return_code(kubeconfig_parse(text, strlen(text), NULL, &c, NULL), 0);
        assert_string_equal(c->ca_file, "ca.crt");
        assert_string_equal(c->exec_command, "./login");
}

TEST_CASE(test_exec) {
        static const char text[] = HEAD CLUSTER USER
                "    exec:\n      apiVersion: client.authentication.k8s.io/v1beta1\n      command: aws\n"
                "      args: [eks, get-token, --cluster-name, prod]\n      env:\n      - {name: "
                "AWS_PROFILE, value: node}\n"
                "      - {name: EMPTY, value: ''}\n      provideClusterInfo: true\n      interactiveMode: "
                "IfAvailable\n"
                "      installHint: install aws\n";
        static const char relative[] = HEAD CLUSTER USER
                "    exec: {apiVersion: client.authentication.k8s.io/v1, command: ./bin/login, env: null}\n";
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *copy = NULL, *r = NULL;
        _cleanup_free_ char *args = NULL;

        assert_return_code(kubeconfig_parse(text, strlen(text), "/etc", &c, NULL), 0);
        assert_return_code(kubeconfig_copy(c, &copy), 0);
        assert_string_equal(copy->exec_command, "aws");
        assert_string_equal(copy->exec_api_version, "client.authentication.k8s.io/v1beta1");
        args = strv_join(copy->exec_args, " ");
        assert_string_equal(args, "eks get-token --cluster-name prod");
        assert_int_equal(copy->n_exec_env, 2);
        assert_string_equal(copy->exec_env[0].name, "AWS_PROFILE");
        assert_string_equal(copy->exec_env[0].value, "node");
        assert_string_equal(copy->exec_env[1].value, "");
        assert_true(copy->exec_provide_cluster_info);
        assert_string_equal(copy->exec_install_hint, "install aws");

        assert_return_code(kubeconfig_parse(relative, strlen(relative), "/etc", &r, NULL), 0);
        assert_string_equal(r->exec_command, "/etc/./bin/login");
        assert_int_equal(r->n_exec_env, 0);
        assert_false(r->exec_provide_cluster_info);
}

TEST_CASE(test_bad) {
        static const struct {
                const char *what, *text;
                int error;
                const char *message;
        } rows[] = {
                { "empty", "", -EBADMSG, "kubeconfig:1: current-context is not set" },
                { "only a comment", "# nothing\n", -EBADMSG, "kubeconfig:1: current-context is not set" },
                { "a text", "hello", -EBADMSG, "kubeconfig:1: no map: no kubeconfig" },
                { "a list", "- a\n", -EBADMSG, "kubeconfig:1: no map: no kubeconfig" },
                { "no YAML", "a: [1, 2\nb: }", -EBADMSG,
                  "kubeconfig:2: no YAML: did not find expected ',' or ']'" },
                { "a tab", "a:\n\t- b\n", -EBADMSG,
                  "kubeconfig:2: no YAML: found character that cannot start any token" },
                { "another kind", "kind: Secret\napiVersion: v1\n", -EBADMSG,
                  "kubeconfig:1: kind is not Config: no kubeconfig" },
                { "another version", "kind: Config\napiVersion: v2\n", -EBADMSG,
                  "kubeconfig:2: apiVersion is not v1: no kubeconfig" },
                { "an alias", "a: &x {b: c}\nd: *x\n", -EBADMSG,
                  "kubeconfig:2: aliases (*name) are not supported" },
                { "a tag", "a: !!binary abc\n", -EBADMSG, "kubeconfig:1: tags are not supported" },
                { "two documents", "a: b\n---\na: c\n", -EBADMSG, "kubeconfig:2: more than one document" },
                { "a key twice", "kind: Config\nusers: []\nkind: Config\n", -EBADMSG,
                  "kubeconfig:3: the key 'kind' is there twice" },
                { "a key that is a list", "? [a]\n: b\n", -EBADMSG, "kubeconfig:1: a key is no text" },
                { "33 lists in each other", "a: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", -EBADMSG,
                  "kubeconfig:1: nested too deeply" },
                { "a NUL in a value", "a: \"b\\0c\"\n", -EBADMSG, "kubeconfig:1: a value contains a NUL" },
                { "the context is a list", "current-context: [a]\n", -EBADMSG,
                  "kubeconfig:1: current-context is no text" },
                { "contexts as a map", "current-context: a\ncontexts: {a: b}\n", -EBADMSG,
                  "kubeconfig:2: contexts is no list" },
                { "no such context", "current-context: a\ncontexts:\n- {name: b, context: {}}\n", -EBADMSG,
                  "kubeconfig:3: there is no context 'a'" },
                { "a context without a cluster",
                  "current-context: a\ncontexts:\n- {name: a, context: {user: u}}\n", -EBADMSG,
                  "kubeconfig:3: the context names no cluster" },
                { "no such cluster", HEAD "clusters: []\n", -EBADMSG,
                  "kubeconfig:7: there is no cluster 'c'" },
                { "no such user", HEAD CLUSTER "users: []\n", -EBADMSG,
                  "kubeconfig:11: there is no user 'u'" },
                { "a cluster without a server",
                  HEAD "clusters:\n- name: c\n  cluster: {certificate-authority: /a}\n", -EBADMSG,
                  "kubeconfig:9: the cluster has no server" },
                { "a server without a scheme", HEAD "clusters: [{name: c, cluster: {server: 'api:6443'}}]\n",
                  -EBADMSG,
                  "kubeconfig:7: server is no http:// or https:// address without user and query" },
                { "a server with a password",
                  HEAD "clusters: [{name: c, cluster: {server: 'https://me:pw@api'}}]\n", -EBADMSG,
                  "kubeconfig:7: server is no http:// or https:// address without user and query" },
                { "a server with a control character",
                  HEAD "clusters: [{name: c, cluster: {server: \"https://api\\u0001\"}}]\n", -EBADMSG,
                  "kubeconfig:7: server contains a character that no address has" },
                { "insecure, in quotes",
                  HEAD CLUSTER "    insecure-skip-tls-verify: 'true'\n" USER "    token: a\n", -EBADMSG,
                  "kubeconfig:11: insecure-skip-tls-verify is neither true nor false" },
                { "insecure with a CA",
                  HEAD CLUSTER "    insecure-skip-tls-verify: true\n    certificate-authority: /ca\n",
                  -EBADMSG,
                  "kubeconfig:10: insecure-skip-tls-verify and a certificate authority exclude each other" },
                { "CA data that is no base64", HEAD CLUSTER "    certificate-authority-data: '%%%'\n",
                  -EBADMSG, "kubeconfig:11: certificate-authority-data is no base64" },
                { "a proxy", HEAD CLUSTER "    proxy-url: http://proxy:3128\n", -ENOTSUP,
                  "kubeconfig:11: proxy-url is not supported: connections to the API server are direct" },
                { "a password", HEAD CLUSTER USER "    username: admin\n    password: secret\n", -ENOTSUP,
                  "kubeconfig:14: username is not supported: a client certificate, a token, a token file or "
                  "an exec plugin is" },
                { "an auth provider", HEAD CLUSTER USER "    auth-provider: {name: gcp}\n", -ENOTSUP,
                  "kubeconfig:14: auth-provider is not supported: a client certificate, a token, a token "
                  "file or an exec plugin is" },
                { "impersonation by uid", HEAD CLUSTER USER "    token: a\n    as-uid: '0'\n", -ENOTSUP,
                  "kubeconfig:15: as-uid is not supported: our daemons act as themselves, and vesperctl by --as" },
                { "a token that ends in a carriage return", HEAD CLUSTER USER "    token: \"a\\r\"\n", -EBADMSG,
                  "kubeconfig:14: token contains a line break" },
                { "exec with a variable that holds another",
                  HEAD CLUSTER USER "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, env: "
                                    "[{name: a=b, value: c}]}\n",
                  -EBADMSG, "kubeconfig:14: an element of exec.env has no usable name" },
                { "insecure with CA data",
                  HEAD CLUSTER "    insecure-skip-tls-verify: true\n    certificate-authority-data: Y2E=\n",
                  -EBADMSG,
                  "kubeconfig:10: insecure-skip-tls-verify and a certificate authority exclude each other" },
                { "impersonation", HEAD CLUSTER USER "    token: a\n    as: root\n", -ENOTSUP,
                  "kubeconfig:15: as is not supported: our daemons act as themselves, and vesperctl by --as" },
                { "a certificate without a key", HEAD CLUSTER USER "    client-certificate: /a\n", -EBADMSG,
                  "kubeconfig:14: the user has a client certificate, but no client key" },
                { "a key without a certificate", HEAD CLUSTER USER "    client-key-data: YQ==\n", -EBADMSG,
                  "kubeconfig:14: the user has a client key, but no client certificate" },
                { "a token on two lines", HEAD CLUSTER USER "    token: \"a\\nb\"\n", -EBADMSG,
                  "kubeconfig:14: token contains a line break" },
                { "a user that is a text", HEAD CLUSTER "users:\n- name: u\n  user: me\n", -EBADMSG,
                  "kubeconfig:13: user is no map" },
                { "exec without a command",
                  HEAD CLUSTER USER "    exec: {apiVersion: client.authentication.k8s.io/v1}\n", -EBADMSG,
                  "kubeconfig:14: exec has no command" },
                { "exec as a text", HEAD CLUSTER USER "    exec: aws\n", -EBADMSG,
                  "kubeconfig:14: exec is no map" },
                { "exec of an old version",
                  HEAD CLUSTER USER
                  "    exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: a}\n",
                  -ENOTSUP,
                  "kubeconfig:14: exec.apiVersion is neither client.authentication.k8s.io/v1 nor v1beta1" },
                { "exec that asks a person",
                  HEAD CLUSTER USER "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, "
                                    "interactiveMode: Always}\n",
                  -ENOTSUP, "kubeconfig:14: exec.interactiveMode is Always, but there is no terminal" },
                { "exec with arguments as a text",
                  HEAD CLUSTER USER
                  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, args: b c}\n",
                  -EBADMSG, "kubeconfig:14: exec.args is no list" },
                { "exec with an argument that is a list",
                  HEAD CLUSTER USER
                  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, args: [b, [c]]}\n",
                  -EBADMSG, "kubeconfig:14: an element of exec.args is no text" },
                { "a certificate that is a list", HEAD CLUSTER USER "    client-certificate-data: [a]\n",
                  -EBADMSG, "kubeconfig:14: client-certificate-data is no text" },
                { "exec with a variable without a name",
                  HEAD CLUSTER USER
                  "    exec: {apiVersion: client.authentication.k8s.io/v1, command: a, env: [{value: b}]}\n",
                  -EBADMSG, "kubeconfig:14: an element of exec.env has no usable name" },
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *message = NULL;
                KubeConfig *c = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(kubeconfig_parse(rows[i].text, strlen(rows[i].text), NULL, &c, &message),
                                 rows[i].error);
                assert_null(c);
                assert_string_equal(message, rows[i].message);
                assert_int_equal(kubeconfig_parse(rows[i].text, strlen(rows[i].text), NULL, &c, NULL),
                                 rows[i].error);
        }
}

TEST_CASE(test_bounds) {
        _cleanup_strbuf_ StrBuf keys = { 0 };
        _cleanup_free_ char *large = NULL, *message = NULL, *too_many = NULL;
        KubeConfig *c = NULL;

        large = calloc(1, 2u * 1024 * 1024);
        assert_non_null(large);
        memset(large, ' ', 2u * 1024 * 1024);
        assert_int_equal(kubeconfig_parse(large, 2u * 1024 * 1024, NULL, &c, &message), -E2BIG);
        assert_string_equal(message, "kubeconfig: larger than 1048576 bytes");

        for (unsigned i = 0; i < 1001; i++)
                strbuf_addf(&keys, "k%u: v\n", i);
        assert_int_equal(kubeconfig_parse(keys.data, keys.size, NULL, &c, &too_many), -EBADMSG);
        assert_string_equal(too_many, "kubeconfig:1001: more than 1000 keys in one map");
}

/* -- files ---------------------------------------------------------------------------------------------- */

typedef struct Folder {
        char path[64];
} Folder;

static int folder_setup(void **state) {
        Folder *f = new0(Folder, 1);

        strcpy(f->path, "/tmp/test-kubeconfig-XXXXXX");
        *state = f;
        return mkdtemp(f->path) ? 0 : -1;
}

static const char *const file_names[] = { "config", "namespace" };

static int folder_teardown(void **state) {
        Folder *f = *state;

        for (size_t i = 0; i < ELEMENTSOF(file_names); i++) {
                _cleanup_free_ char *path = strf("%s/%s", f->path, file_names[i]);

                (void) unlink(path);
        }
        (void) rmdir(f->path);
        free(f);
        return 0;
}

static char *write_file(const Folder *f, const char *name, const char *text) {
        char *path = strf("%s/%s", f->path, name);
        FILE *out = fopen(path, "we");

        assert_non_null(out);
        assert_true(fputs(text, out) >= 0);
        assert_int_equal(fclose(out), 0);
        return path;
}

/* As kubectl: of each name the first file that has it wins; the context of the first that has one. */
TEST_CASE(test_several_files) {
        const Folder *f = *state;
        _cleanup_free_ char *missing = strf("%s/missing", f->path);
        _cleanup_free_ char *contexts = write_file(
                f, "contexts",
                "contexts:\n- {name: a, context: {cluster: c, user: u}}\n"
                "- {name: b, context: {cluster: d, user: u, namespace: n}}\n- {name: e, context: {cluster: none}}\n");
        _cleanup_free_ char *clusters =
                write_file(f, "clusters",
                           "current-context: a\nclusters:\n- {name: c, cluster: {server: https://c:1, "
                           "certificate-authority: ca.crt, tls-server-name: s}}\n- {name: d, cluster: {server: https://d:1}}\n"
                           "- {name: f, cluster: {insecure-skip-tls-verify: true}}\n");
        _cleanup_free_ char *users =
                write_file(f, "users",
                           "current-context: b\nclusters:\n- {name: c, cluster: {server: https://other:1}}\n"
                           "users:\n- {name: u, user: {token: t}}\n- {name: v, user: {token: w}}\n");
        char *const all[] = { missing, contexts, clusters, users, NULL }, *const none[] = { missing, missing, NULL };
        const struct {
                KubeConfigChoice choice;
                const char *server, *namespace, *token;
        } rows[] = {
                { {}, "https://c:1", NULL, "t" },
                { { .context = "b" }, "https://d:1", "n", "t" },
                { { .cluster = "d" }, "https://d:1", NULL, "t" },
                { { .user = "v" }, "https://c:1", NULL, "w" },
                { { .context = "b", .cluster = "c", .user = "v" }, "https://c:1", "n", "w" },
                { { .server = "https://e:2/" }, "https://e:2", NULL, "t" },
                { { .context = "b", .server = "http://e:2" }, "http://e:2", "n", "t" },
                /* a context that names what is not there, in the place of which another is chosen */
                { { .context = "e", .cluster = "d" }, "https://d:1", NULL, NULL },
                /* a cluster that has no server */
                { { .cluster = "f", .server = "https://e:2" }, "https://e:2", NULL, "t" },
        };
        const struct {
                KubeConfigChoice choice;
                const char *message;
        } wrong[] = {
                { { .context = "z" }, "there is no context 'z'" },
                { { .context = "e" }, "there is no cluster 'none'" },
                { { .context = "z", .cluster = "c" }, "there is no context 'z'" },
                { { .cluster = "z" }, "there is no cluster 'z'" },
                { { .cluster = "f" }, "the cluster has no server" },
                { { .user = "z" }, "there is no user 'z'" },
                { { .server = "e:2" }, "server is no http:// or https:// address" },
                { { .server = "https://me:secret@e:2" }, "server is no http:// or https:// address" },
        };
        KubeConfig *nothing = NULL;
        char *message = NULL;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;

                assert_return_code(kubeconfig_load_files(all, &rows[i].choice, &c, &message), 0);
                assert_string_equal(c->server, rows[i].server);
                assert_true(streq_ptr(c->token, rows[i].token));
                assert_true(streq_ptr(c->namespace, rows[i].namespace));
                /* The CA is the cluster's also for another server; the name in its certificate is not. */
                assert_true(streq(c->server, "https://d:1") || rows[i].choice.context || rows[i].choice.cluster ||
                            startswith(c->ca_file, f->path));
                assert_true(streq_ptr(c->tls_server_name, streq(c->server, "https://c:1") ? "s" : NULL));
        }
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                assert_int_equal(kubeconfig_load_files(all, &wrong[i].choice, &nothing, &message), -EBADMSG);
                assert_non_null(strstr(message, wrong[i].message));
                assert_null(strstr(message, "secret"));
                message = mfree(message);
        }
        assert_int_equal(kubeconfig_load_files(none, NULL, &nothing, &message), -ENOENT);
        assert_non_null(strstr(message, "missing: No such file"));
        message = mfree(message);

        print_message("  no current context\n");
        {
                char *const alone[] = { contexts, NULL };
                const KubeConfigChoice server = { .server = "http://e:2" };
                _cleanup_(kubeconfig_freep) KubeConfig *c = NULL, *plain = NULL;

                assert_int_equal(kubeconfig_load_files(alone, NULL, &nothing, &message), -EBADMSG);
                assert_non_null(strstr(message, "current-context is not set"));
                message = mfree(message);
                assert_return_code(kubeconfig_load_files(alone, &server, &c, &message), 0);
                assert_string_equal(c->server, "http://e:2");
                assert_return_code(kubeconfig_of_server("https://e:2//", &plain, &message), 0);
                assert_string_equal(plain->server, "https://e:2");
                assert_int_equal(kubeconfig_of_server("e", &nothing, &message), -EBADMSG);
                assert_non_null(strstr(message, "no kubeconfig: server is no"));
                free(message);
        }
}

TEST_CASE(test_load) {
        _cleanup_free_ char *path = NULL, *ca = NULL, *message = NULL, *expected = NULL, *second = NULL,
                            *missing = NULL;
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;
        const Folder *f = *state;
        KubeConfig *none = NULL;

        path = write_file(f, "config",
                          HEAD CLUSTER "    certificate-authority: ca.crt\n" USER "    token: t\n");
        assert_return_code(kubeconfig_load(path, &c, &message), 0);
        ca = strf("%s/ca.crt", f->path);
        assert_string_equal(c->ca_file, ca);

        free(path);
        path = write_file(f, "config", HEAD);
        assert_int_equal(kubeconfig_load(path, &none, &message), -EBADMSG);
        expected = strf("%s:1: there is no cluster 'c'", path);
        assert_string_equal(message, expected);

        missing = strf("%s/missing", f->path);
        assert_int_equal(kubeconfig_load(missing, &none, &second), -ENOENT);
        assert_non_null(strstr(second, "missing: No such file"));
        assert_int_equal(kubeconfig_load(missing, &none, NULL), -ENOENT);
        assert_int_equal(kubeconfig_load("/no-such-kubeconfig", &none, NULL), -ENOENT);
        assert_int_equal(kubeconfig_load("no-such-kubeconfig", &none, NULL), -ENOENT);

        print_message("a file that is none: more than anybody writes\n");
        assert_return_code(truncate(path, 2 << 20), errno);
        message = mfree(message);
        assert_int_equal(kubeconfig_load(path, &none, &message), -E2BIG);
        assert_non_null(strstr(message, "larger than 1048576 bytes"));
}

TEST_CASE(test_in_cluster) {
        static const struct {
                const char *what, *host, *port, *server;
                int error;
        } rows[] = {
                { "IPv4", "10.96.0.1", "443", "https://10.96.0.1:443", 0 },
                { "IPv6", "fd00::1", "6443", "https://[fd00::1]:6443", 0 },
                { "not in a pod", NULL, NULL, NULL, -ENOENT },
                { "no port", "10.96.0.1", "", NULL, -ENOENT },
                { "a port that is none", "10.96.0.1", "tcp://10.96.0.1:443", NULL, -EBADMSG },
                { "port 0", "10.96.0.1", "0", NULL, -EBADMSG },
                { "a host that is a path", "a/b", "443", NULL, -EBADMSG },
        };
        _cleanup_free_ char *namespace_file = NULL, *token = NULL;
        const Folder *f = *state;

        namespace_file = write_file(f, "namespace", "vesper\n");
        token = strf("%s/token", f->path);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;
                _cleanup_free_ char *message = NULL;

                print_message("%s\n", rows[i].what);
                assert_int_equal(kubeconfig_in_cluster(rows[i].host, rows[i].port, f->path, &c, &message),
                                 rows[i].error);
                assert_int_equal(!message, rows[i].error == 0);
                assert_int_equal(!c, rows[i].error != 0);
                if (!c)
                        continue;
                assert_string_equal(c->server, rows[i].server);
                assert_string_equal(c->token_file, token);
                assert_string_equal(c->namespace, "vesper");
        }
}

TEST_CASE(test_plain) {
        _cleanup_(kubeconfig_freep) KubeConfig *c = NULL;

        assert_return_code(kubeconfig_plain("http://api", &c), 0);
        assert_string_equal(c->server, "http://api");
        assert_null(c->token);
        kubeconfig_free(NULL);
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_good),
                cmocka_unit_test(test_embedded),
                cmocka_unit_test(test_risks),
                cmocka_unit_test(test_without_a_folder),
                cmocka_unit_test(test_exec),
                cmocka_unit_test(test_bad),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test_setup_teardown(test_several_files, folder_setup, folder_teardown),
                cmocka_unit_test_setup_teardown(test_load, folder_setup, folder_teardown),
                cmocka_unit_test_setup_teardown(test_in_cluster, folder_setup, folder_teardown),
                cmocka_unit_test(test_plain),
        };
        return cmocka_run_group_tests_name("kubeconfig", tests, NULL, NULL);
}
