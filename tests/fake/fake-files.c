/* SPDX-License-Identifier: Apache-2.0 */
#include "fake-files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "file-util.h"

int fake_write_file(const char *dir, const char *name, const char *text) {
        _cleanup_free_ char *path = MUST(strf("%s/%s", dir, name)),
                            *half = MUST(strf("%s/.%s.new", dir, name));
        _cleanup_close_ int fd = open(half, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        size_t size = strlen(text), done = 0;

        if (fd < 0)
                return -errno;
        while (done < size) {
                ssize_t n = write(fd, text + done, size - done);

                if (n < 0)
                        return -errno;
                done += (size_t) n;
        }
        return rename(half, path) < 0 ? -errno : 0;
}

int fake_write_kubeconfig(const char *dir, const char *user, const char *server, const char *ca_file,
                          const char *token) {
        _cleanup_free_ char *name = MUST(strf("kubeconfig-%s", user)), *text = NULL;

        text = MUST(strf("apiVersion: v1\n"
                         "kind: Config\n"
                         "current-context: fake\n"
                         "clusters:\n"
                         "- name: fake\n"
                         "  cluster:\n"
                         "    server: %s\n"
                         "%s%s%s"
                         "contexts:\n"
                         "- name: fake\n"
                         "  context:\n"
                         "    cluster: fake\n"
                         "    user: \"%s\"\n"
                         "users:\n"
                         "- name: \"%s\"\n"
                         "  user:\n"
                         "    token: \"%s\"\n",
                         server, ca_file ? "    certificate-authority: \"" : "", strempty(ca_file),
                         ca_file ? "\"\n" : "", user, user, token));
        return fake_write_file(dir, name, text);
}
