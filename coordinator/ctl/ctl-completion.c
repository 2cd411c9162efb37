/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl-completion.h"

#include <stdio.h>

#include "ctl-options.h"
#include "ctl-verbs.h"

/* What stands for the verb's arguments; NULL: it takes none, or nothing that can be listed. */
static const char *listed_kind(const CtlVerb *v) {
        if (!v->arguments)
                return NULL;
        return strstr(v->arguments, "NODE") ? "nodes" : strstr(v->arguments, "POOL") ? "nodepools.vesper.sh" : NULL;
}

/* -- bash ----------------------------------------------------------------------------------------------- */

static void add_bash_options(StrBuf *b, const CtlVerb *v) {
        OptionItem items[CTL_ITEMS_MAX];
        size_t n = ctl_items(v, items);

        for (size_t i = 0; i < n; i++)
                strbuf_addf(b, "%s--%s%s", i > 0 ? " " : "", items[i].name, items[i].value ? "=" : "");
}

void ctl_completion_bash(StrBuf *b) {
        strbuf_add(b, "# bash completion for vesperctl; made by 'vesperctl completion bash'\n"
                      "_vesperctl_names() { kubectl get \"$1\" -o name 2>/dev/null | sed 's,.*/,,'; }\n"
                      "_vesperctl() {\n"
                      "    local cur=${COMP_WORDS[COMP_CWORD]} word verb= options= kind=\n"
                      "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                      "        case $word in -*) ;; *) verb=$word; break ;; esac\n"
                      "    done\n"
                      "    case $verb in\n");
        for (const CtlVerb *const *v = ctl_verbs; *v; v++) {
                strbuf_addf(b, "    %s) kind='%s' options='", (*v)->name, strempty(listed_kind(*v)));
                add_bash_options(b, *v);
                strbuf_add(b, "' ;;\n");
        }
        strbuf_add(b, "    '') options='");
        add_bash_options(b, NULL);
        strbuf_add(b, "' ;;\n    esac\n"
                      "    if [[ $cur == -* ]]; then\n"
                      "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$cur\")\n"
                      "        [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
                      "    elif [[ -z $verb ]]; then\n"
                      "        mapfile -t COMPREPLY < <(compgen -W '");
        for (const CtlVerb *const *v = ctl_verbs; *v; v++)
                strbuf_addf(b, "%s ", (*v)->name);
        strbuf_add(b, "completion' -- \"$cur\")\n"
                      "    elif [[ -n $kind ]]; then\n"
                      "        mapfile -t COMPREPLY < <(compgen -W \"$(_vesperctl_names \"$kind\")\" -- \"$cur\")\n"
                      "    fi\n"
                      "}\n"
                      "complete -F _vesperctl vesperctl kubectl-vesper\n");
}

/* -- zsh ------------------------------------------------------------------------------------------------ */

/* Inside single quotes, where ':' and brackets mean something to _describe and _arguments. */
static void add_zsh_text(StrBuf *b, const char *s) {
        for (; *s; s++)
                if (*s == '\'')
                        strbuf_add(b, "'\\''");
                else if (strchr(":[]\\", *s))
                        strbuf_addf(b, "\\%c", *s);
                else
                        strbuf_add_char(b, *s);
}

static void add_zsh_verb(StrBuf *b, const CtlVerb *v) {
        OptionItem items[CTL_ITEMS_MAX];
        size_t n = ctl_items(v, items);
        const char *kind = listed_kind(v);

        strbuf_addf(b, "    (%s) _arguments", v->name);
        for (size_t i = 0; i < n; i++) {
                strbuf_addf(b, " \\\n        '--%s%s[", items[i].name, items[i].value ? "=" : "");
                add_zsh_text(b, items[i].help);
                strbuf_add(b, "]");
                if (items[i].value) {
                        strbuf_add(b, ":");
                        add_zsh_text(b, items[i].value);
                        strbuf_add(b, streq(items[i].value, "FILE") ? ":_files" : ":");
                }
                strbuf_add(b, "'");
        }
        if (kind)
                strbuf_addf(b, " \\\n        '*:%s:($(_vesperctl_names %s))'", kind, kind);
        strbuf_add(b, " ;;\n");
}

void ctl_completion_zsh(StrBuf *b) {
        strbuf_add(b, "#compdef vesperctl kubectl-vesper\n"
                      "# zsh completion for vesperctl; made by 'vesperctl completion zsh'\n"
                      "_vesperctl_names() { kubectl get \"$1\" -o name 2>/dev/null | sed 's,.*/,,' }\n"
                      "_vesperctl() {\n"
                      "    local -a verbs\n"
                      "    verbs=(\n");
        for (const CtlVerb *const *v = ctl_verbs; *v; v++) {
                strbuf_addf(b, "        '%s:", (*v)->name);
                add_zsh_text(b, (*v)->summary);
                strbuf_add(b, "'\n");
        }
        strbuf_add(b, "    )\n"
                      "    if (( CURRENT == 2 )); then\n"
                      "        _describe command verbs\n"
                      "        return\n"
                      "    fi\n"
                      "    local verb=$words[2]\n"
                      "    shift words\n"
                      "    (( CURRENT-- ))\n"
                      "    case $verb in\n");
        for (const CtlVerb *const *v = ctl_verbs; *v; v++)
                add_zsh_verb(b, *v);
        strbuf_add(b, "    esac\n"
                      "}\n"
                      "_vesperctl \"$@\"\n");
}

int ctl_print_completion(const char *shell) {
        _cleanup_strbuf_ StrBuf b = {};

        if (shell && streq(shell, "bash"))
                ctl_completion_bash(&b);
        else if (shell && streq(shell, "zsh"))
                ctl_completion_zsh(&b);
        else
                return ctl_complain("completion needs the name of a shell: bash or zsh");
        if (b.failed)
                return -ENOMEM;
        fputs(strbuf_str(&b), stdout);
        return fflush(stdout) < 0 ? -EIO : 0;
}
