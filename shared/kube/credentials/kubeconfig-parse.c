/* SPDX-License-Identifier: Apache-2.0 */
#include "file-util.h"
#include "kubeconfig.h"
#include "parse-util.h"
#include "string-util.h"
#include "strv.h"
#include "yaml-tree.h"

/*
 * From the tree of a kubeconfig to the one context that is meant. What client-go would silently do for us
 * and we do not (basic auth, auth-provider, impersonation, proxies) is refused, never passed over: acting as
 * somebody else than the file says would be worse than not starting. Unknown keys are passed over, as
 * client-go does.
 *
 * https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
 */

#define FILE_BYTES_MAX (1024u * 1024)
#define QUOTE_BYTES_MAX 128u
#define EXEC_LIST_MAX 256u /* arguments, and variables of the environment, of a credential plugin */

/* One file of those that make up a configuration. */
typedef struct KubeConfigFile {
        const char *name; /* for messages */
        char *directory;  /* for relative paths; NULL: they stay as they are */
        YamlTree *root;
} KubeConfigFile;

typedef struct KubeConfigParser {
        const KubeConfigFile *files;
        size_t n_files;
        const KubeConfigFile *file; /* that is being read */
        KubeConfigChoice choice;
        KubeConfig *config;
        char *message;
} KubeConfigParser;

static int refuse(KubeConfigParser *p, int error, const YamlTree *where, const char *fmt, ...)
        _printf_(4, 5);

static int refuse(KubeConfigParser *p, int error, const YamlTree *where, const char *fmt, ...) {
        _cleanup_strbuf_ StrBuf b = { 0 };
        va_list ap;

        strbuf_add(&b, p->file->name);
        if (where)
                strbuf_addf(&b, ":%zu", where->line);
        strbuf_add(&b, ": ");
        va_start(ap, fmt);
        strbuf_addv(&b, fmt, ap);
        va_end(ap);

        free(p->message);
        p->message = strbuf_steal(&b);
        return p->message ? error : -ENOMEM;
}

/* -- fields --------------------------------------------------------------------------------------------- */

static int take_string(KubeConfigParser *p, const YamlTree *map, const char *key, char **ret) {
        const YamlTree *v = yaml_tree_get(map, key);

        if (!v)
                return 0;
        if (v->type != YAML_SCALAR)
                return refuse(p, -EBADMSG, v, "%s is no text", key);
        if (*v->text == 0)
                return 0; /* as client-go: empty is unset */
        return free_and_strdup(ret, v->text);
}

static int take_bool(KubeConfigParser *p, const YamlTree *map, const char *key, bool *ret) {
        const YamlTree *v = yaml_tree_get(map, key);

        if (!v)
                return 0;
        if (v->type != YAML_SCALAR || !v->plain || (*v->text >= '0' && *v->text <= '9') ||
            parse_bool(v->text, ret) < 0)
                return refuse(p, -EBADMSG, v, "%s is neither true nor false", key);
        return 0;
}

static int take_path(KubeConfigParser *p, const YamlTree *map, const char *key, char **ret) {
        _cleanup_free_ char *path = NULL;
        int r = take_string(p, map, key, &path);

        if (r < 0 || !path)
                return r;
        *ret = *path == '/' || !p->file->directory ? TAKE_PTR(path) : strf("%s/%s", p->file->directory, path);
        return *ret ? 0 : -ENOMEM;
}

static int take_base64(KubeConfigParser *p, const YamlTree *map, const char *key, void **ret,
                       size_t *ret_size) {
        const YamlTree *v = yaml_tree_get(map, key);
        int r;

        if (!v)
                return 0;
        if (v->type != YAML_SCALAR)
                return refuse(p, -EBADMSG, v, "%s is no text", key);
        if (*v->text == 0)
                return 0;
        r = base64_decode(v->text, v->text_size, ret, ret_size);
        return r == -EBADMSG ? refuse(p, r, v, "%s is no base64", key) : r;
}

static int refuse_keys(KubeConfigParser *p, const YamlTree *map, const char *const *keys, size_t n_keys,
                       const char *why) {
        for (size_t i = 0; i < n_keys; i++) {
                const YamlTree *v = yaml_tree_get(map, keys[i]);

                if (v && !(v->type == YAML_SCALAR && *v->text == 0))
                        return refuse(p, -ENOTSUP, v, "%s is not supported: %s", keys[i], why);
        }
        return 0;
}

/* -- cluster -------------------------------------------------------------------------------------------- */

/* where NULL: it is not in the file. */
static int check_server(KubeConfigParser *p, const YamlTree *where) {
        char *s = p->config->server;
        const char *host;
        size_t n;

        host = startswith(s, "https://");
        if (!host)
                host = startswith(s, "http://");
        if (!host || *host == 0 || *host == '/' || strpbrk(host, " @?#\\"))
                return refuse(p, -EBADMSG, where,
                              "server is no http:// or https:// address without user and query");
        for (const char *c = host; *c; c++)
                if ((unsigned char) *c < ' ' || (unsigned char) *c >= 0x7f)
                        return refuse(p, -EBADMSG, where, "server contains a character that no address has");

        for (n = strlen(s); s[n - 1] == '/'; n--)
                s[n - 1] = 0;
        return 0;
}

static int take_cluster(KubeConfigParser *p, const YamlTree *cluster) {
        static const char *const unsupported[] = { "proxy-url" };
        KubeConfig *c = p->config;
        int r;

        r = refuse_keys(p, cluster, unsupported, ELEMENTSOF(unsupported),
                        "connections to the API server are direct");
        if (r >= 0 && !p->choice.server) {
                r = take_string(p, cluster, "server", &c->server);
                if (r >= 0 && !c->server)
                        r = refuse(p, -EBADMSG, cluster, "the cluster has no server");
                if (r >= 0)
                        r = check_server(p, yaml_tree_get(cluster, "server"));
                if (r >= 0)
                        r = take_string(p, cluster, "tls-server-name", &c->tls_server_name);
        }
        if (r >= 0)
                r = take_bool(p, cluster, "insecure-skip-tls-verify", &c->insecure_skip_tls_verify);
        if (r >= 0)
                r = take_path(p, cluster, "certificate-authority", &c->ca_file);
        if (r >= 0)
                r = take_base64(p, cluster, "certificate-authority-data", &c->ca_data, &c->ca_data_size);
        if (r < 0)
                return r;

        if (c->ca_data)
                c->ca_file = mfree(c->ca_file);
        if (c->insecure_skip_tls_verify && (c->ca_data || c->ca_file))
                return refuse(p, -EBADMSG, cluster,
                              "insecure-skip-tls-verify and a certificate authority exclude each other");
        return 0;
}

/* -- user ----------------------------------------------------------------------------------------------- */

static int take_exec_args(KubeConfigParser *p, const YamlTree *exec) {
        const YamlTree *args = yaml_tree_get(exec, "args");

        if (!args)
                return 0;
        if (args->type != YAML_LIST)
                return refuse(p, -EBADMSG, args, "exec.args is no list");
        if (args->n_children > EXEC_LIST_MAX)
                return refuse(p, -EBADMSG, args, "exec.args has more than %u elements", EXEC_LIST_MAX);
        for (const YamlTree *i = args->first; i; i = i->next) {
                if (i->type != YAML_SCALAR)
                        return refuse(p, -EBADMSG, i, "an element of exec.args is no text");
                if (strv_extend(&p->config->exec_args, i->text) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int take_exec_env(KubeConfigParser *p, const YamlTree *exec) {
        const YamlTree *env = yaml_tree_get(exec, "env");
        KubeConfig *c = p->config;
        size_t n = 0;
        int r;

        if (!env)
                return 0;
        if (env->type != YAML_LIST)
                return refuse(p, -EBADMSG, env, "exec.env is no list");
        n = env->n_children;
        if (n > EXEC_LIST_MAX)
                return refuse(p, -EBADMSG, env, "exec.env has more than %u elements", EXEC_LIST_MAX);
        c->exec_env = new0(KubeExecEnv, MAX(n, (size_t) 1));
        if (!c->exec_env)
                return -ENOMEM;

        for (const YamlTree *i = env->first; i; i = i->next) {
                KubeExecEnv *e = c->exec_env + c->n_exec_env++;

                r = take_string(p, i, "name", &e->name);
                if (r >= 0)
                        r = take_string(p, i, "value", &e->value);
                if (r >= 0 && !e->value)
                        r = free_and_strdup(&e->value, "");
                if (r < 0)
                        return r;
                if (!e->name || strchr(e->name, '='))
                        return refuse(p, -EBADMSG, i, "an element of exec.env has no usable name");
        }
        return 0;
}

/* With a slash it is a path, from the file's folder if relative; without one it is looked up in PATH. */
static int take_exec_command(KubeConfigParser *p, const YamlTree *exec) {
        KubeConfig *c = p->config;
        int r = take_string(p, exec, "command", &c->exec_command);

        if (r < 0)
                return r;
        if (!c->exec_command)
                return refuse(p, -EBADMSG, exec, "exec has no command");
        if (!strchr(c->exec_command, '/') || !p->file->directory)
                return 0;
        c->exec_command = mfree(c->exec_command);
        return take_path(p, exec, "command", &c->exec_command);
}

static int take_exec(KubeConfigParser *p, const YamlTree *exec) {
        _cleanup_free_ char *mode = NULL;
        KubeConfig *c = p->config;
        int r;

        if (exec->type != YAML_MAP)
                return refuse(p, -EBADMSG, exec, "exec is no map");
        r = take_exec_command(p, exec);
        if (r >= 0)
                r = take_string(p, exec, "apiVersion", &c->exec_api_version);
        if (r >= 0)
                r = take_string(p, exec, "installHint", &c->exec_install_hint);
        if (r >= 0)
                r = take_string(p, exec, "interactiveMode", &mode);
        if (r >= 0)
                r = take_bool(p, exec, "provideClusterInfo", &c->exec_provide_cluster_info);
        if (r >= 0)
                r = take_exec_args(p, exec);
        if (r >= 0)
                r = take_exec_env(p, exec);
        if (r < 0)
                return r;

        if (!streq_ptr(c->exec_api_version, "client.authentication.k8s.io/v1") &&
            !streq_ptr(c->exec_api_version, "client.authentication.k8s.io/v1beta1"))
                return refuse(p, -ENOTSUP, exec,
                              "exec.apiVersion is neither client.authentication.k8s.io/v1 nor v1beta1");
        if (streq_ptr(mode, "Always"))
                return refuse(p, -ENOTSUP, exec, "exec.interactiveMode is Always, but there is no terminal");
        return 0;
}

static int take_certificate(KubeConfigParser *p, const YamlTree *user) {
        KubeConfig *c = p->config;
        int r;

        r = take_path(p, user, "client-certificate", &c->cert_file);
        if (r >= 0)
                r = take_path(p, user, "client-key", &c->key_file);
        if (r >= 0)
                r = take_base64(p, user, "client-certificate-data", &c->cert_data, &c->cert_data_size);
        if (r >= 0)
                r = take_base64(p, user, "client-key-data", &c->key_data, &c->key_data_size);
        if (r < 0)
                return r;

        if (c->cert_data)
                c->cert_file = mfree(c->cert_file);
        if (c->key_data)
                c->key_file = mfree(c->key_file);
        if ((c->cert_data || c->cert_file) && !c->key_data && !c->key_file)
                return refuse(p, -EBADMSG, user, "the user has a client certificate, but no client key");
        if ((c->key_data || c->key_file) && !c->cert_data && !c->cert_file)
                return refuse(p, -EBADMSG, user, "the user has a client key, but no client certificate");
        return 0;
}

static int take_user(KubeConfigParser *p, const YamlTree *user) {
        static const char *const unsupported[] = { "auth-provider", "username", "password" };
        static const char *const impersonation[] = { "as", "as-uid", "as-groups", "as-user-extra" };
        const YamlTree *exec = yaml_tree_get(user, "exec");
        int r;

        r = refuse_keys(p, user, unsupported, ELEMENTSOF(unsupported),
                        "a client certificate, a token, a token file or an exec plugin is");
        if (r >= 0)
                r = refuse_keys(p, user, impersonation, ELEMENTSOF(impersonation), "our daemons act as themselves, and vesperctl by --as");
        if (r >= 0)
                r = take_certificate(p, user);
        if (r >= 0)
                r = take_string(p, user, "token", &p->config->token);
        if (r >= 0)
                r = take_path(p, user, "tokenFile", &p->config->token_file);
        if (r >= 0 && exec)
                r = take_exec(p, exec);
        if (r < 0)
                return r;
        if (p->config->token && strpbrk(p->config->token, "\r\n"))
                return refuse(p, -EBADMSG, yaml_tree_get(user, "token"), "token contains a line break");
        return 0;
}

/* -- the file ------------------------------------------------------------------------------------------- */

/* The map `member` of the element of the list `list` of this file whose name is `name`. */
static int find_in_file(KubeConfigParser *p, const char *list, const char *member, const char *name,
                        const YamlTree **ret) {
        const YamlTree *l = yaml_tree_get(p->file->root, list);

        if (l && l->type != YAML_LIST)
                return refuse(p, -EBADMSG, l, "%s is no list", list);
        for (const YamlTree *i = l ? l->first : NULL; i; i = i->next) {
                const YamlTree *n = yaml_tree_get(i, "name"), *m = yaml_tree_get(i, member);

                if (!n || n->type != YAML_SCALAR || !streq(n->text, name))
                        continue;
                if (m && m->type != YAML_MAP)
                        return refuse(p, -EBADMSG, m, "%s is no map", member);
                *ret = m ? m : i;
                return 1;
        }
        return 0;
}

/* The same over all files: the first that has it wins, and is the one that is being read from then on. */
static int find_named(KubeConfigParser *p, const char *list, const char *member, const char *name,
                      const YamlTree **ret) {
        const KubeConfigFile *asking = p->file;
        _cleanup_free_ char *clean = NULL;

        for (size_t i = 0; i < p->n_files; i++) {
                int r;

                p->file = p->files + i;
                r = find_in_file(p, list, member, name, ret);
                if (r != 0)
                        return MIN(r, 0);
        }
        p->file = asking;
        clean = str_sanitize(name, QUOTE_BYTES_MAX);
        if (!clean)
                return -ENOMEM;
        return refuse(p, -EBADMSG, yaml_tree_get(asking->root, list) ?: asking->root, "there is no %s '%s'",
                      member, clean);
}

static int check_word(KubeConfigParser *p, const char *key, const char *expected) {
        const YamlTree *v = yaml_tree_get(p->file->root, key);

        if (v && (v->type != YAML_SCALAR || !streq(v->text, expected)))
                return refuse(p, -EBADMSG, v, "%s is not %s: no kubeconfig", key, expected);
        return 0;
}

/* And the name of the current context, if nothing before has given one. */
static int check_file(KubeConfigParser *p, char **context_name) {
        int r;

        if (p->file->root->type != YAML_MAP)
                return refuse(p, -EBADMSG, p->file->root, "no map: no kubeconfig");
        r = check_word(p, "kind", "Config");
        if (r >= 0)
                r = check_word(p, "apiVersion", "v1");
        if (r >= 0 && !*context_name)
                r = take_string(p, p->file->root, "current-context", context_name);
        return r;
}

/* Of what is chosen by name the context need not say anything. */
static int take_context(KubeConfigParser *p, const char *name, char **cluster_name, char **user_name) {
        const YamlTree *context;
        int r;

        r = find_named(p, "contexts", "context", name, &context);
        if (r >= 0 && !*cluster_name)
                r = take_string(p, context, "cluster", cluster_name);
        if (r >= 0 && !*user_name)
                r = take_string(p, context, "user", user_name);
        if (r >= 0)
                r = take_string(p, context, "namespace", &p->config->namespace);
        if (r >= 0 && !*cluster_name && !p->choice.server)
                r = refuse(p, -EBADMSG, context, "the context names no cluster");
        return r;
}

static int take_server(KubeConfigParser *p) {
        int r = free_and_strdup(&p->config->server, p->choice.server);

        return r < 0 ? r : check_server(p, NULL);
}

/* context_name NULL: there is none, and a cluster or server is chosen. */
static int take_choice(KubeConfigParser *p, const char *context_name) {
        _cleanup_free_ char *cluster_name = NULL, *user_name = NULL;
        const YamlTree *cluster, *user;
        int r;

        r = free_and_strdup(&cluster_name, p->choice.cluster);
        if (r >= 0)
                r = free_and_strdup(&user_name, p->choice.user);
        if (r >= 0 && context_name)
                r = take_context(p, context_name, &cluster_name, &user_name);
        if (r >= 0 && p->choice.server)
                r = take_server(p);
        if (r >= 0 && cluster_name)
                r = find_named(p, "clusters", "cluster", cluster_name, &cluster);
        if (r >= 0 && cluster_name)
                r = take_cluster(p, cluster);
        if (r < 0 || !user_name)
                return r;
        p->config->user_name = TAKE_PTR(user_name);
        r = find_named(p, "users", "user", p->config->user_name, &user);
        return r < 0 ? r : take_user(p, user);
}

static int take_config(KubeConfigParser *p) {
        _cleanup_free_ char *context_name = NULL;
        int r;

        if (p->choice.context && !(context_name = strdup(p->choice.context)))
                return -ENOMEM;
        for (size_t i = 0; i < p->n_files; i++) {
                p->file = p->files + i;
                r = check_file(p, &context_name);
                if (r < 0)
                        return r;
        }
        p->file = p->files;
        if (!context_name && !p->choice.cluster && !p->choice.server)
                return refuse(p, -EBADMSG, p->file->root, "current-context is not set");
        p->config = new0(KubeConfig, 1);
        return p->config ? take_choice(p, context_name) : -ENOMEM;
}

/* -- files ---------------------------------------------------------------------------------------------- */

static void files_done(KubeConfigFile *files, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(files[i].directory);
                yaml_tree_free(files[i].root);
        }
        free(files);
}

static int parse_file(KubeConfigParser *p, KubeConfigFile *f, const char *data, size_t size) {
        _cleanup_free_ char *problem = NULL;
        YamlTree where = {};
        int r;

        p->file = f;
        if (size > FILE_BYTES_MAX)
                return refuse(p, -E2BIG, NULL, "larger than %u bytes", FILE_BYTES_MAX);
        r = yaml_tree_parse(data, size, &f->root, &where.line, &problem);
        return r == -EBADMSG ? refuse(p, r, &where, "%s", strempty(problem)) : r;
}

static int read_kubeconfig(KubeConfigParser *p, KubeConfigFile *f) {
        const char *slash = strrchr(f->name, '/');
        char *data = NULL;
        size_t size;
        int r;

        p->file = f;
        f->directory = !slash             ? strdup(".")
                       : slash == f->name ? strdup("/")
                                          : memdup_str(f->name, (size_t) (slash - f->name));
        if (!f->directory)
                return -ENOMEM;
        r = read_file(f->name, FILE_BYTES_MAX, &data, &size);
        if (r < 0)
                return r == -E2BIG ? refuse(p, r, NULL, "larger than %u bytes", FILE_BYTES_MAX)
                                   : refuse(p, r, NULL, "%s", strerrordesc_np(-r) ?: "cannot be read");
        r = parse_file(p, f, data, size);
        erase_and_free(data, size);
        return r;
}

static int hand_over(KubeConfigParser *p, int r, KubeConfig **ret, char **reterr_message) {
        if (r >= 0) {
                free(p->message); /* of a file that is not there, beside others that are */
                *ret = p->config;
                return 0;
        }
        kubeconfig_free(p->config);
        if (reterr_message)
                *reterr_message = p->message;
        else
                free(p->message);
        return r;
}

int kubeconfig_parse(const char *data, size_t size, const char *directory, KubeConfig **ret,
                     char **reterr_message) {
        KubeConfigFile *file = new0(KubeConfigFile, 1);
        KubeConfigParser p = { .files = file, .n_files = 1 };
        int r;

        assert(data || size == 0);
        assert(ret);
        if (!file)
                return -ENOMEM;
        file->name = "kubeconfig";
        r = free_and_strdup(&file->directory, directory);
        if (r >= 0)
                r = parse_file(&p, file, data, size);
        if (r >= 0)
                r = take_config(&p);
        files_done(file, 1);
        return hand_over(&p, r, ret, reterr_message);
}

int kubeconfig_of_server(const char *server, KubeConfig **ret, char **reterr_message) {
        const KubeConfigFile none = { .name = "no kubeconfig" };
        KubeConfigParser p = { .file = &none, .choice = { .server = server } };

        assert(server);
        assert(ret);
        p.config = new0(KubeConfig, 1);
        return hand_over(&p, p.config ? take_server(&p) : -ENOMEM, ret, reterr_message);
}

int kubeconfig_load_files(char *const *paths, const KubeConfigChoice *choice, KubeConfig **ret, char **reterr_message) {
        size_t n = strv_length(paths);
        KubeConfigFile *files = new0(KubeConfigFile, n);
        KubeConfigParser p = { .files = files, .choice = choice ? *choice : (KubeConfigChoice){} };
        int r = 0;

        assert(n > 0);
        assert(ret);
        if (!files)
                return -ENOMEM;
        STRV_FOREACH(path, paths) {
                files[p.n_files].name = *path;
                r = read_kubeconfig(&p, files + p.n_files);
                if (r >= 0)
                        p.n_files++;
                else if (r == -ENOENT && n > 1)
                        files[p.n_files].directory = mfree(files[p.n_files].directory);
                else
                        break;
        }
        if (p.n_files > 0 && (r >= 0 || r == -ENOENT))
                r = take_config(&p);
        files_done(files, n);
        return hand_over(&p, r, ret, reterr_message);
}

int kubeconfig_load(const char *path, KubeConfig **ret, char **reterr_message) {
        char *const paths[] = { (char *) path, NULL };

        assert(path);
        return kubeconfig_load_files(paths, NULL, ret, reterr_message);
}
