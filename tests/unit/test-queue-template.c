/* SPDX-License-Identifier: Apache-2.0 */
/* packaging/aws/interruption-queue.yaml has a rule for each kind of event that event-message.c knows, and no
 * other rule. The test includes event-message.c to read its table. run-clouds.py deploys the template. */
#include <ctype.h>

#include "cmocka-test.h"
#include "event-message.c"
#include "file-util.h"
#include "yaml-tree.h"

#define TEMPLATE_BYTES_MAX (1u << 16)

static YamlTree *template_read(void) {
        const char *folder = strempty(getenv("VESPER_SOURCE"));
        _cleanup_free_ char *path = strf("%s/packaging/aws/interruption-queue.yaml", folder), *text = NULL,
                            *message = NULL;
        YamlTree *tree = NULL;
        size_t size, line;

        if (isempty(folder))
                skip();
        assert_return_code(read_file(path, TEMPLATE_BYTES_MAX, &text, &size), 0);
        if (yaml_tree_parse(text, size, &tree, &line, &message) < 0)
                fail_msg("%s: line %zu: %s", path, line, message);
        return tree;
}

static bool list_has(const YamlTree *list, const char *text) {
        for (const YamlTree *t = list ? list->first : NULL; t; t = t->next)
                if (streq(t->text, text))
                        return true;
        return false;
}

/* Returns "StateChangeRule" for "state-change". */
static char *rule_name_of(EventMessageKind kind) {
        char *name = strf("%sRule", event_message_kind_names[kind]), *to = name;
        bool begins = true;

        for (const char *p = name; *p; p++) {
                if (*p != '-')
                        *to++ = begins ? (char) toupper((unsigned char) *p) : *p;
                begins = *p == '-';
        }
        *to = 0;
        return name;
}

static const YamlTree *pattern_of(const YamlTree *template, const char *rule) {
        const YamlTree *resource = yaml_tree_get(yaml_tree_get(template, "Resources"), rule);

        return yaml_tree_get(yaml_tree_get(resource, "Properties"), "EventPattern");
}

TEST_CASE(test_every_type_has_its_rule) {
        _cleanup_(yaml_tree_freep) YamlTree *template = template_read();

        for (size_t i = 0; i < ELEMENTSOF(types); i++) {
                _cleanup_free_ char *name = rule_name_of(types[i].kind);
                const YamlTree *pattern = pattern_of(template, name);
                const YamlTree *source = yaml_tree_get(pattern, "source");

                if (!list_has(yaml_tree_get(pattern, "detail-type"), types[i].type))
                        fail_msg("%s does not match detail-type \"%s\"", name, types[i].type);
                if (!source || source->n_children != 1 || !list_has(source, types[i].source))
                        fail_msg("source of %s is not [%s]", name, types[i].source);
        }
}

/* No rule sends messages of kind "test", which lifecycle hooks send themselves, nor of kind "unknown". */
TEST_CASE(test_every_kind_has_its_rule) {
        _cleanup_(yaml_tree_freep) YamlTree *template = template_read();

        for (EventMessageKind kind = 0; kind < _EVENT_MESSAGE_KIND_MAX; kind++) {
                bool wanted = kind != EVENT_MESSAGE_TEST && kind != EVENT_MESSAGE_UNKNOWN;
                _cleanup_free_ char *name = rule_name_of(kind);

                if (!pattern_of(template, name) == wanted)
                        fail_msg("%s: %s", name, wanted ? "missing" : "unexpected");
        }
}

TEST_CASE(test_every_rule_names_known_types) {
        _cleanup_(yaml_tree_freep) YamlTree *template = template_read();
        size_t n = 0;

        for (const YamlTree *r = yaml_tree_get(template, "Resources")->first; r; r = r->next) {
                const YamlTree *names = yaml_tree_get(pattern_of(template, r->key), "detail-type");

                for (const YamlTree *t = names ? names->first : NULL; t; t = t->next, n++) {
                        bool known = false;

                        for (size_t i = 0; i < ELEMENTSOF(types); i++)
                                known = known || streq(types[i].type, t->text);
                        if (!known)
                                fail_msg("%s: event-message.c does not know \"%s\"", r->key, t->text);
                }
        }
        assert_int_equal(n, ELEMENTSOF(types));
}

int main(void) {
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_type_has_its_rule),
                cmocka_unit_test(test_every_kind_has_its_rule),
                cmocka_unit_test(test_every_rule_names_known_types),
        };
        return cmocka_run_group_tests_name("queue-template", tests, NULL, NULL);
}
